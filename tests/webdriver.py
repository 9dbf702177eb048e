"""A real browser, driven over plain HTTP (W3C WebDriver); no library in between."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def programs() -> tuple[str, str] | None:
    """Chromium (or Chrome) and its driver, where both are installed."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def wait(true: Callable[[], Any], what: str) -> None:
    """Until something is so, for a minute at most."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Browser:
    """One headless browser with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        found = programs()
        assert found is not None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            [found[1], f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait()
        options = {"binary": found[0], "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        try:
            self.session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except Exception:
            self.driver.terminate()
            self.driver.wait()
            raise

    def _wait(self) -> None:
        for _ in range(300):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (OSError, KeyError):
                time.sleep(0.1)
        raise TimeoutError("chromedriver does not answer")

    def _call(self, verb: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=verb)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as problem:
            raise RuntimeError(json.load(problem)["value"]["message"]) from None

    def do(self, verb: str, path: str, body: Any = None) -> Any:
        return self._call(verb, f"/session/{self.session}{path}", body)

    def open(self, page: Path) -> None:
        self.visit(page.resolve().as_uri())

    def visit(self, address: str) -> None:
        self.do("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        return self.do("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def tell(self, command: str, **parameters: Any) -> Any:
        """A command of the browser's own protocol."""
        return self.do("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width: int, height: int, phone: bool = False) -> None:
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, colours: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": colours}
        self.tell("Emulation.setEmulatedMedia", features=[feature])

    def log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.do("POST", "/se/log", {"type": kind})
        return entries

    def requests(self) -> list[str]:
        """Addresses asked for since the last call; not those of the browser's own first page, which it has at home."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [address for address in asked if not address.startswith(("chrome:", "chrome-untrusted:"))]

    def move(self, x: float, y: float) -> None:
        """The pointer to a place in the window."""
        step = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [step]}
        self.do("POST", "/actions", {"actions": [mouse]})

    def click(self, selector: str) -> None:
        found = self.do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.do("POST", f"/element/{found}/click", {})

    def press(self, selector: str, keys: str) -> None:
        found = self.do("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.do("POST", f"/element/{found}/value", {"text": keys})

    def picture(self, file: Path, whole: bool = True) -> None:
        if whole:
            shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        else:
            shot = self.do("GET", "/screenshot")
        file.write_bytes(base64.b64decode(shot))

    def close(self) -> None:
        try:
            self.do("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

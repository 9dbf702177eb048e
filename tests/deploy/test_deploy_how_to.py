"""The how-to page's commands, executed as they stand, over TLS with node authentication."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedrec.deploy.ports import free_ports, listening

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
BLOCK = re.compile(r"(?:<!-- background: (?P<ready>[^\n]*) -->\n)?```sh\n(?P<code>.*?)```", re.S)


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    tag = secrets.token_hex(8)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "FEDREC_TRIAL": tag,
        "PYTHONUNBUFFERED": "1",
    }
    outputs: list[str] = []
    background: list[subprocess.Popen[bytes]] = []
    try:
        for number, found in enumerate(BLOCK.finditer(PAGE.read_text(encoding="utf-8"))):
            code = found["code"].replace("server.example.org", "127.0.0.1").replace("8000", str(port))
            log = tmp_path / f"block{number}.log"
            with open(log, "wb") as output:
                member = subprocess.Popen(
                    ["bash", "-euc", f"exec {code}" if found["ready"] else code],
                    cwd=tmp_path,
                    env=environment,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            if found["ready"]:
                background.append(member)
                _until(lambda log=log, word=found["ready"]: word in log.read_text(), member, log)
            else:
                assert member.wait(timeout=600) == 0, f"{code}\n{log.read_text()}"
            outputs.append(log.read_text())
    finally:
        for member in reversed(background):
            member.send_signal(signal.SIGINT)
        for member in background:
            member.wait(timeout=60)
    assert any("round 3" in text for text in outputs)
    assert any(text.startswith("  1  i") for text in outputs), "no recommendation was printed"
    assert not listening(port)
    for name in ("server", "hospital-a/flower", "hospital-b/flower"):
        assert (tmp_path / name).is_dir()
    # a helper of Python's own (multiprocessing's resource tracker) ends a moment after the process that it belongs to
    end = time.monotonic() + 20
    while _left(tag) and time.monotonic() < end:
        time.sleep(0.1)
    assert not _left(tag), "a process was left running"


def _until(true: object, member: subprocess.Popen[bytes], log: Path, seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        if member.poll() is not None or time.monotonic() > end:
            pytest.fail(f"did not come up:\n{log.read_text()}")
        time.sleep(0.1)


def _left(tag: str) -> list[str]:
    """Command lines of the processes that are still there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"FEDREC_TRIAL={tag}".encode() in entry.read_bytes():
                found.append(entry.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found

"""One file from an address: encrypted unless a person consents, bounded in size and time, taken up where it broke."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from fedrec.data import limits
from fedrec.errors import BadInput

ATTEMPTS = 3
"""Connections per file; a cut one is taken up where it broke off."""
CHUNK = 1 << 16
LONGEST = 3600.0
"""Seconds for one file, however slowly it trickles."""


class Failed(Exception):
    """One way of getting the data did not work; the text says why."""


def download(url: str, part: Path, report: Callable[[str], object], timeout: float, allow_http: bool) -> None:
    """The whole file at ``url`` under the name ``part``, or :class:`Failed`."""
    refuse_open_way(url, allow_http)
    end = time.monotonic() + LONGEST
    why = "no answer"
    for _ in range(ATTEMPTS):
        try:
            why = _continue(url, part, report, timeout, allow_http, end)
        except urllib.error.HTTPError as problem:
            if problem.code == 416:  # the part is as long as the file or longer: start anew
                part.unlink(missing_ok=True)
            why = f"answered {problem.code} {problem.reason}"
            problem.close()
            if problem.code != 416:
                break
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as problem:
            why = str(getattr(problem, "reason", None) or problem or type(problem).__name__)
            if not part.exists():
                break  # not even a beginning: nobody there
        except BadInput as problem:
            raise Failed(str(problem)) from problem
        if not why:
            return
    raise Failed(f"{url}: {why}")


def refuse_open_way(url: str, allow_http: bool) -> None:
    """Refuse plain http unless a person consented, and anything that is neither http nor https."""
    scheme = urlsplit(url).scheme.lower()
    if scheme == "http" and not allow_http:
        raise Failed(
            f"{urlsplit(url).hostname} is reached by plain http only: anybody on the way could change the file; "
            "--allow-http takes it all the same"
        )
    if scheme not in ("http", "https"):
        raise Failed(f"{limits.brief(url, 60)} is not an https address")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a publisher that moved, never from https to something open."""

    def __init__(self, allow_http: bool) -> None:
        self.allow_http = allow_http

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        refuse_open_way(newurl, self.allow_http)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _continue(
    url: str, part: Path, report: Callable[[str], object], timeout: float, allow_http: bool, end: float
) -> str:
    """Fetch what ``part`` lacks of the file; returns what went wrong, or nothing."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "fedrec"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    limit = limits.largest()
    with urllib.request.build_opener(_Redirects(allow_http)).open(request, timeout=timeout) as answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if not goes_on:
            have = 0  # the publisher sends it all: begin again
        said = answer.headers.get("Content-Length") or ""
        length = int(said) if said.isascii() and said.isdigit() else None
        if have + (length or 0) > limit:
            raise limits.too_large(url, limit)
        report(f"{url}: {'going on at' if goes_on else 'from'} byte {have}")
        with part.open("ab" if goes_on else "wb") as out:
            came = 0
            while chunk := _read(answer):
                out.write(chunk)
                came += len(chunk)
                if have + came > limit:
                    raise limits.too_large(url, limit)
                if time.monotonic() > end:
                    raise Failed(f"{url}: not whole after {LONGEST:.0f} s")
            out.flush()
            os.fsync(out.fileno())
    if length is not None and came < length:
        return f"connection cut after {have + came} of {have + length} bytes"
    return ""


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read(CHUNK)
    except (OSError, http.client.HTTPException) as problem:  # not to be confused with trouble of our own disk
        raise ConnectionError(f"connection cut ({problem or type(problem).__name__})") from problem

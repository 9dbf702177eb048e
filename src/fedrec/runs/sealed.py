"""Texts that carry their own checksum, so that file and checksum are replaced together or not at all.

JSON object    its last member is ``"blake2b"``: BLAKE2b-256 of the file's bytes with zeros in place of the digits
YAML           its last line is ``# blake2b: DIGITS`` of the bytes before that line
line of JSON   its last member is ``"blake2b"``: BLAKE2b-64 of the line without that member

A text without one was written before there were checksums: it is read, and :func:`warn_unsealed` says so. One that
has been damaged must not pass for such a text, so all that is left of a damaged checksum counts as damage.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from fedrec.core.state import BadState, parse_json
from fedrec.errors import BadInput

log = logging.getLogger("fedrec.runs")

KEY, DIGITS, LINE_DIGITS = "blake2b", 64, 16
ZEROS = "0" * DIGITS
LARGEST = 1 << 28
"""Bytes of a text in a folder that may be somebody else's: one full of holes is as large as its maker says."""

_YAML = re.compile(rb"(.*\n)# blake2b: ([0-9a-f]{64})\n", re.S)
_LINE = re.compile(rf'(.*), "{KEY}": "([0-9a-f]{{{LINE_DIGITS}}})"}}')

_warned = False


def digest(data: bytes) -> str:
    """BLAKE2b-256, as ``b2sum -l 256`` prints it."""
    return hashlib.blake2b(data, digest_size=DIGITS // 2).hexdigest()


def digest_of(path: Path) -> str:
    """The same of a whole file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=DIGITS // 2)).hexdigest()


class Damaged(BadInput):
    """A file is not as it was written."""


def damaged(path: Path, why: str, advice: str = "") -> Damaged:
    """The error for a file that is not as it was written."""
    return Damaged(f"{path} is damaged or was changed: {why}; {advice or 'restore it from a copy'}")


def whole(path: Path, advice: str = "", most: int = LARGEST, start: int = 0) -> bytes:
    """All bytes of a text from ``start`` on, which is not read at all where it is too large to be one."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise damaged(path, f"it has {size} bytes, which no text of a run has", advice)
        file.seek(start)
        return file.read()


def warn_unsealed(path: Path) -> None:
    """Say once in a process that files without checksums are read."""
    global _warned
    if not _warned:
        _warned = True
        log.warning("%s was made before checksums: damage to it, or to others like it, would not be noticed", path)


def sealed_json(value: dict[str, Any], indent: int | None = None) -> str:
    """A JSON object with its checksum as the last member."""
    text = json.dumps({**value, KEY: ZEROS}, indent=indent) + "\n"
    place = text.rindex(ZEROS)
    return text[:place] + digest(text.encode()) + text[place + DIGITS :]


def read_sealed_json(path: Path, advice: str = "", *, must: bool = False) -> dict[str, Any]:
    """The object in a file, without its checksum; with ``must`` one without a checksum is refused."""
    data = whole(path, advice)
    value = json_object(path, data, advice)
    found = value.pop(KEY, None)
    if found is None:
        last = next(reversed(value.values()), None)  # it may be a checksum under a damaged name
        if must or (isinstance(last, str) and re.fullmatch(rf"[0-9a-f]{{{DIGITS}}}", last)):
            raise damaged(path, "its checksum is gone", advice)
        warn_unsealed(path)
        return value
    place = data.rfind(found.encode()) if isinstance(found, str) and len(found) == DIGITS else -1
    if place < 0 or digest(data[:place] + ZEROS.encode() + data[place + DIGITS :]) != found:
        raise damaged(path, "its checksum does not fit", advice)
    return value


def is_sealed(path: Path) -> bool:
    """Whether a JSON file, where there is one, has had a checksum, be it damaged or not."""
    return path.is_file() and KEY.encode() in whole(path)


def json_object(path: Path, data: bytes, advice: str = "") -> dict[str, Any]:
    """The JSON object that a file's bytes are."""
    try:
        value = parse_json(text_of(data))
    except BadState as problem:
        raise damaged(path, str(problem), advice) from None
    if not isinstance(value, dict):
        raise damaged(path, f"it holds {type(value).__name__}, not an object", advice)
    return value


def text_of(data: bytes, what: str = "it") -> str:
    """Bytes as text; :class:`BadState` where they are none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadState(f"{what} is not text") from None


def sealed_yaml(text: str) -> str:
    """A YAML text with its checksum as a comment behind it."""
    return f"{text}# {KEY}: {digest(text.encode())}\n"


def read_sealed_yaml(path: Path, advice: str = "", *, must: bool = False) -> tuple[str, bool]:
    """The text in a file, and whether it carried a checksum; with ``must`` one without a checksum is refused."""
    data = whole(path, advice)
    found = _YAML.fullmatch(data)
    if found is None:
        last = data.rstrip(b"\n").rpartition(b"\n")[2]
        if KEY.encode() in data or last.startswith(b"#"):
            raise damaged(path, "its checksum cannot be read", advice)
        if must:
            raise damaged(path, "its checksum is gone", advice)
        warn_unsealed(path)
    elif digest(found[1]) != found[2].decode():
        raise damaged(path, "its checksum does not fit", advice)
    try:
        return text_of(data if found is None else found[1]), found is not None
    except BadState as problem:
        raise damaged(path, str(problem), advice) from None


def sealed_line(value: dict[str, Any]) -> str:
    """One line of JSON with its checksum as the last member; no newline."""
    text = json.dumps(value)
    return f'{text[:-1]}, "{KEY}": "{_line_digest(text)}"}}'


def open_line(line: str) -> tuple[str, bool]:
    """The JSON of a line, and whether it carried a checksum; :class:`BadState` where that does not fit."""
    found = _LINE.fullmatch(line)
    if found is None:
        return line, False
    text = found[1] + "}"
    if _line_digest(text) != found[2]:
        raise BadState("its checksum does not fit")
    return text, True


def _line_digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=LINE_DIGITS // 2).hexdigest()

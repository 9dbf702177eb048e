"""The log of rounds: a line each, with a checksum of its own, appended while the run goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fedrec.core.kinds import field_hints, fits
from fedrec.core.loop import Record
from fedrec.core.state import BadState, parse_json
from fedrec.runs.atomic import keep_text, plain_opener, room_for
from fedrec.runs.sealed import damaged, open_line, sealed_line, text_of, warn_unsealed, whole

ADVICE = "restore it from a copy; in a run that is not finished it may be removed: resuming writes it anew"

LARGEST = 1 << 30
"""Bytes of a log: hundreds of thousands of rounds have no more."""


def append_record(path: Path, record: Record) -> None:
    """One more line."""
    with room_for(path), open(path, "a", encoding="utf-8", opener=plain_opener) as handle:
        handle.write(sealed_line(record.as_dict()) + "\n")


def write_records(path: Path, records: list[Record]) -> None:
    """All lines at once."""
    keep_text(path, "".join(sealed_line(record.as_dict()) + "\n" for record in records))


def read_records(path: Path) -> list[dict[str, Any]]:
    """What the lines say, without one that a kill cut short."""
    if not path.is_file():
        return []
    lines = whole(path, ADVICE, LARGEST).split(b"\n")
    found = [_line(path, number, line) for number, line in enumerate(lines[:-1], 1) if line]
    if lines[-1] and _whole_but_for_its_end(lines[-1]):
        raise damaged(path, f"line {len(lines)} does not end", ADVICE)
    if len({sealed for _, sealed in found}) > 1:
        raise damaged(path, "some of its lines have lost their checksums", ADVICE)
    if found and not found[0][1]:
        warn_unsealed(path.parent)
    return [plain for plain, _ in found]


def have_checksums(path: Path) -> bool:
    """Whether its lines have checksums, be they damaged or not."""
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return open_line(next(lines, "").rstrip("\n"))[1]
    except BadState:
        return True
    except OSError:
        return False


def record_of(plain: Any) -> Record:
    """A record out of a file; :class:`BadState` where it is none."""
    if not isinstance(plain, dict) or not isinstance(plain.get("missing"), list):
        raise BadState("it is not a record of a round")
    made = {"secure": None, "unsent": False, **plain, "missing": tuple(plain["missing"])}
    hints = field_hints(Record)
    wrong = [name for name in {**made, **hints} if name not in made or not fits(made[name], hints.get(name, None))]
    if wrong:
        raise BadState(f"its entry {wrong[0][:60]!r} is not that of a record")
    return Record(**made)


def sync(path: Path) -> None:
    """Bring what was appended to the disk."""
    if path.is_file():
        with room_for(path), open(path, "rb+", opener=plain_opener) as handle:
            os.fsync(handle.fileno())


def _line(path: Path, number: int, line: bytes) -> tuple[dict[str, Any], bool]:
    try:
        text, sealed = open_line(text_of(line))
        plain: dict[str, Any] = parse_json(text)
        record_of(plain)
    except BadState as problem:
        raise damaged(path, f"line {number}: {problem}", ADVICE) from None
    return plain, sealed


def _whole_but_for_its_end(line: bytes) -> bool:
    """Whether a last line lacks nothing but its end, which a kill does not do: it is written with its line."""
    try:
        return open_line(text_of(line[:-1]))[1]
    except BadState:
        return False

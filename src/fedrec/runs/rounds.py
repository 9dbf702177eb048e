"""The log of rounds: a line each, with a checksum of its own, appended while the run goes on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Log:
    """What has been read of a log of rounds."""

    records: list[dict[str, Any]] = field(default_factory=list)
    size: int = 0
    """Bytes of its whole lines."""
    last: bytes = b""
    """The last of them, by which a log that has only grown is known."""
    sealed: frozenset[bool] = frozenset()
    """Whether lines have checksums: all or none."""


def read_log(path: Path, before: Log = Log()) -> Log:
    """What the lines say, without one that a kill cut short; of a log read ``before``, those that have come since."""
    if not path.is_file():
        return Log()
    data = whole(path, ADVICE, LARGEST, before.size - len(before.last))
    if not data.startswith(before.last):  # another log in its place
        before, data = Log(), whole(path, ADVICE, LARGEST)
    *lines, rest = data.removeprefix(before.last).split(b"\n")
    first = len(before.records) + 1
    found = [_line(path, number, line) for number, line in enumerate(lines, first) if line]
    if rest and _whole_but_for_its_end(rest):
        raise damaged(path, f"line {first + len(lines)} does not end", ADVICE)
    sealed = before.sealed.union(sealed for _, sealed in found)
    if len(sealed) > 1:
        raise damaged(path, "some of its lines have lost their checksums", ADVICE)
    if False in sealed:
        warn_unsealed(path.parent)
    records = before.records + [plain for plain, _ in found]
    last = lines[-1] + b"\n" if lines else before.last
    size = before.size + len(data) - len(before.last) - len(rest)
    return Log(records, size, last, sealed)


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
    made = {"secure": None, "unsent": False, "change": None, **plain, "missing": tuple(plain["missing"])}
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

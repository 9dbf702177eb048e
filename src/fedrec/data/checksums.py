"""Checksums of what was fetched: recorded at first use in the data directory, compared ever after."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fedrec.data import limits
from fedrec.errors import BadInput

FILE = "checksums.json"


@dataclass(frozen=True)
class Checksum:
    """What a file was when it came."""

    sha256: str
    source: str
    """The address or package it came from."""
    day: str
    """When it came."""

    @staticmethod
    def now(sha256: str, source: str) -> Checksum:
        return Checksum(sha256, source, datetime.now(UTC).date().isoformat())


def sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def recorded(data_dir: Path) -> dict[str, Checksum]:
    """All recorded checksums: by address, and by 'DATASET/FILE' for files in place."""
    path = data_dir / FILE
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > 64 * limits.MIB:
            raise ValueError("too large")
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): Checksum(**{name: str(entry[name]) for name in _FIELDS}) for key, entry in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise BadInput(f"{path} is damaged; remove it: checksums are then recorded anew") from problem


_FIELDS = ("sha256", "source", "day")


def record(data_dir: Path, entries: Mapping[str, Checksum]) -> None:
    """Add entries to what is recorded; the file is replaced whole."""
    together = {**recorded(data_dir), **entries}
    text = json.dumps({key: asdict(together[key]) for key in sorted(together)}, indent=1)
    put(data_dir / FILE, (text + "\n").encode("utf-8"))


def put(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def verify(data_dir: Path, files: Iterable[Path]) -> None:
    """Refuse files that are not what came when they were fetched; those without a record are let pass."""
    known = recorded(data_dir)
    if not known:
        return
    for path in files:
        key = path.relative_to(data_dir).as_posix()
        entry = known.get(key)
        if entry is not None and path.is_file() and sha256(path) != entry.sha256:
            raise BadInput(
                f"{path} is not what was fetched on {entry.day}: its checksum differs. Remove it and run 'fedrec data "
                f"get {path.parent.name}' again, or, if the change is yours, its entry in {FILE}"
            )

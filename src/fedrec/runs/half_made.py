"""What a kill leaves of a run's folder that was just being made: it holds no run yet, and may be used as new."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from fedrec.errors import BadInput
from fedrec.runs.sealed import read_sealed_json
from fedrec.runs.state_file import has_checksum


def half_made(folder: Path, first: Collection[str], last: str) -> bool:
    """Whether all that is there are files that are written ``first``, before the one that makes it a run (``last``).

    Only files that are ours count, by their checksums or as temporary ones: the folder may be somebody's own.
    """
    entries = [*folder.iterdir()] if folder.is_dir() else []
    return bool(entries) and all(
        entry.is_file() and not entry.is_symlink() and (_temporary(entry, (*first, last)) or _ours(entry, first))
        for entry in entries
    )


def clear_half_made(folder: Path, first: Collection[str], last: str) -> None:
    """Empty such a folder; whoever calls this keeps others from it meanwhile, since one of them may be making it."""
    if half_made(folder, first, last):
        for entry in folder.iterdir():
            entry.unlink(missing_ok=True)


def leftovers_of(folder: Path, name: str) -> Iterator[Path]:
    """What was being written when its process was killed, in place of the file of that name."""
    return (entry for entry in folder.glob(f".{name}.*.tmp") if _temporary(entry, (name,)))


def _temporary(path: Path, names: Collection[str]) -> bool:
    return any(re.fullmatch(rf"\.{re.escape(name)}\.\d+\.tmp", path.name) for name in names)


def _ours(path: Path, first: Collection[str]) -> bool:
    if path.name not in first:
        return False
    if path.suffix != ".json":
        return has_checksum(path)
    with suppress(BadInput):
        return str(read_sealed_json(path, must=True).get("schema", "")).startswith("fedrec.")
    return False

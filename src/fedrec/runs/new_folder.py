"""Whether a folder can be a new run's: there is nothing, or what a kill left of one that was just being made."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.runs.files import FIRST, SETTINGS
from fedrec.runs.sealed import digest_of, read_sealed_json
from fedrec.runs.state_file import has_checksum


def is_free(path: Path) -> bool:
    """Whether a new run can have this folder: there is nothing, or what a kill left of one that was being made."""
    return not path.exists() or (path.is_dir() and (not any(path.iterdir()) or half_made(path)))


def refuse_used(path: Path) -> None:
    """A new run needs a folder of its own."""
    if not is_free(path):
        raise BadInput(f"{path} is already used; choose another --out, or continue it with --resume {path}")


def half_made(folder: Path) -> bool:
    """Whether all that is there are files that are written ``FIRST``, before the settings, which make it a run's.

    Only files that are ours count, by their checksums or as temporary ones: the folder may be somebody's own.
    """
    entries = [*folder.iterdir()] if folder.is_dir() else []
    return bool(entries) and all(
        entry.is_file() and not entry.is_symlink() and (_temporary(entry, (*FIRST, SETTINGS)) or _ours(entry))
        for entry in entries
    )


def clear_half_made(folder: Path) -> None:
    """Empty such a folder; whoever calls this keeps others from it meanwhile, since one of them may be making it."""
    if half_made(folder):
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.suffix == ".json"):  # they say what is ours
            entry.unlink(missing_ok=True)


def leftovers_of(folder: Path, name: str) -> Iterator[Path]:
    """What was being written when its process was killed, in place of the file of that name."""
    return (entry for entry in folder.glob(f".{name}.*.tmp") if _temporary(entry, (name,)))


def _temporary(path: Path, names: Collection[str]) -> bool:
    return any(re.fullmatch(rf"\.{re.escape(name)}\.\d+\.tmp", path.name) for name in names)


def _ours(path: Path) -> bool:
    if path.name not in FIRST:
        return False
    if path.suffix == ".json":
        return str(_object(path).get("schema", "")).startswith("fedrec.")
    if path.suffix == ".txt":  # its digest stands in another one
        others = (path.with_name(name) for name in FIRST if name.endswith(".json"))
        found = digest_of(path)
        return any(found in _object(other).values() for other in others if other.is_file())
    return has_checksum(path)


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file with a checksum; nothing where it is something else."""
    with suppress(BadInput):
        return read_sealed_json(path, must=True)
    return {}

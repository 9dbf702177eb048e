"""Which file of a folder holds the interactions, where there is no doubt."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from fedrec.data import limits
from fedrec.data.readers import parquet_table
from fedrec.data.readers.recognise import KNOWN_FILES
from fedrec.errors import BadInput

DATA_ENDINGS = (".csv", ".tsv", ".txt", ".dat", ".data", ".gz", ".zip", ".bz2", ".xz", ".zst")
"""Endings of text that may be a table; those that are not read are then refused by name."""
BESIDE = ("readme*", "licen[cs]e*", "*.md", "_*", ".*")
"""Files that stand beside data and are none."""
LIKELY = ("ratings", "interactions")
"""How the name of the file begins, where there are several."""
APART = ("*.inter", "u.data")
"""Published files whose companions end otherwise than tables do: a table beside one is another."""


def only_table(folder: Path) -> Path:
    """The file of interactions in a folder; the folder itself, of a table in parts."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not _matches(path, BESIDE))
    parts = parquet_table.part_files(folder)
    texts = [path for path in files if path.suffix.lower() in DATA_ENDINGS]
    texts = [path for path in texts if path.name.lower().startswith(LIKELY)] or texts
    published = tuple(pattern for pattern, _ in KNOWN_FILES)
    known = [path for path in files if path not in parts and _matches(path, published)]
    tables = sorted({*known, *_others(known, texts)}) if known else texts
    if parts and not tables:
        return parts[0] if len(parts) == 1 else folder
    if len(tables) == 1 and not parts:
        return tables[0]
    names = limits.names([path.name for path in sorted([*tables, *parts])]) or "no data file"
    raise BadInput(f"{folder} holds {names}; name one file, or make the folder a ready split (train, valid, test)")


def _others(known: list[Path], texts: list[Path]) -> list[Path]:
    """Tables beside a published file that are not its publisher's."""
    apart = all(_matches(path, APART) for path in known)
    likely = [path for path in texts if path.name.lower().startswith(LIKELY)]
    return likely or [path for path in texts if apart and path.suffix.lower() in (".csv", ".tsv")]


def _matches(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path.name.lower(), pattern.lower()) for pattern in patterns)

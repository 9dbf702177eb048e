"""``origin.json``: which run an updated one came from, and what had been added to its data since.

It is written before the run's settings, with the state that training goes on from as the first checkpoint: a folder
that a kill left without them is no run's folder yet. The run before is known by the checksum of its result, so that
both may be moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from fedrec.core.kinds import Parts, fits
from fedrec.errors import BadInput
from fedrec.runs.atomic import keep_text
from fedrec.runs.sealed import damaged, digest_of, read_sealed_json, sealed_json

ORIGIN = "origin.json"
SCHEMA = "fedrec.origin/1"
_RESULT = "result.json"
_FIELDS = Parts({"run": str, "result": str, "rounds": int, "starts_over": bool, "seen": int, "added": dict[str, int]})


@dataclass(frozen=True)
class Origin:
    """Where an updated run came from."""

    run: str
    """The folder of the run before, as it lay then."""
    result: str
    """Checksum of its result."""
    rounds: int
    """Rounds in which its users had taken part by then, those of earlier updates counted."""
    starts_over: bool
    """Whether the method computed its answer again, instead of going on from what it had learnt."""
    seen: int
    """Held-out items that the run before had learnt from: their users' figures are too good."""
    added: dict[str, int]
    """Users, items, interactions."""

    @property
    def line(self) -> str:
        """What was added, for people.

        >>> Origin("a", "", 5, False, 0, {"users": 1, "items": 0, "interactions": 12}).line
        'added: 1 user, 0 items, 12 interactions'
        """
        counts = (f"{count} {name[:-1] if count == 1 else name}" for name, count in self.added.items())
        return f"added: {', '.join(counts)}"

    def write(self, folder: Path) -> None:
        keep_text(folder / ORIGIN, sealed_json({"schema": SCHEMA, **asdict(self)}, indent=2))


def read_origin(folder: Path) -> Origin | None:
    """Where a run came from; None for one that began by itself."""
    path = folder / ORIGIN
    if not path.is_file():
        return None
    plain = read_sealed_json(path, must=True)
    if plain.pop("schema", None) != SCHEMA or not fits(plain, _FIELDS):
        raise damaged(path, "it does not say where the run came from")
    return Origin(**plain)


def newest(run: Path, believed: Callable[[Path, Path], bool]) -> Path:
    """The last finished update of a run among the folders beside it, or the run itself.

    A folder can say of itself whatever its maker likes: ``believed`` looks at a run and what calls itself its update.
    """
    found, seen = run, {run.resolve()}
    while (found / _RESULT).is_file():
        following = [path for path in _beside(found) if path.resolve() not in seen and believed(found, path)]
        if not following:
            break
        found = max(following, key=lambda path: (path / _RESULT).stat().st_mtime_ns)
        seen.add(found.resolve())
    return found


def _beside(run: Path) -> list[Path]:
    """Finished runs that lie beside a run and say that they are its updates."""
    found = []
    mine = ""
    for path in sorted(run.resolve().parent.glob(f"*/{ORIGIN}")):
        try:
            origin = read_origin(path.parent) if (path.parent / _RESULT).is_file() else None
        except (BadInput, OSError):  # somebody else's folder
            continue
        mine = mine or digest_of(run / _RESULT)
        if origin is not None and origin.result == mine:
            found.append(path.parent)
    return found

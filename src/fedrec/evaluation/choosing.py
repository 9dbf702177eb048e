"""Whether there is anything to choose the round on: without it, no round is ever the best and no model is kept."""

from __future__ import annotations

from pathlib import Path

from fedrec.data.limits import names
from fedrec.errors import BadInput
from fedrec.evaluation.task import Task

ALMOST = {"valid": ("validation", "validate", "val", "dev"), "test": ("testing", "tst")}
"""What others call the files of a part."""


def refuse_nothing_to_choose_on(task: Task, place: str | Path = "") -> None:
    """Data without the part on which the protocol chooses the round is bad input.

    ``place``: where the data lies, if it is a folder: files in it that almost have the right name are named.
    """
    part, data = task.protocol.selection.part, task.data
    if len((task.valid if part == "valid" else task.test).values):
        return
    word = "validation" if part == "valid" else "test"
    why = f"{data.name} has no {word} interactions, and {task.protocol.name} chooses the round on them"
    if data.part is None:
        raise BadInput(f"{why}; its users have too few: take users with more (--min-interactions) or another protocol")
    found = _almost(Path(place).expanduser(), part) if place else []
    near = f" ({names(found)} {'is' if len(found) == 1 else 'are'} not read)" if found else ""
    raise BadInput(f"{why}; put them into {part}.tsv, .csv or .parquet beside the other parts{near}")


def _almost(folder: Path, part: str) -> list[str]:
    """Files whose names were meant for a part."""
    if not folder.is_dir():
        return []
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    return [name for name in files if name.partition(".")[0].lower() in (part, *ALMOST[part])]

"""The list of the papers' tables and figures says everything, and names nothing that cannot be asked for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from fedrec.cli.analyse import app as analyses
from fedrec.methods.registry import names
from fedrec.recipes.published import PAPERS, find

PAGE = (Path(__file__).parents[1] / "docs" / "results" / "papers.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\S+ \S+) \| ([a-z ]+) \| (?:`([^`]+)`)? ?\| (.*) \|$", re.M)
PRINTED = {  # what the papers have, counted in them
    "fedca": ([str(n) for n in range(1, 13)], 12),
    "fedcia": (["1", "2", "3"], 5),
    "fed3cr": (["I", "II", "III", "IV"], 9),
    "fediar": (["1", "2", "3", "4"], 4),
    "feddae": (["1", "2", "3", "4"], 3),
}


def section(paper: str) -> str:
    found = re.split(r"^## ", PAGE, flags=re.M)
    (own,) = [part for part in found if part.lower().startswith(paper + "\n")]
    return own


def listed(paper: str) -> dict[str, tuple[str, str, str]]:
    """State, command and remark of each entry."""
    return {found[1]: (found[2], found[3] or "", found[4]) for found in ROW.finditer(section(paper))}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_is_listed_once(paper: str) -> None:
    tables, figures = PRINTED[paper]
    drawings = re.search(r"^Drawings: (.*)\.$", section(paper), re.M)
    assert drawings is not None
    entries = [found[1] for found in ROW.finditer(section(paper))] + drawings[1].split(", ")
    wanted = [f"Table {number}" for number in tables] + [f"Figure {n}" for n in range(1, figures + 1)]
    assert sorted(entries) == sorted(wanted)
    for state, command, remark in listed(paper).values():
        assert state in ("made", "partly", "not possible")
        assert bool(command) == (state != "not possible")
        assert remark


@pytest.mark.parametrize("paper", PAPERS)
def test_the_list_and_the_recipes_name_the_same_tables(paper: str) -> None:
    asked = set()
    for entry, (_, command, _) in listed(paper).items():
        words = shlex.split(command)
        if words[:2] == ["fedrec", "reproduce"]:
            assert words[2] == paper
            number = words[words.index("--table") + 1]
            assert entry == (number if number.startswith("Figure") else f"Table {number}")
            asked.add(number)
    assert asked == {str(table.number) for table in find(paper).tables}


def test_its_other_commands_are_there() -> None:
    known = set(get_command(analyses).commands)  # type: ignore[attr-defined]
    for paper in PAPERS:
        for _, command, _ in listed(paper).values():
            words = shlex.split(command)
            if words[:2] == ["fedrec", "analyse"]:
                assert words[2] in known
                assert words[2] != "sweep" or words[3] in names()
            if words[:2] == ["fedrec", "compare"]:
                methods = words[2 : next(n for n, word in enumerate(words) if word.startswith("--"))]
                assert {method.partition(":")[0] for method in methods} <= set(names())

"""``fedrec audit``: a method and a run, the table, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from command_line import Cli

WORLD = "scale:users=40,items=60,interactions=600"


def test_a_method_is_audited_into_a_table_a_page_and_a_file_for_cards(fedrec: Cli, tmp_path: Path) -> None:
    words = ("audit", "fedspectral", "--data", WORLD, "--set", "k=4", "--attack", "touched", "--attack", "boost")
    done = fedrec(*words, "--rounds", "2", "--out", "book", "--json", "audit.json", "--store", "cards.yaml")
    assert done.status == 0, done.err
    assert "1.00 / 1.00 (touched)" in done.out
    assert "adaptive" in done.err
    rows = json.loads((tmp_path / "audit.json").read_text())["rows"]
    assert {row["attack"] for row in rows} == {"touched", "", "boost"}
    assert "fedrec audit fedspectral" in (tmp_path / "book" / "audit.md").read_text()
    page = (tmp_path / "book" / "audit.html").read_text()
    assert "1.00 / 1.00 (touched)" in page
    assert "Who attacks, and what they see" in page
    cards = yaml.safe_load((tmp_path / "cards.yaml").read_text())
    assert cards["methods"]["fedspectral"]["items"].startswith("1.00 / 1.00")
    again = fedrec(*words, "--rounds", "2", "--out", "book")
    assert again.err == ""  # all of it is in the book


def test_a_run_is_audited_as_it_was(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec("run", "fedspectral", "--data", WORLD, "--rounds", "1", "--set", "noise=0.5", "--set", "clip=1",
                  "--out", "noisy").status == 0  # fmt: skip
    done = fedrec("audit", "noisy", "--attack", "touched", "--json", "a.json")
    assert done.status == 0, done.err
    figures = json.loads((tmp_path / "a.json").read_text())["rows"][0]["figures"]
    assert figures["precision"] < 0.5  # noise on every row: nothing is zero any more
    refused = fedrec("audit", "noisy", "--data", "demo")
    assert refused.status == 2
    assert "audited as it was" in refused.err


def test_whole_histories_in_a_sum_are_shown_on_every_surface(fedrec: Cli, tmp_path: Path) -> None:
    sparse = "scale:users=40,items=200,interactions=300"
    words = ("audit", "fedease", "--secure", "--data", sparse, "--attack", "pairs", "--attack", "columns")
    done = fedrec(*words, "--out", "book", "--json", "audit.json")
    assert done.status == 0, done.err
    assert "columns  (round 3; none, secure sums: sum; seed 0)  not read" in done.err
    rows = json.loads((tmp_path / "audit.json").read_text())["rows"]
    (told,) = [row["figures"] for row in rows if row["attack"] == "pairs" and row["view"] == "sum"]
    assert told["histories"] > 0 == told["false"]
    line = ["fedease", "pairs", "sum", "40", f"{told['standing']:.0f}", f"{told['histories']:.0f}"]
    assert " ".join(line) in " ".join(done.out.split())
    assert f"| {' | '.join(line)} |" in (tmp_path / "book" / "audit.md").read_text()
    assert "Whole histories" in (tmp_path / "book" / "audit.html").read_text()
    hidden = fedrec(*words, "--epsilon", "1")
    assert hidden.status == 0, hidden.err
    assert "fedease pairs sum 40 0 0 0 %" in " ".join(hidden.out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "audit what?"),
        (("fedagv",), "did you mean 'fedavg'"),
        (("popularity",), "is centralised"),
        (("fedavg", "--attack", "sing"), "did you mean 'sign'"),
        (("fedavg", "--share", "2"), "--share 2 is out of range"),
        (("fedca", "--secure"), "leave --secure out"),
        (("fedavg", "--robust", "bond"), "did you mean 'bound'"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str, fedrec: Cli) -> None:
    done = fedrec("audit", *words)
    assert done.status == 2
    assert said in done.err
    assert done.err.count("\n") == 1


def test_cards_of_attacks_and_of_methods(fedrec: Cli) -> None:
    listed = fedrec("audit", "--list")
    assert listed.status == 0
    assert "imia: whether an item is in a history" in listed.out
    card = fedrec("methods", "fedavg")
    assert "defence         rows" in card.out

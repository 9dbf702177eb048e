"""Data without the part on which the round is chosen is refused before training; figures of nobody are null."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from command_line import Cli
from fedrec.runs.folder import RunFolder

PARTS = {"train": range(4), "valid": range(4, 5), "test": range(5, 6)}


def ready_split(folder: Path, **named: str) -> str:
    """A ready split; ``named``: what the file of a part is called, nothing to leave it out."""
    folder.mkdir()
    for part, places in PARTS.items():
        if name := named.get(part, f"{part}.csv"):
            rows = "".join(f"u{u},i{(u + i) % 14}\n" for u in range(12) for i in places)
            (folder / name).write_text("user,item\n" + rows)
    return folder.name


@pytest.mark.parametrize(("name", "said"), [("validation.csv", "(validation.csv is not read)"), ("", "other parts\n")])
@pytest.mark.parametrize("verb", [("run", "fedavg"), ("compare", "fedavg", "popularity", "--out", "c")])
def test_a_split_without_a_valid_part_is_refused(
    fedrec: Cli, tmp_path: Path, name: str, said: str, verb: tuple[str, ...]
) -> None:
    done = fedrec(*verb, "--data", ready_split(tmp_path / "mine", valid=name), "--rounds", "1", "--quiet")
    assert (done.status, done.err.count("\n")) == (2, 1), done.err
    assert done.err.startswith("fedrec: mine has no validation interactions, and strict chooses the round on them; put")
    assert "valid.tsv, .csv or .parquet" in done.err
    assert said in done.err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "c") == ["mine"]


def test_users_with_too_few_for_a_valid_item_are_refused(fedrec: Cli, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u in range(9) for i in range(3)))
    done = fedrec("run", "fedavg", "--data", "few.csv", "--protocol", "paper-fedcia", "--rounds", "1")
    assert done.status == 2
    assert "few has no validation interactions, and paper-fedcia chooses the round on them; its users" in done.err


def test_who_chooses_on_the_test_part_needs_no_other(fedrec: Cli, tmp_path: Path) -> None:
    data = ready_split(tmp_path / "mine", valid="")
    asked = ("--protocol", "paper-fedca", "--min-interactions", "1", "--rounds", "1", "--set", "dim=4", "--quiet")
    done = fedrec("run", "fedavg", "--data", data, *asked, "--out", "r", "--json", "r.json")
    assert done.status == 0, done.err
    assert fedrec("recommend", "r", "--user", "u3", "-k", "2").out.count("\n") == 2
    for text in (tmp_path / "r.json", tmp_path / "r" / "result.json"):
        found = json.loads(text.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        assert set(found["metrics"]["valid"].values()) == {None}
        assert isinstance(found["metrics"]["test"]["HR@10"], float)
    assert math.isnan(RunFolder.open(tmp_path / "r").result()["metrics"]["valid"]["HR@10"])
    assert "nan" not in done.out
    compared = fedrec("compare", "fedavg", "--data", data, *asked, "--out", "c")
    assert compared.status == 0, compared.err


def test_a_run_of_which_no_round_was_chosen_is_not_told_to_leave_an_option_out(fedrec: Cli, tmp_path: Path) -> None:
    """Such runs were made before they were refused."""
    assert fedrec("run", "popularity", "--no-models", "--out", "r", "--quiet").status == 0
    said = fedrec("recommend", "r", "--user", "u001").err
    assert said == "fedrec: r has no saved model; run it without --no-models\n"
    folder = RunFolder.open(tmp_path / "r")
    folder.finish({**folder.result(), "selected_round": 0}, None, None, None)
    said = fedrec("recommend", "r", "--user", "u001").err
    assert said == "fedrec: r has no saved model: there was no user to choose a round on; run it on other data\n"

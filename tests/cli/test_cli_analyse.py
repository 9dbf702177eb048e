"""``fedrec analyse`` on the demo world."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from command_line import Cli

QUICK = ("--ks", "4,8", "--filter-rounds", "2", "--rounds", "2", "--trained", "fedavg", "--out", "found")


def test_filters_leave_a_figure_and_its_data_and_are_read_the_second_time(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("analyse", "filters", *QUICK, "--noise", "0,0.5", "--quiet")
    assert done.status == 0, done.err
    picture = (tmp_path / "found" / "filters-demo-strict.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    with open(tmp_path / "found" / "filters-demo-strict.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = {row["series"] for row in rows if not row["round"] and not row["noise"]}
    assert lines == {"ease", "gfcf", "popularity"}
    for k in (4, 8):
        own = [row for row in rows if row["series"] == f"fedspectral, k = {k}"]
        assert [row["round"] for row in own] == ["1", "2"]
        first, second = (int(row["bytes_per_client"]) for row in own)
        assert second == 2 * first > 2 * 4 * 160 * k  # up and down, 160 items
    noisy = {(row["series"], row["noise"]): float(row["HR@10/99"]) for row in rows if row["noise"] and not row["round"]}
    assert set(noisy) == {(name, scale) for name in ("fedspectral", "fedease", "fedavg") for scale in ("0", "0.5")}
    assert noisy["fedease", "0"] == pytest.approx(next(float(r["HR@10/99"]) for r in rows if r["series"] == "ease"))

    again = fedrec("analyse", "filters", *QUICK, "--noise", "0,0.5")
    assert again.status == 0
    assert "read from" in again.err
    assert "done in" not in again.err
    assert (tmp_path / "found" / "filters-demo-strict.png").read_bytes() == picture


def test_one_scale_of_noise_leaves_its_panel_out(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec("analyse", "filters", *QUICK, "--noise", "0", "--quiet").status == 0
    assert not list((tmp_path / "found").glob("*/*noise*"))


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--ks", "16,many", "list of numbers"),
        ("--noise", "0,-1", "negative"),
        ("--trained", "fedavgg", "fedavg"),
        ("--jobs", "0", "1 or more"),
    ],
)
def test_bad_input_is_one_line(fedrec: Cli, tmp_path: Path, option: str, value: str, says: str) -> None:
    done = fedrec("analyse", "filters", option, value)
    assert done.status == 2
    assert says in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "analyses").exists()


def test_the_leak_alone_follows_its_formula_and_stands_beside_a_run(fedrec: Cli, tmp_path: Path) -> None:
    shared = ("--data", "demo", "--protocol", "paper-fedca")
    ran = fedrec("run", "local", *shared, "--rounds", "6", "--no-models", "--out", "alone", "--quiet")
    assert ran.status == 0
    done = fedrec("analyse", "leak", "alone", *shared, "--rounds", "6", "--out", "found")
    assert done.status == 0
    assert "elimination alone" in done.out
    with open(tmp_path / "found" / "leak-demo-paper-fedca.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    curve = {int(row["round"]): float(row["value"]) for row in rows if row["series"] == "elimination alone"}
    assert sorted(curve) == [1, 2, 3, 4, 5, 6]
    assert 0.1 < curve[1] < curve[6] <= 1
    assert {row["series"] for row in rows} == {"elimination alone", "alone"}

    honest = fedrec("analyse", "leak", "--data", "demo", "--protocol", "strict", "--rounds", "6", "--out", "found")
    assert honest.status == 0
    with open(tmp_path / "found" / "leak-demo-strict.csv", newline="") as file:
        assert {row["value"] for row in csv.DictReader(file)} == {"0.100000"}  # chance


def test_the_leak_analysis_wants_runs_of_the_same_protocol(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec("run", "popularity", "--data", "demo", "--no-models", "--out", "other", "--quiet").status == 0
    done = fedrec("analyse", "leak", "other", "--data", "demo", "--protocol", "paper-fedca")
    assert done.status == 2
    assert "paper-fedca" in done.err
    assert done.err.count("\n") == 1


def test_items_of_a_feddae_run_are_mapped(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec("run", "feddae", "--rounds", "1", "--set", "dim=4", "--out", "dae", "--quiet").status == 0
    done = fedrec("analyse", "items", "dae", "--users", "u003,u010", "--out", "found")
    assert done.status == 0, done.err
    assert "user u003: gate 0." in done.out
    assert (tmp_path / "found" / "items-dae.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "found" / "items-dae.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 4 * 160  # users, panels, items
    own = {row["item"] for row in rows if row["user"] == "u003" and row["interacted"] == "1"}
    assert 18 <= len(own) <= 39  # training items of a user of the demo world
    shown = [(row["user"], row["x"], row["y"]) for row in rows if row["view"] == "global"]
    assert shown[:160] == [("u003", x, y) for _, x, y in shown[160:]], "everybody has the same global encoder"
    assert fedrec("analyse", "items", "dae", "--users", "nobody").status == 2
    assert "a run of feddae" in fedrec("analyse", "views", "dae").err
    assert "--clients and --count are for a run of fedcia" in fedrec("analyse", "items", "dae", "--clients", "2").err


def test_tables_of_fedcia_clients_are_mapped_at_every_stage(fedrec: Cli, tmp_path: Path) -> None:
    own = ("--rounds", "1", "--clients", "6", "--set", "dim=4", "--set", "backbone=mf", "--quiet")
    assert fedrec("run", "fedcia", *own, "--out", "cia").status == 0
    done = fedrec("analyse", "items", "cia", "--clients", "2", "--count", "12", "--out", "found")
    assert done.status == 0, done.err
    assert "weighted summation: distance between clients 0.000, correlation of their similarities 1.000" in done.out
    assert (tmp_path / "found" / "items-cia.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "found" / "items-cia.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    stages = ["start", "trained", "weighted summation", "collaborative information"]
    assert [row["stage"] for row in rows] == [stage for stage in stages for _ in range(2 * 12)]
    assert len({row["client"] for row in rows}) == 2
    places = {stage: [(row["x"], row["y"]) for row in rows if row["stage"] == stage] for stage in stages}
    for stage, alike in zip(stages, (True, False, True, False), strict=True):
        assert (places[stage][:12] == places[stage][12:]) == alike, stage
    for refused, said in (
        (("cia", "--clients", "7"), "--clients 7 is more than the run has; give at most 6"),
        (("cia", "--users", "u003"), "--users is for a run of feddae"),
    ):
        done = fedrec("analyse", "items", *refused)
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert said in done.err


def test_two_views_are_compared_run_by_run(fedrec: Cli, tmp_path: Path) -> None:
    for method in ("fed3cr", "fedrap"):
        assert fedrec("run", method, "--rounds", "1", "--set", "dim=4", "--out", method, "--quiet").status == 0
    done = fedrec("analyse", "views", "fed3cr", "fedrap", "--client", "u007", "--depth", "20", "--out", "found")
    assert done.status == 0, done.err
    with open(tmp_path / "found" / "views-overlap.csv", newline="") as file:
        overlaps = list(csv.DictReader(file))
    assert [row["run"] for row in overlaps] == ["fed3cr"] * 120 + ["fedrap"] * 120
    assert all(0 <= float(row["overlap"]) <= 1 for row in overlaps)
    with open(tmp_path / "found" / "views-correlation.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 4 * 4
    for name in ("views-overlap", "views-correlation"):
        assert (tmp_path / "found" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "has no client 'zz'" in fedrec("analyse", "views", "fed3cr", "--client", "zz").err
    assert "feddae" in fedrec("analyse", "items", "fedrap").err


def test_what_each_view_reaches_alone_is_measured_over_rounds(fedrec: Cli, tmp_path: Path) -> None:
    asked = ("--rounds", "2", "--set", "dim=4", "--set", "epochs=1", "--out", "found", "--quiet")
    done = fedrec("analyse", "views", "fedrap", "fed3cr", *asked)
    assert done.status == 0, done.err
    assert "fedrap, private" in done.out
    assert (tmp_path / "found" / "views-demo-strict.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "found" / "views-demo-strict.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    parts = {row["part"] for row in rows}
    assert parts == {f"{method}, {part}" for method in ("fedrap", "fed3cr") for part in ("full", "shared", "private")}
    assert {row["metric"] for row in rows} >= {"HR@10/99", "spread"}
    assert {row["round"] for row in rows} == {"1", "2"}
    refused = fedrec("analyse", "views", "fedavg")
    assert refused.status == 2
    assert "not have two views" in refused.err
    assert refused.err.count("\n") == 1


SWEPT = ("analyse", "sweep", "fedca", "--rounds", "2", "--set", "epochs=1", "--out", "found")


def test_a_sweep_shows_a_setting_and_is_read_the_second_time(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec(*SWEPT, "--vary", "alpha=0,0.5", "--seeds", "0,1", "--quiet")
    assert done.status == 0, done.err
    with open(tmp_path / "found" / "sweep-demo-strict-fedca-alpha.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["alpha"], row["part"]) for row in rows} == {
        (a, part) for a in ("0", "0.5") for part in ("valid", "test")
    }
    assert len(list((tmp_path / "found" / "sweep-demo-strict-fedca-alpha").iterdir())) == 4
    assert (tmp_path / "found" / "sweep-demo-strict-fedca-alpha.png").read_bytes().startswith(b"\x89PNG")
    again = fedrec(*SWEPT, "--vary", "alpha=0,0.5", "--seeds", "0,1")
    assert again.status == 0
    assert "done in" not in again.err


def test_a_sweep_varies_options_of_the_run_too(fedrec: Cli, tmp_path: Path) -> None:
    assert fedrec(*SWEPT, "--vary", "participation=0.5,1", "--quiet").status == 0
    folders = (tmp_path / "found" / "sweep-demo-strict-fedca-participation").iterdir()
    assert {folder.name for folder in folders} == {"fedca-participation0.5-seed0", "fedca-participation1-seed0"}


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        ("alpha", "not a setting with values"),
        ("alpha=1", "two values"),
        ("alpha=0,x", "numbers"),
        ("alfa=0,1", "alpha"),
    ],
)
def test_a_sweep_of_nothing_is_bad_input(fedrec: Cli, tmp_path: Path, vary: str, says: str) -> None:
    done = fedrec(*SWEPT, "--vary", vary)
    assert done.status == 2
    assert says in done.err
    assert not (tmp_path / "found").exists()


def test_what_a_guarantee_costs_is_a_table_and_two_figures(fedrec: Cli, tmp_path: Path) -> None:
    world = ("--data", "planted", "--secure-work", "sums", "--epsilons", "8", "--copies", "1,2", "--at", "8")
    done = fedrec("analyse", "privacy", *world, "--out", "found", "--quiet")
    assert done.status == 0, done.err
    with open(tmp_path / "found" / "privacy-planted-strict-fedease-epsilon.csv", newline="") as file:
        rows = {row["run"]: row for row in csv.DictReader(file)}
    assert set(rows) == {
        "popularity", "fedease", "fedease-secure", "fedease-epsilon8-copies1", "fedease-epsilon8-copies2",
    }  # fmt: skip
    assert rows["fedease"]["epsilon"] == "-"
    assert 7.9 < float(rows["fedease-epsilon8-copies1"]["epsilon"]) <= 8
    assert int(rows["fedease-epsilon8-copies2"]["users"]) == 2 * int(rows["fedease"]["users"])
    assert rows["fedease"]["HR@10/99"] == rows["fedease-secure"]["HR@10/99"]
    for what in ("epsilon", "users"):
        picture = tmp_path / "found" / f"privacy-planted-strict-fedease-{what}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_a_guarantee_costs_where_no_candidates_are_sampled(fedrec: Cli, tmp_path: Path) -> None:
    """All runs were made, and then the figure of a metric that is not there failed."""
    world = ("--data", "planted", "--protocol", "paper-feddae", "--epsilons", "8", "--copies", "1", "--at", "8")
    done = fedrec("analyse", "privacy", *world, "--secure-work", "sums", "--out", "found", "--quiet")
    assert done.status == 0, done.err
    assert "HR@10" in done.out
    with open(tmp_path / "found" / "privacy-planted-paper-feddae-fedease-users.csv", newline="") as file:
        rows = {row["run"]: row for row in csv.DictReader(file)}
    assert 0 < float(rows["fedease"]["HR@10"]) <= 1


def test_stages_of_a_round_of_fedca(fedrec: Cli) -> None:
    done = fedrec("analyse", "stages", "--data", "demo", "--repeat", "1")
    assert done.status == 0, done.err
    for stage in ("local training", "SVD", "similarity", "complementarity", "optimisation"):
        assert stage in done.out
    assert done.out.count(" s ") >= 5
    refused = fedrec("analyse", "stages", "--data", "demo", "--set", "beta=0")
    assert refused.status == 2
    assert "alpha and beta > 0" in refused.err


def test_sparsity_trains_on_shares_and_evaluates_on_the_whole(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("analyse", "sparsity", "fedavg", "local", "--shares", "0.2,1", "--rounds", "2", "--out", "found")
    assert done.status == 0, done.err
    with open(tmp_path / "found" / "sparsity-demo-strict.csv", newline="") as file:
        rows = {(row["share"], row["method"], row["metric"]): row["value"] for row in csv.DictReader(file)}
    assert {key[:2] for key in rows} == {(share, name) for share in ("0.2", "1") for name in ("fedavg", "local")}
    assert fedrec("run", "fedavg", "--rounds", "2", "--out", "whole", "--quiet", "--no-models").status == 0
    figures = json.loads((tmp_path / "whole" / "result.json").read_text())["metrics"]["test"]
    assert float(rows["1", "fedavg", "HR@10/99"]) == pytest.approx(figures["HR@10/99"], abs=1e-6)


@pytest.mark.parametrize(
    ("shares", "says"), [("0.4,two", "not a list of numbers"), ("0,1", "above 0"), ("2", "most 1")]
)
def test_a_share_that_is_none_is_bad_input(fedrec: Cli, tmp_path: Path, shares: str, says: str) -> None:
    done = fedrec("analyse", "sparsity", "fedavg", "--shares", shares, "--out", "found")
    assert done.status == 2
    assert says in done.err
    assert not (tmp_path / "found").exists()


def test_skew_is_measured_over_the_number_of_similar_clients(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("analyse", "skew", "--most", "20", "--rounds", "2", "--quiet", "--out", "found")
    assert done.status == 0, done.err
    with open(tmp_path / "found" / "skew-demo-strict.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["s"], row["part"]) for row in rows} == {(s, part) for s in ("10", "20") for part in ("train", "test")}
    assert (tmp_path / "found" / "skew-demo-strict.png").read_bytes().startswith(b"\x89PNG")
    refused = fedrec("analyse", "skew", "--most", "9")
    assert (refused.status, "at least 10" in refused.err) == (2, True)

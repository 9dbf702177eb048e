"""``fedrec reproduce`` as a user calls it, on a made-up paper whose data set is the demo world."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import Cli
from fedrec.experiment import pool as pools
from fedrec.experiment import reproduce as reproducing
from fedrec.experiment import run as running
from fedrec.experiment.estimate import Estimate
from fedrec.experiment.jobs import Job
from fedrec.experiment.resolve import resolve
from fedrec.experiment.worker import UnderWay
from fedrec.recipes import published
from fedrec.recipes.published import PAPERS, Column, Paper, PublishedTable, TableRow, Value, find
from fedrec.runs.alone import alone
from fedrec.runs.settings import RunSettings

TINY = {"epochs": 1, "dim": 4}


def values(text: str, percent: bool = False) -> tuple[Value, ...]:
    return tuple(Value.parse(word, percent) for word in text.split())


def small_table(**more: Any) -> PublishedTable:
    rows = (
        TableRow("FCF", "fcf", {"demo": values("0.4327 0.2497")}, "PMF", TINY),
        TableRow("Popular", "popularity", {"demo": values("0.1476±0.0100 0.0700")}),
        TableRow("Nobody", "nobody", {"demo": values("0.9000 0.8000")}),
        TableRow("Thin", "fcf", {"demo": values("0.1000 0.1000")}, blocked="a share of the data"),
    )
    columns = (Column("demo", "Demo world", "demo"), Column("away", "MC-100K", "microlens-100k"))
    given = {"columns": columns[:1], "rows": rows, **more}
    metrics = (("HR@10/99", "NDCG@10/99"), ("HR@10", "NDCG@10"))
    return PublishedTable("fedca", "2", "small", *metrics, protocol="paper-fedca", rounds=2, **given)


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[PublishedTable], None]:
    monkeypatch.setenv("FEDREC_DATA", str(tmp_path / "nothing"))

    def put(table: PublishedTable) -> None:
        monkeypatch.setattr(published, "find", lambda name: Paper(name, "made up", "paper-fedca", 5, (table,)))

    return put


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which runs were really carried out."""
    found: list[str] = []
    execute = running.execute

    def counted(settings: RunSettings, out: Path | None = None, *rest: Any, **more: Any) -> Any:
        found.append(f"{settings.method} {settings.protocol} {settings.seed}")
        return execute(settings, out, *rest, **more)

    monkeypatch.setattr(running, "execute", counted)
    return found


def test_a_table_with_published_ours_and_strict(
    fedrec: Cli, paper: Callable[[PublishedTable], None], ran: list[str], tmp_path: Path
) -> None:
    paper(small_table())
    done = fedrec("reproduce", "fedca", "--seeds", "0,1", "--jobs", 1, "--out", "o", "--json", "t.json", "--quiet")
    assert done.status == 0, done.err
    for word in ("published", "ours", "off", "strict", "control: local", "not in this version: the method nobody",
                 "not in this version: needs a share of the data", "by elimination"):  # fmt: skip
        assert word in done.out
    # fcf, three controls: two protocols, two seeds; the paper's row Popular is the control popularity
    assert len(ran) == len(set(ran)) == 4 * 2 * 2
    with open(tmp_path / "o" / "table2.csv", encoding="utf-8") as file:
        rows = {(row["row"], row["metric"]): row for row in csv.DictReader(file)}
    line = rows["FCF (PMF)", "HR@10/99"]
    assert line["published"] == "0.4327"
    assert float(line["difference_percent"]) == pytest.approx(100 * (float(line["ours"]) / 0.4327 - 1))
    results = [
        json.loads(path.read_text()) for path in (tmp_path / "o" / "runs" / "demo" / "strict").glob("fcf-*/result.json")
    ]
    assert float(line["strict"]) == pytest.approx(sum(r["metrics"]["test"]["HR@10/99"] for r in results) / 2)
    assert rows["Popular", "HR@10/99"]["published_spread"] == "0.0100"
    assert rows["Nobody", "HR@10/99"]["ours"] == ""
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["schema"] == "fedrec.reproduce/1"
    assert content["cells"][0]["published"] == 0.4327
    page = (tmp_path / "o" / "table2.html").read_text(encoding="utf-8")
    assert "fedrec reproduce fedca --seeds 0,1" in page
    assert (tmp_path / "o" / "table2.md").read_text(encoding="utf-8").count("| FCF (PMF) |") == 1
    assert (tmp_path / "o" / "table2-demo.png").read_bytes().startswith(b"\x89PNG")


def test_without_strict_nothing_is_run_under_it_and_what_is_there_is_shown(
    fedrec: Cli, paper: Callable[[PublishedTable], None], ran: list[str]
) -> None:
    paper(small_table())
    words = ("reproduce", "fedca", "--jobs", 1, "--out", "o", "--quiet", "--json", "t.json")
    assert fedrec(*words, "--seeds", "0", "--no-strict").status == 0
    assert {run.split()[1] for run in ran} == {"paper-fedca"}
    assert json.loads(Path("t.json").read_text())["cells"][0]["strict"] is None
    assert fedrec(*words, "--seeds", "0").status == 0
    both = list(ran)
    shown = fedrec(*words, "--seeds", "0", "--no-strict")
    assert ran == both
    assert json.loads(Path("t.json").read_text())["cells"][0]["strict"] is not None, shown.out


def test_an_interrupted_table_goes_on_without_repeating_a_cell(
    fedrec: Cli, paper: Callable[[PublishedTable], None], ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paper(small_table())
    execute = running.execute
    wanted: list[str] = []

    def stopped(settings: RunSettings, out: Path | None = None, *rest: Any, **more: Any) -> Any:
        if len(wanted) == 3:
            raise KeyboardInterrupt
        wanted.append(settings.method)
        return execute(settings, out, *rest, **more)

    words = ("reproduce", "fedca", "--seeds", "0", "--jobs", 1, "--out", "o", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(running, "execute", stopped)
        first = fedrec(*words)
    assert first.status == 130
    assert "the same command goes on from there" in first.err
    half = list(ran)
    assert len(half) == 3
    shown = fedrec(*words, "--so-far")
    assert shown.status == 0, shown.err
    assert "[so far: 5 runs are missing]" in shown.out
    assert len(ran) == 3  # nothing was started
    second = fedrec(*words)
    assert second.status == 0, second.err
    assert len(ran) == len(set(ran)) == 4 * 2  # every cell once over both calls
    third = fedrec(*words)
    assert third.status == 0
    assert len(ran) == 4 * 2
    assert third.out == second.out


def test_a_cell_that_fails_is_named_and_the_others_go_on(
    fedrec: Cli, paper: Callable[[PublishedTable], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    paper(small_table())
    execute = running.execute

    def broken(settings: RunSettings, out: Path | None = None, *rest: Any, **more: Any) -> Any:
        if settings.method == "fcf" and settings.protocol == "strict":
            raise FloatingPointError("not finite")
        return execute(settings, out, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(running, "execute", broken)
        done = fedrec("reproduce", "fedca", "--seeds", "0", "--jobs", 1, "--out", "o", "--rows", "fcf")
    assert done.status == 1
    assert "failed: FCF (PMF) on demo, strict, seed 0: FloatingPointError: not finite" in done.out
    assert "FAILED: FloatingPointError" in done.err
    assert "left" in done.err  # the estimate of time
    again = fedrec("reproduce", "fedca", "--seeds", "0", "--jobs", 1, "--out", "o", "--rows", "fcf", "--quiet")
    assert again.status == 0  # what failed is tried again


def test_quick_is_marked_everywhere(fedrec: Cli, paper: Callable[[PublishedTable], None], tmp_path: Path) -> None:
    paper(small_table(rows=small_table().rows[1:2]))
    done = fedrec("reproduce", "fedca", "--seeds", "0", "--quick", "--jobs", 1, "--out", "o", "--quiet")
    assert done.status == 0, done.err
    folder = tmp_path / "o" / "quick"
    assert "QUICK" in done.out
    assert (folder / "table2-quick.md").read_text(encoding="utf-8").count("QUICK") >= 2
    assert "it is not a result" in (folder / "table2-quick.html").read_text(encoding="utf-8")
    assert ",1," in (folder / "table2-quick.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_processes_of_their_own_give_the_same_table(fedrec: Cli, paper: Callable[[PublishedTable], None]) -> None:
    paper(small_table(rows=small_table().rows[:1]))
    alone = fedrec("reproduce", "fedca", "--seeds", "0", "--jobs", 1, "--out", "a", "--quiet")
    together = fedrec("reproduce", "fedca", "--seeds", "0", "--jobs", 2, "--memory-mb", 3000, "--out", "b", "--quiet")
    assert together.status == 0, together.err
    assert together.out.splitlines()[:-1] == alone.out.splitlines()[:-1]


def test_missing_data_says_which_file_and_where(
    fedrec: Cli, paper: Callable[[PublishedTable], None], tmp_path: Path
) -> None:
    row = TableRow("FCF", "fcf", {"away": values("0.1 0.1")})
    paper(small_table(columns=(Column("away", "MC-100K", "microlens-100k"),), rows=(row,)))
    done = fedrec("reproduce", "fedca")
    assert done.status == 2
    assert "MicroLens-100k_pairs.csv" in done.err
    assert str(tmp_path / "nothing" / "microlens-100k") in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which paper?"),
        (["fedcaa"], "did you mean 'fedca'"),
        (["fedca", "--table", "99"], "it has 2, 3, 4, 5, 6, 7"),
        (["fedca", "--rows", "fedcaa"], "did you mean 'fedca'"),
        (["fedca", "--columns", "ml-100"], "did you mean 'ml-100k'"),
        (["fedca", "--seeds", "x"], "not a list of seeds"),
        (["fedca", "--jobs", "0"], "--jobs 0 is out of range"),
    ],
)
def test_bad_input_is_one_line(fedrec: Cli, words: list[str], said: str, tmp_path: Path) -> None:
    done = fedrec("reproduce", *words, "--data-dir", tmp_path)
    assert done.status == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_fedca_table_7_equals_the_paper_to_the_digit(fedrec: Cli, tmp_path: Path) -> None:
    done = fedrec("reproduce", "fedca", "--table", 7, "--out", "o")
    assert done.status == 0, done.err
    assert "misprint" in done.out
    with open(tmp_path / "o" / "table7.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 4 * 2
    off = {(r["published"], r["ours"]) for r in rows if abs(float(r["published"]) - float(r["ours"])) > 0.005}
    assert off == {("494.20", "494.0")}
    for word in ("223.50", "213.56", "261.88", "259.63", "499.19", "4934.50", "2468.19"):
        assert word in done.out


def test_recipes_of_all_papers_can_be_read() -> None:
    tables = {name: [table.number for table in find(name).tables] for name in PAPERS}
    assert tables["fedca"] == ["2", "3", "4", "5", "6", "7", "9", "10", "11", "12"]
    assert tables["fedcia"] == ["1", "3", "Figure 5"]
    assert tables["fed3cr"] == ["II", "III", "IV", "Figure 4", "Figure 8", "Figure 9"]
    assert (tables["fediar"], tables["feddae"]) == (["2", "3", "4", "Figure 3"], ["2", "3", "4"])
    for name in PAPERS:
        for table in find(name).tables:
            for row in table.rows:
                assert set(row.published) <= {column.key for column in table.columns}
                for own in row.published.values():
                    assert (set(own) == {None}) == table.name.startswith("Figure")
                    assert table.kind == "bytes" or all(0 < value.number < 1 for value in own if value is not None)


@pytest.mark.parametrize(
    ("paper", "table", "row", "column", "place", "printed"),
    [
        ("fedca", "2", "FedCA (PMF)", "ml-100k", 0, "0.8738"),
        ("fedca", "2", "PFedRec (NCF)", "ml-1m", 1, "0.4041"),
        ("fedca", "12", "rho=0.8", "ml-100k", 1, "0.7595"),
        ("fedcia", "1", "FedCIA (GF-CF) (Collaborative information)", "ml-100k", 0, "0.2356"),
        ("fed3cr", "II", "Fed3CR (federated)", "douban-book", 1, "0.3877"),
        ("fediar", "2", "FedIAR", "filmtrust", 2, "0.9563"),
        ("feddae", "2", "FedDAE (federated)", "ml-100k", 0, "0.1232"),
        ("feddae", "4", "FedDAE, w=0.75 (kappa^2=1)", "ml-100k", 1, "0.0450"),
    ],
)
def test_published_values_keep_their_digits(
    paper: str, table: str, row: str, column: str, place: int, printed: str
) -> None:
    found = next(one for one in find(paper).table(table).rows if one.name == row)
    value = found.published[column][place]
    assert value is not None
    assert str(value.number) == printed


def test_rows_of_methods_that_are_here_have_valid_settings() -> None:
    """A setting that a method does not have would lose its row silently."""
    from fedrec.methods.registry import names

    lost = []
    for name in PAPERS:
        for table in find(name).tables:
            for row in table.rows:
                column = next(c for c in table.columns if c.data and c.key in row.published)
                if row.blocked or row.method not in names():
                    continue
                try:
                    resolve(row.method, {"data": column.data, "rounds": 1, "settings": dict(row.settings)})
                except Exception as problem:
                    lost.append(f"{name} {table.number} {row.name}: {problem}")
    allowed = [text for text in lost if "lightgcn" not in text.lower() and "one step" not in text]
    assert allowed == []


@pytest.mark.parametrize(
    ("paper", "data", "least"),
    [("fediar", "filmtrust", 5), ("feddae", "amazon-video", 10), ("fed3cr", "douban-book", None)],
)
def test_both_protocols_evaluate_the_same_users(tmp_path: Path, paper: str, data: str, least: int | None) -> None:
    """A paper's filter goes with its protocol; `strict` of itself would take the data set's usual one."""
    table = find(paper).tables[0]
    column = next(column for column in table.columns if column.data == data)
    row = next(row for row in table.rows if row.method == "fedmf" or row.method == "fedvae")
    work = reproducing.Work(table, (0,), tmp_path, False, (), {})
    ours, strict = reproducing.settings_of(row, column, 0, work, {})
    assert (ours.min_interactions, strict.min_interactions) == (None, least)


def test_rows_that_mean_the_same_run_share_it(tmp_path: Path) -> None:
    """FedCA's main row is in most of its tables: Table 2, delta = 0 of 5, cos of 11, rho = 0.8 of 12."""
    folders = set()
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").touch()
    for number, row in (("2", "pmf/fedca"), ("5", "delta=0"), ("11", "cos"), ("12", "rho=0.8")):
        table = find("fedca").table(number).chosen([row], ["ml-100k"])
        work = reproducing.plan(table, [0], tmp_path / "out", given={"data_dir": tmp_path})
        folders.add(next(spot.ours[0].folder for spot in work.spots if not spot.control))
    assert len(folders) == 1


def test_the_estimate_prefers_what_is_alike() -> None:
    estimate = Estimate()
    slow = RunSettings(method="fedca", data="ml-1m", protocol="strict")
    quick = RunSettings(method="fcf", data="demo", protocol="strict")
    assert estimate.left([slow], {}, 1) is None
    estimate.add(quick, 10.0)
    assert estimate.of(slow) == 10.0
    once = RunSettings(method="popularity", data="demo", protocol="strict", rounds=1)
    alone = Estimate()
    alone.add(once, 0.5)
    assert alone.of(slow) == 0.5 * slow.rounds  # another kind: by its rounds
    estimate.add(slow, 100.0)
    assert estimate.of(slow) == 100.0
    assert estimate.left([slow, quick], {0: (slow, 50.0, 0.5)}, 2) == pytest.approx((100 + 10 + 50) / 2)


def test_memory_for_all_runs_is_named_as_in_compare(fedrec: Cli, tmp_path: Path) -> None:
    """It was called --memory-mb alone, which means a block's memory elsewhere; that name goes on."""
    for name in ("--total-memory-mb", "--memory-mb"):
        done = fedrec("reproduce", "fedca", name, 3)
        assert (done.status, "--total-memory-mb 3 is out of range; give 256 or more" in done.err) == (2, True)
    assert not list(tmp_path.iterdir())


def test_a_large_run_waits_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, int]] = []

    class Fake:
        """A worker that ends each of its runs at once."""

        def __init__(self) -> None:
            self.under_way: UnderWay | None = None
            self.memory_mb = 0.0

        def shares(self, job: Job) -> int:
            return 0

        def take(self, job: Job, need: float) -> None:
            begun.append((job.settings.data, len(pool._busy())))
            self.under_way, self.memory_mb = UnderWay(job, 0.0, need), need

    jobs = [
        Job(RunSettings(method=method, data=data, settings={"dim": 16}), tmp_path / f"{i}", "new")
        for i, (method, data) in enumerate([("fedca", "ml-1m"), ("fedca", "ml-1m"), ("fcf", "demo")])
    ]
    pool = pools._Pool(jobs, 3, 3, 8000, pools.Silent(), Estimate())

    def ended(worker: Any) -> None:
        worker.under_way, worker.memory_mb = None, 0.0

    monkeypatch.setattr(pools, "started", lambda limits: Fake())
    monkeypatch.setattr(pools, "ready", lambda workers, seconds: workers)
    monkeypatch.setattr(pool, "_ended", ended)
    pool._start_what_fits()
    # the second large one does not fit beside the first; the small one does
    assert begun == [("ml-1m", 0), ("demo", 1)]
    for worker in pool.workers:
        ended(worker)
    pool._start_what_fits()
    assert begun[2:] == [("ml-1m", 0)]
    assert len(pool.workers) == 2  # nobody was started for it


def test_two_at_once_in_one_folder_are_refused(
    fedrec: Cli, paper: Callable[[PublishedTable], None], tmp_path: Path
) -> None:
    paper(small_table(rows=small_table().rows[1:2]))
    asked = ("reproduce", "fedca", "--seeds", "0", "--jobs", 1, "--out", "o", "--quiet")
    assert fedrec(*asked).status == 0
    run = next((tmp_path / "o").rglob("result.json")).parent
    shutil.rmtree(run)
    with alone(run.parent):
        done = fedrec(*asked)
    assert done.status == 2
    assert f"another fedrec works in {run.parent.relative_to(tmp_path)}; wait for it" in done.err
    assert not run.exists()
    assert fedrec(*asked).status == 0

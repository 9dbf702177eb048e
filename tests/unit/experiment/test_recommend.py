"""Items for many users, for new ones, within filters; as lists, tables and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedrec
from command_line import Cli
from fedrec.core.population import new_block, population
from fedrec.core.reference import Reference
from fedrec.data.ragged import Ragged
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.experiment.recommend import Recommender
from fedrec.experiment.recommend_table import write
from fedrec.laws.small_runs import small_settings, world
from fedrec.methods.registry import find, names
from fedrec.runs import recommendations
from fedrec.runs.known import known_of
from fedrec.simulate.central import CentralRun
from fedrec.simulate.runtime import Simulator


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "run"
    fedrec.run("fedspectral", data="demo", rounds=3, out=folder)
    return folder


def trained(method: str, data: str = "tiny") -> Any:
    """A method after a round, small."""
    task = find_protocol("strict").prepare(world(data), 3)
    kind: Any = find(method)
    made = kind(small_settings(method))
    people = population(task)
    model: Any = (CentralRun if isinstance(made, Reference) else Simulator)(made, people, task, 3)
    everyone = np.arange(people.block.n_clients)
    model.round(1, everyone, everyone, False)
    return Recommender(known_of(task, people), model)


@pytest.mark.parametrize("method", [name for name in names() if name != "biased"])
def test_every_method_serves_somebody_new_and_stays_as_it_is(method: str) -> None:
    """Or refuses with a reason; who else is asked for at the same time changes nothing."""
    model = trained(method)
    before = [r.item for r in model.recommend("u001", 5)]
    histories = [["i003", "i010", "i044"], ["i100", "i101"], ["i003", "i010", "i044"]]
    (together,) = model.stream_new(histories, 5)
    alone = model.recommend_history(histories[1], 5)
    assert [str(model.item_ids[i]) for i in together.items[1]] == [r.item for r in alone]
    np.testing.assert_array_equal(together.items[0], together.items[2])
    assert np.isfinite(together.scores).all()
    assert not {r.item for r in alone} & set(histories[1])
    assert [r.item for r in model.recommend("u001", 5)] == before


@pytest.mark.parametrize("method", ["ease", "fedease", "fedspectral", "gfcf", "popularity", "multvae", "fedvae"])
def test_a_filter_serves_a_copy_of_a_user_as_that_user(method: str) -> None:
    model = trained(method)
    block = model.known.people.block
    scores = model.model.scores_of_new(new_block(block.train, block.n_items))
    np.testing.assert_allclose(scores, model.model.scores(np.arange(block.n_clients)), rtol=2e-4, atol=2e-5)


def test_the_kernel_lists_what_numpy_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    scores = draw.integers(0, 6, (50, 30)).astype(np.float32)  # many ties
    scores[3, 4], scores[5, 6] = np.nan, np.inf
    owned = Ragged(
        np.arange(51) * 3, np.sort(draw.integers(0, 10, (50, 3)) * 3 + np.arange(3)).astype(np.int32).ravel()
    )
    columns = np.array([0, 2, 5, 6, 7, 11, 12, 29])
    for k, some in ((4, None), (40, None), (5, columns), (1, columns[:1])):
        monkeypatch.setattr(recommendations, "installed", lambda _: True)
        items, values = recommendations.best_columns(scores, owned, k, some)
        monkeypatch.setattr(recommendations, "installed", lambda _: False)
        plain = recommendations.best_columns(scores, owned, k, some)
        np.testing.assert_array_equal(items, plain[0])
        np.testing.assert_array_equal(values, plain[1])
    ranked = np.argsort(-scores[0], kind="stable")
    kept = [i for i in ranked if i not in owned[0]]
    np.testing.assert_array_equal(recommendations.best_columns(scores[:1], owned.take(np.arange(1)), 4)[0][0], kept[:4])


@pytest.mark.parametrize("end", ["parquet", "csv", "jsonl"])
def test_lists_of_all_users_go_into_a_table(run: Path, tmp_path: Path, fedrec: Cli, end: str) -> None:
    done = fedrec("recommend", str(run), "--all", "-k", "4", "--out", f"top.{end}")
    assert done.status == 0, done.err
    read = {"parquet": pd.read_parquet, "csv": pd.read_csv, "jsonl": lambda p: pd.read_json(p, lines=True)}[end]
    table = read(tmp_path / f"top.{end}")
    assert list(table.columns) == ["user", "rank", "item", "title", "score"]
    assert len(table) == 120 * 4
    from fedrec import open_run

    model = open_run(run)
    for user in ("u001", "u077"):
        rows = table[table.user == user].sort_values("rank")
        assert rows["item"].tolist() == [r.item for r in model.recommend(user, 4)]


def test_small_scores_are_not_zero_in_any_table(run: Path, tmp_path: Path) -> None:
    """In lines of JSON what came after ten places was lost."""
    model = fedrec.open_run(run).recommender
    (top,) = model.stream(["u001"], 3)
    small = replace(top, scores=np.array([[1.5e-9, 1.25e-10, 1e-12]], np.float32))
    for end, read in {"csv": pd.read_csv, "jsonl": lambda path: pd.read_json(path, lines=True)}.items():
        write(model, [small], tmp_path / f"top.{end}")
        table: Any = read(tmp_path / f"top.{end}")
        np.testing.assert_allclose(table["score"], small.scores[0], rtol=1e-3, err_msg=end)


def test_a_device_that_is_full_is_one_line(run: Path, tmp_path: Path, fedrec: Cli) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is none here")
    (tmp_path / "top.csv").symlink_to("/dev/full")
    done = fedrec("recommend", str(run), "--all", "--out", "top.csv", "--quiet")
    assert done.status == 2
    assert "no room to write" in done.err


def test_an_id_may_hold_what_ends_a_line_elsewhere(tmp_path: Path, fedrec: Cli) -> None:
    """A file of ids has a line for each, as data has them: a separator of paragraphs made two of one."""
    odd = ["a\u2028b", "c\x85d", "e\x1cf"]
    items = [*odd, *(f"i{number}" for number in range(9))]
    pairs = [f"u{user},{item}" for user in range(12) for item in items if (user + len(item)) % 5 or item in odd[:1]]
    (tmp_path / "data.csv").write_text("\n".join(["user,item", *pairs]) + "\n", encoding="utf-8")
    assert fedrec("run", "ease", "--data", "data.csv", "--out", "run").status == 0
    (tmp_path / "some.txt").write_bytes("\r\n".join(odd).encode())
    done = fedrec("recommend", "run", "--history", "some.txt", "-k", "100")
    assert done.status == 0, done.err
    assert len(done.out.splitlines()) == 9


def test_blocks_of_users_change_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fedrec.open_run(run).recommender
    (whole,) = model.stream(None, 5)
    monkeypatch.setattr("fedrec.experiment.recommend.CELLS", 160 * 7)
    parts = list(model.stream(None, 5))
    assert len(parts) == 18
    np.testing.assert_array_equal(np.concatenate([part.items for part in parts]), whole.items)


def test_filters_of_the_command_line(run: Path, tmp_path: Path, fedrec: Cli) -> None:
    (tmp_path / "users.txt").write_text("u003\n\nu001\n")
    (tmp_path / "only.txt").write_text("\n".join(f"i{i:03d}" for i in range(0, 160, 2)))
    (tmp_path / "never.txt").write_text("\n".join(f"i{i:03d}" for i in range(0, 80, 4)))
    (tmp_path / "has.txt").write_text("i003\ni011\n")
    filters = ("--only", "only.txt", "--exclude", "never.txt")
    assert fedrec("recommend", str(run), "--users", "users.txt", "--out", "t.csv", *filters).status == 0
    table = pd.read_csv(tmp_path / "t.csv")
    assert table["user"].unique().tolist() == ["u003", "u001"]
    numbers = table["item"].str[1:].astype(int)
    assert (numbers % 2 == 0).all()
    assert not ((numbers % 4 == 0) & (numbers < 80)).any()
    done = fedrec("recommend", str(run), "--history", "has.txt", "-k", "3", *filters)
    assert done.status == 0, done.err
    assert len(done.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give one of --user"),
        (("--all", "--user", "u001"), "give one of --user"),
        (("--all",), "give --out"),
        (("--all", "--out", "top.xls"), "must end in .parquet, .csv or .jsonl"),
        (("--all", "--out", "no/top.csv"), "a folder that exists"),
        (("--users", "none.txt", "--out", "a.csv"), "none.txt: No such file"),
        (("--users", "empty.txt", "--out", "a.csv"), "has no ids"),
        (("--history", "wrong.txt"), "knows no item 'j9'"),
        (("--user", "u001", "--only", "two.txt", "--exclude", "two.txt"), "nothing is left"),
        (("--user", "u001", "-k", "0"), "at least 1"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    run: Path, tmp_path: Path, fedrec: Cli, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "wrong.txt").write_text("j9\nj8\n")
    (tmp_path / "two.txt").write_text("i001\ni002\n")
    done = fedrec("recommend", str(run), *options)
    assert done.status == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.glob("*.csv"))


def test_a_history_needs_an_item(run: Path) -> None:
    with pytest.raises(BadInput, match="at least one item"):
        fedrec.open_run(run).recommend_history([])

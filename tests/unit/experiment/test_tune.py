"""Searches for settings: trials are run folders, workers share them by claims, and test data stays out of sight."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import Field

from fedrec.core.messages import Float32
from fedrec.core.method import Card, Keys
from fedrec.core.reference import Central, Reference
from fedrec.core.settings import Settings, build
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute
from fedrec.experiment.tune import claims, finish, launch, suggest
from fedrec.experiment.tune.study import Budget, Study, plan
from fedrec.experiment.tune.worker import Worker
from fedrec.maths.interaction_matrix import matrix
from fedrec.methods import registry
from fedrec.methods.registry import centralised, federated, find
from fedrec.recipes import search_spaces
from fedrec.recipes.search_spaces import Range, Space, _entries, space
from fedrec.report.model.search import ENDED, Trial, read_trials
from fedrec.runs.folder import RunFolder
from fedrec.runs.recipes import read_recipes

SMALL = "planted"


def study(out: Path, method: str = "ease", data: str = SMALL, **budget: Any) -> Study:
    found = plan([method], [data], {}, {}, Budget(**{"trials": 4, "steps": 40, **budget}), out)[0]
    launch.open_all([found])
    return found


def files(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("method", [*federated(), *centralised()])
def test_a_space_fits_its_method(method: str) -> None:
    kind, usual = find(method), resolve(method, {"data": "ml-100k"}).settings
    found = space(method)
    assert bool(found.ranges) == (method not in ("random", "popularity"))
    assert len(found.ranges) <= 5
    kind(build(kind.Settings, {**usual, **found.fixed}, method))  # some refuse settings that are fine by themselves
    for key, one in found.ranges.items():
        assert one.why
        assert key not in found.fixed
        for value in one.ends:
            kind(build(kind.Settings, {**usual, **found.fixed, key: value}, method))
        assert one.holds(usual[key]) or found.fixed, f"{method}: the recipe's {key} is not among those searched"


def test_no_space_is_for_a_method_that_is_not_there() -> None:
    assert {name for entry in _entries() for name in entry["methods"]} <= {*federated(), *centralised()}


class BlurredSettings(Settings):
    """How far from the planted answer it is."""

    x: float = Field(10.0, gt=0, description="the answer is at 0.3")


class Blurred(Reference[None]):
    """Knows which items go together, through a noise that only the planted setting takes away."""

    name, Settings = "blurred", BlurredSettings
    card = Card(title="a test", paper="none", private="nothing", upload="nothing", sum_suffices=True)

    def start(self, data: Central, keys: Keys) -> None:
        return None

    def step(self, state: None, data: Central, keys: Keys) -> tuple[None, float]:
        return None, 0.0

    def score(self, state: None, data: Central, users: Int64) -> Float32:
        histories = matrix(data.train, data.world.n_items).toarray()
        together = histories[users] @ (histories.T @ histories)
        noise = np.random.default_rng(0).normal(size=together.shape)
        return np.asarray(together / together.max() + abs(np.log(self.settings.x / 0.3)) * noise, np.float32)


def test_the_planted_setting_is_found_without_a_look_at_test_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = {"x": {"low": 0.001, "high": 100.0, "log": True, "why": "around the answer"}}
    monkeypatch.setattr(search_spaces, "_entries", lambda: [{"methods": ["blurred"], "settings": searched}])
    monkeypatch.setitem(registry._registered, "blurred", Blurred)
    tuned = study(tmp_path, "blurred", trials=20)
    Worker([tuned]).run()
    searches, written = finish.write_reports(launch.State([tuned], 1).look(), tmp_path)
    best = searches[0].best
    assert best is not None
    assert searches[0].trials[0].own["x"] == 10.0
    assert 0.2 < best.own["x"] < 0.45
    assert best.value > 2 * searches[0].trials[0].value
    assert sum(0.1 < trial.own["x"] < 1.0 for trial in searches[0].trials) > 6  # it went where the answer is
    for name, text in files(tmp_path).items():
        assert '"test": {"' not in text, name
        assert '"test": {}' in text or '"metrics"' not in text, name
    assert not list(tmp_path.rglob("users.*"))
    chosen = resolve("blurred", {"data": SMALL}, read_recipes(written[0]))
    assert chosen.test
    assert chosen.settings == best.own
    again = execute(chosen).json
    assert again["metrics"]["valid"][tuned.metric] == best.value  # shared data changes nothing
    assert again["metrics"]["test"]


def test_a_method_of_ones_own_says_what_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._registered, "blurred", Blurred)
    monkeypatch.setattr(Blurred, "search", {"x": {"low": 0.001, "high": 100.0, "log": True}})
    assert space("blurred").ranges == {"x": Range("x", "", 0.001, 100.0, True)}
    monkeypatch.setattr(Blurred, "search", {"x": {"choices": [0.1, 0.3]}})
    assert space("blurred").size == 3


@pytest.mark.parametrize(
    ("search", "line"),
    [
        ({"y": {"low": 1, "high": 2}}, "unknown setting in blurred's search 'y'"),
        ({"x": {"low": 2, "high": 1}}, "blurred's search for x is .*; write it as"),
        ({"x": {"low": 0, "high": 1, "log": True}}, "blurred's search for x is"),
        ({"x": {"low": 1}}, "blurred's search for x is"),
        ({"x": {"choices": []}}, "blurred's search for x is"),
        ({"x": {"low": 1, "high": 2, "step": 1}}, "blurred's search for x is"),
        ({"x": [1, 2]}, "blurred's search for x is"),
    ],
)
def test_a_search_that_is_none_is_bad_input(monkeypatch: pytest.MonkeyPatch, search: Any, line: str) -> None:
    monkeypatch.setitem(registry._registered, "blurred", Blurred)
    monkeypatch.setattr(Blurred, "search", search)
    with pytest.raises(BadInput, match=line):
        space("blurred")


@pytest.mark.parametrize(
    ("search", "line"),
    [
        ({"x": {"low": -1.0, "high": 2.0}}, r"blurred's search: x=-1.0 is out of range: .* greater than 0"),
        ({"x": {"choices": [1.0, 0]}}, "blurred's search: x=0 is out of range"),
        ({"turns": {"low": 1, "high": 30}}, "blurred's search: turns=30 is out of range"),
        ({"turns": {"low": 1, "high": 9.0}}, r"blurred's search: turns=3\.5\d* is out of range: .* integer"),
    ],
)
def test_a_search_beyond_what_a_setting_may_be_is_refused_before_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: Any, line: str
) -> None:
    """It ended in the middle, whenever such a point was drawn."""

    class More(BlurredSettings):
        turns: int = Field(1, ge=1, le=20, description="how often it is turned")

    monkeypatch.setitem(registry._registered, "blurred", Blurred)
    monkeypatch.setattr(Blurred, "Settings", More)
    monkeypatch.setattr(Blurred, "search", search)
    with pytest.raises(BadInput, match=line):
        plan(["ease", "blurred"], [SMALL], {}, {}, Budget(), tmp_path / "out")
    chosen = dict.fromkeys(search, 2)  # what the user chooses is not searched
    assert plan(["blurred"], [SMALL], {}, chosen, Budget(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_method_without_a_search_space_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It had one trial of the fifteen that were asked for, and a table that called it tuned."""
    monkeypatch.setitem(registry._registered, "blurred", Blurred)
    order = launch.Order(("blurred", "popularity"), (SMALL,), {}, {}, Budget(trials=3, hours=0), tmp_path)
    launch.carry_out(order)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["blurred"]


def test_a_study_is_rebuilt_from_its_folders(tmp_path: Path) -> None:
    tuned = study(tmp_path)
    Worker([tuned]).run()
    trials = tuned.trials()
    assert [trial.state for trial in trials] == ["complete"] * 4
    assert trials[0].own["lam"] == resolve("ease", {"data": SMALL}).settings["lam"]
    rebuilt = suggest.rebuilt(tuned.space, trials, 0)
    assert [(t.params, t.value) for t in rebuilt.trials] == [({"lam": t.own["lam"]}, t.value) for t in trials]
    points = [suggest.propose(tuned.space, trials, 0, 4) for _ in range(2)]
    assert points[0] == points[1]
    assert points[0] not in [trial.params for trial in rebuilt.trials]
    more = study(tmp_path, trials=5)
    Worker([more]).run()  # a larger budget goes on from there
    assert more.trials()[:4] == trials
    assert more.trials()[4].own["lam"] == points[0]["lam"]


def test_two_workers_do_no_trial_twice(tmp_path: Path) -> None:
    tuned = study(tmp_path, trials=10)
    done: list[int] = []

    def work() -> None:
        Worker([plan(["ease"], [SMALL], {}, {}, tuned.budget, tmp_path)[0]], on_trial=lambda _, n: done.append(n)).run()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(10))
    lams = [trial.own["lam"] for trial in tuned.trials()]
    assert len(set(lams)) == len(lams)


def test_one_of_many_gets_a_lapsed_claim_and_the_old_holder_notices(tmp_path: Path) -> None:
    first = claims.take(tmp_path, 7)
    assert first is not None
    assert claims.take(tmp_path, 7) is None
    assert claims.held(tmp_path, 7)
    first.check()
    os.utime(first.path, (1.0, 1.0))  # silent for long: its machine is suspended, say
    got: list[claims.Claim | None] = []
    threads = [threading.Thread(target=lambda: got.append(claims.take(tmp_path, 7))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [claim for claim in got if claim is not None]
    assert [claim.path.name for claim in winners] == ["0007.1"]
    with pytest.raises(claims.Lost):
        first.check()
    winners[0].release()
    assert not claims.held(tmp_path, 7)


def test_a_killed_worker_is_replaced_and_its_trial_goes_on(tmp_path: Path) -> None:
    order = launch.Order(("fedspectral",), (SMALL,), {}, {}, Budget(trials=1, steps=9999, rounds=9999), tmp_path)
    tuned = order.plan()[0]
    launch.open_all([tuned])
    child = subprocess.Popen(
        [sys.executable, "-m", "fedrec.experiment.tune.launch", "inf"], stdin=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    child.stdin.write(order.as_json())
    child.stdin.close()
    log = tuned.trial(0) / "rounds.jsonl"
    while not log.is_file() and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not RunFolder(tuned.trial(0)).finished
    assert claims.take(tuned.claims, 1) is not None
    asked: list[int] = []
    rounds: list[int] = []

    def first(_: Study, __: int, record: Any) -> None:
        rounds.append(record.round)
        if len(rounds) == 5:
            asked.append(1)

    Worker([tuned], stop=lambda: bool(asked), on_round=first).run()  # at once: its process is gone
    assert rounds == [1, 2, 3, 4, 5]  # it was killed before its first checkpoint
    asked.clear()
    Worker([tuned], stop=lambda: len(rounds) > 8, on_round=first).run()
    assert rounds[5] == 6  # one that was asked to end goes on where it stood
    assert sorted(path.name for path in tuned.claims.glob("0000*")) == ["0000.0", "0000.1", "0000.2"]
    assert [trial.state for trial in tuned.trials()] == ["open"]


def test_trials_are_pruned_and_failures_are_kept_out(tmp_path: Path) -> None:
    def trial(number: int, values: list[float], state: Any = "complete", lr: float = 0.1) -> Trial:
        curve = tuple((place + 1, value) for place, value in enumerate(values))
        return Trial(number, state, {"rounds": 8, "settings": {"lr": lr}}, curve)

    found = Space("fedavg", {"lr": Range("lr", "", 0.01, 1.0, log=True)})
    others = [trial(number, [0.1 * number] * 8) for number in range(1, 6)]
    assert suggest.hopeless(found, others, {1: 0.1, 2: 0.1, 3: 0.1}, 8)
    assert not suggest.hopeless(found, others, {1: 0.1}, 8)  # too early to say
    assert not suggest.hopeless(found, others, {1: 0.1, 2: 0.1, 3: 0.4}, 8)
    assert not suggest.hopeless(found, others[:2], {3: 0.0}, 8)  # too few to hold it against
    assert suggest.hopeless(found, others, {30: 0.1}, 80)  # the same share of more rounds
    bad = [trial(9, [], "failed", lr=0.5)]
    assert suggest.rebuilt(found, bad, 0).trials[0].params == {"lr": 0.5}
    broken = study(tmp_path)
    (broken.trial(0)).mkdir(parents=True)
    (broken.trial(0) / ".settings.yaml.1.tmp").write_text("cut")  # killed while the folder was made
    Worker([broken]).run()
    assert len([t for t in broken.trials() if t.state == "complete"]) == 4
    assert not (broken.trial(0) / ENDED).exists()


def test_what_cannot_be_tuned_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(BadInput, match="chooses on the test part"):
        plan(["fedavg"], [SMALL], {"protocol": "paper-fedca"}, {}, Budget(), tmp_path)
    with pytest.raises(BadInput, match="did you mean"):
        plan(["fedavgg"], [SMALL], {}, {}, Budget(), tmp_path)
    study(tmp_path)
    with pytest.raises(BadInput, match=r"other settings.*steps is 40 there, 50 now"):
        study(tmp_path, steps=50)
    with pytest.raises(BadInput, match="needs submitit"):
        launch.carry_out(launch.Order(("ease",), (SMALL,), {}, {}, Budget(), tmp_path / "s"), launcher="submitit")
    (tmp_path / "r.yaml").write_text(json.dumps({"defaults": [{"method": "fedavg"}]}))
    with pytest.raises(BadInput, match="holds no recipes"):
        read_recipes(tmp_path / "r.yaml")


def test_a_machine_has_so_many_places_for_its_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(claims, "gettempdir", lambda: str(tmp_path))
    first, second = claims.place(2, "gpu"), claims.place(2, "gpu")
    assert first is not None
    assert second is not None
    assert claims.place(2, "gpu") is None
    first.close()
    assert claims.place(2, "gpu") is not None
    second.close()


def test_searches_go_on_where_there_are_no_locks() -> None:
    """As on Windows: the import alone failed, though runs allow for it."""
    hidden = "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None; "
    asked = "from fedrec.experiment.tune import claims, launch; assert claims.place(1, 'fedrec-test') is not None"
    done = subprocess.run([sys.executable, "-c", hidden + asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_damaged_trials_are_left_out(tmp_path: Path) -> None:
    tuned = study(tmp_path, trials=2)
    Worker([tuned]).run()
    (tuned.trial(1) / "settings.yaml").write_text("method: x\n")
    assert [trial.number for trial in read_trials(tuned.folder / "trials", tuned.metric)] == [0]

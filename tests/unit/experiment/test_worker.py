"""Workers of a pool: one process makes many runs, shares what they have in common, and its end is noticed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.core.loop import Record
from fedrec.data.interactions import Interactions
from fedrec.experiment import pool, prepare, run, worker
from fedrec.experiment.estimate import Estimate
from fedrec.experiment.jobs import Job
from fedrec.experiment.prepare import load_data, split_data
from fedrec.experiment.resolve import resolve
from fedrec.runs.folder import RunFolder
from fedrec.runs.memory import forget_peak, peak_memory_mb
from fedrec.runs.settings import RunSettings

SPREADS = ("random", "blocks")


def job_of(method: str, folder: Path, **given: Any) -> Job:
    chosen = {"data": "demo", "keep_selected": False, **({"rounds": 2} if method != "popularity" else {}), **given}
    return Job(resolve(method, chosen), folder, "new")


def test_one_worker_makes_many_runs_and_they_are_what_they_would_be_alone(tmp_path: Path) -> None:
    jobs = [job_of(name, tmp_path / f"{name}{seed}", seed=seed) for seed in (0, 1) for name in ("fedavg", "popularity")]
    seen: set[int] = set()

    class Watch(pool.Silent):
        def ticks(self, running: Any, done: int, total: int, left: float | None) -> None:
            seen.update(one.handle.pid for one in pools.workers)

    pools = pool._Pool(jobs, len(jobs), 1, None, Watch(), Estimate())
    assert pools.run() == {}
    assert len(seen) == 1
    alone = [job_of("fedavg", tmp_path / "alone", seed=1)]
    assert pool.carry_out(alone, parallel=1) == {}
    assert metrics(tmp_path / "fedavg1") == metrics(tmp_path / "alone")


def test_nothing_stays_open_when_workers_end(tmp_path: Path) -> None:
    """Who turns warnings into errors saw each worker's input and output as lost files."""
    jobs = [job_of("popularity", tmp_path / "a"), job_of("popularity", tmp_path / "b")]
    pools = pool._Pool(jobs, len(jobs), 2, None, pool.Silent(), Estimate())
    assert pools.run() == {}
    ended = [*pools.workers]
    pools.workers.append(ended[0])  # idle ones give way where memory is short: here there is none
    pools.budget = 0
    assert pools._room(1.0)
    assert ended
    assert all(one.handle.stdin is not None and one.handle.stdin.closed for one in ended)
    assert all(one.handle.stdout is not None and one.handle.stdout.closed for one in ended)


def metrics(folder: Path) -> Any:
    return RunFolder(folder).result()["metrics"]


def test_a_run_that_fails_is_named_and_its_worker_goes_on(tmp_path: Path) -> None:
    bad = job_of("fedavg", tmp_path / "bad", data="demo")
    bad = Job(bad.settings.model_copy(update={"data": str(tmp_path / "nothing.csv")}), bad.folder, "new")
    jobs = [bad, job_of("fedavg", tmp_path / "good")]
    failures = pool._Pool(jobs, 2, 1, None, pool.Silent(), Estimate()).run()
    assert list(failures) == [bad.folder]
    assert "nothing.csv" in failures[bad.folder]
    assert RunFolder(tmp_path / "good").finished


def test_a_worker_that_is_killed_costs_its_run_only(tmp_path: Path) -> None:
    jobs = [job_of("fedavg", tmp_path / "first", rounds=10_000), job_of("fedavg", tmp_path / "second")]

    class Killer(pool.Silent):
        def ticks(self, running: Any, done: int, total: int, left: float | None) -> None:
            if not done and running and running[0][1] > 2:
                os.kill(pools.workers[0].handle.pid, signal.SIGKILL)

    pools = pool._Pool(jobs, 2, 1, None, Killer(), Estimate())
    failures = pools.run()
    assert failures == {tmp_path / "first": "its process was ended by signal 9"}
    assert RunFolder(tmp_path / "second").finished


def test_data_is_loaded_once_for_runs_that_ask_for_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded = []

    def counted(settings: RunSettings) -> Interactions:
        loaded.append(settings.seed)
        return load_data(settings)

    monkeypatch.setattr(prepare, "load_data", counted)
    shared = prepare.SharedData()
    first = shared.of(job_of("fedavg", tmp_path, seed=0).settings)
    assert shared.of(job_of("fedmf", tmp_path, seed=0).settings) is first
    assert shared.of(job_of("fedmf", tmp_path, seed=1).settings) is not first
    assert shared.of(job_of("fedmf", tmp_path, seed=1, train_share=0.5).settings)
    assert loaded == [0, 1, 1]


def test_data_is_shared_only_where_all_that_decides_about_it_is_alike(tmp_path: Path) -> None:
    """A run that deals users to clients in blocks was given the clients of one that had dealt them at random."""
    shared, jobs = prepare.SharedData(), [job_of("fedavg", tmp_path, clients=10, spread=s) for s in SPREADS]
    (_, first), (_, second) = (shared.of(job.settings) for job in jobs)
    assert not np.array_equal(first.users, second.users)


def test_every_setting_that_loading_and_splitting_look_at_is_asked_for(tmp_path: Path) -> None:
    looked: set[str] = set()

    class Noting(RunSettings):
        def __getattribute__(self, name: str) -> Any:
            if name in RunSettings.model_fields:
                looked.add(name)
            return super().__getattribute__(name)

    settings = Noting(**job_of("fedavg", tmp_path, clients=10).settings.model_dump())
    looked.clear()
    split_data(load_data(settings), settings)
    assert looked == set(prepare.ASKED)


def test_a_run_begun_on_another_machine_goes_on_with_the_data_of_this_one(tmp_path: Path) -> None:
    place = tmp_path / "data" / "mine"
    place.mkdir(parents=True)
    rows = [f"u{user}\ti{(user * 7 + item * 3) % 40}" for user in range(30) for item in range(8)]
    for part, some in (("train", rows[::2]), ("valid", rows[1::4]), ("test", rows[3::4])):
        (place / f"{part}.tsv").write_text("user\titem\n" + "\n".join(some) + "\n", encoding="utf-8")
    begun = job_of("fedavg", tmp_path / "run", data="mine", data_dir=place.parent, rounds=4, checkpoint_seconds=0)

    def stop(record: Record, _: Any) -> None:
        if record.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.execute(begun.settings, begun.folder, stop)
    moved = tmp_path / "elsewhere"
    place.parent.rename(moved)
    asked = job_of("fedavg", tmp_path / "run", data="mine", data_dir=moved, rounds=4, checkpoint_seconds=0)
    assert pool.carry_out([Job(asked.settings, asked.folder, "unfinished")], parallel=1) == {}
    assert RunFolder(tmp_path / "run").finished


def test_a_worker_that_stayed_large_makes_no_other_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker, "LARGE_MB", 1)
    orders = [json.dumps({"folder": str(tmp_path / name), "state": "new", "settings": settings}) for name, settings in (
        ("a", job_of("popularity", tmp_path).settings.model_dump(mode="json")),
        ("b", job_of("popularity", tmp_path).settings.model_dump(mode="json")),
    )]  # fmt: skip
    said: list[dict[str, Any]] = []
    worker._serve(orders, said.append)
    assert said == [{"failure": None, "last": True}]
    assert not (tmp_path / "b").exists()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no such counter here")
def test_the_peak_is_that_of_the_run_not_of_what_was_before() -> None:
    before = np.ones(40_000_000)  # 320 MB
    high = peak_memory_mb()
    del before
    forget_peak()
    assert peak_memory_mb() < high - 200

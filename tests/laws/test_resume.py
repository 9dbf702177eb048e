"""Law 7: a run stopped and resumed equals the run that was not stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_runs import PATTERNS, plan, run, same_metrics, same_state, simulator

from fedrec.core.loop import Progress, run_rounds
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings


def test_law_7_stopped_and_resumed_equals_never_stopped(method, pattern, tiny, tmp_path):
    wanted = plan(4, PATTERNS[pattern])
    whole = simulator(method, tiny)
    straight = run(whole, wanted)

    folder = RunFolder.create(tmp_path / "run", RunSettings(method=method))
    first = simulator(method, tiny)

    def keep(record, progress):
        folder.append(record)
        folder.checkpoint(progress, first.snapshot())

    run_rounds(first, replace(wanted, rounds=2), Progress(), keep)
    again = simulator(method, tiny)
    progress = RunFolder.open(tmp_path / "run").restore(again.expected())
    assert progress.round == 2
    resumed = run_rounds(again, wanted, progress, lambda record, now: None)

    same_metrics(straight, resumed)
    assert straight.best_round == resumed.best_round
    assert straight.best_value == pytest.approx(resumed.best_value, abs=1e-12)
    same_state(whole.snapshot(), again.snapshot(), tolerance=0)
    same_state(straight.best_state, resumed.best_state, tolerance=0)

"""Law 7: a run stopped and resumed equals the run that was not stopped."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import Mixed, plan, run, simulator, world
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings

ROUNDS, STOP = 4, 2


def resumed_equals_whole(method: str) -> None:
    """Law 7: a new process that reads the checkpoint of round 2 ends where the others end, bit for bit."""
    law = Comparison("7", method)
    wanted = plan(ROUNDS, Mixed())
    whole = simulator(method, world("tiny"))
    straight = run(whole, wanted)
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place) / "run", RunSettings(method=method))
        first = simulator(method, world("tiny"))

        def keep(record: Record, progress: Progress) -> None:
            folder.append(record)
            folder.checkpoint(progress, first.snapshot())

        run_rounds(first, replace(wanted, rounds=STOP), Progress(), keep)
        again = simulator(method, world("tiny"))
        progress = RunFolder.open(Path(place) / "run").restore(again.expected())
    if progress.round != STOP:
        raise law.broken(f"the checkpoint of round {STOP} says round {progress.round}")
    resumed = run_rounds(again, wanted, progress, lambda record, now: None)
    law.metrics(straight, resumed, "in a run that was stopped and resumed")
    if straight.best_round != resumed.best_round:
        raise law.broken(f"round {straight.best_round} is selected, and {resumed.best_round} in a resumed run")
    law.states(whole.snapshot(), again.snapshot(), "in a run that was stopped and resumed", step=0)
    law.states(straight.best_state, resumed.best_state, "in the selected model of a resumed run", step=0)

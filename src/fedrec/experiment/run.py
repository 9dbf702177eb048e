"""Carry a run out, in its folder, from the first round or from its last checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.core.population import Population
from fedrec.data.fingerprint import Fingerprint
from fedrec.data.interactions import Interactions
from fedrec.evaluation.task import Task
from fedrec.experiment.open import Result, opened, prepared_again
from fedrec.experiment.prepare import Prepared, prepare, split_data
from fedrec.runs.alone import alone
from fedrec.runs.folder import RunFolder
from fedrec.runs.history_key import made_key
from fedrec.runs.known import known_of, stored
from fedrec.runs.memory import forget_peak
from fedrec.runs.new_folder import refuse_used
from fedrec.runs.result import summary
from fedrec.runs.settings import RunSettings

OnRound = Callable[[Record, Progress], None]
OnStart = Callable[[Prepared, Progress], None]


def execute(
    settings: RunSettings,
    out: Path | None = None,
    on_round: OnRound | None = None,
    on_start: OnStart | None = None,
    data: Interactions | None = None,
    shared: tuple[Task, Population] | None = None,
) -> Result:
    """Run to the end; with ``out``, in a new folder that can be resumed.

    ``data``: what is loaded already; ``shared``: what is loaded and split, as another run had it.
    """
    forget_peak()
    shared = shared if data is None else split_data(data, settings)
    prepared = prepare(settings, shared)  # before the folder: bad input leaves nothing behind
    return begin(prepared, out, Progress(), on_round, on_start)


def begin(
    prepared: Prepared, out: Path | None, progress: Progress, on_round: OnRound | None, on_start: OnStart | None
) -> Result:
    """Run from where ``progress`` stands to the end; with ``out``, in a new folder that says what is learnt from."""
    if out is None:
        return carry_out(prepared, None, progress, on_round, on_start)
    start = None if progress.state is None else progress
    refuse_used(out)  # before it is made and locked: a file is no folder
    with alone(out):  # and then it is looked at again: of two at once, one gets it
        learns_from = _learns_from(prepared)
        folder = RunFolder.create(out, prepared.settings, origin=prepared.origin, start=start, learns_from=learns_from)
        return carry_out(prepared, folder, progress, on_round, on_start)


def resume(
    path: Path,
    on_round: OnRound | None = None,
    on_start: OnStart | None = None,
    here: Mapping[str, Any] | None = None,
) -> Result:
    """Continue a run from its last checkpoint; a finished one is only read.

    ``here``: settings of this machine, such as its data folder, in place of those that it was begun with.
    """
    folder = RunFolder.open(path)
    if folder.finished:
        return opened(path)
    forget_peak()
    prepared = prepared_again(folder, here)
    runtime = prepared.runtime
    over_flower = prepared.settings.runtime == "flower"  # there the server wrote the checkpoint, not the runtime
    with alone(path):
        if folder.finished:  # by another process, while this one read the data
            return opened(path)
        progress = folder.restore(runtime.expected_of_server() if over_flower else runtime.expected())
        if folder.fingerprint()[0] is None and not any(record.participants for record in progress.records):
            folder.write_fingerprint(*_learns_from(prepared))  # it was killed before it had one, and learnt nothing yet
        return carry_out(prepared, folder, progress, on_round, on_start)


def _learns_from(prepared: Prepared) -> tuple[Fingerprint, Path | None]:
    """What a run learns from and, where that is a file, where it lies."""
    data = Path(prepared.settings.data).expanduser()
    return prepared.fingerprint, data.resolve() if data.exists() else None


def carry_out(
    prepared: Prepared,
    folder: RunFolder | None,
    progress: Progress,
    on_round: OnRound | None,
    on_start: OnStart | None = None,
) -> Result:
    """Run from where ``progress`` stands to the end, with all files of the run's folder."""
    settings, runtime = prepared.settings, prepared.runtime
    if on_start:
        on_start(prepared, progress)

    def after(record: Record, now: Progress) -> None:
        if folder is not None:
            folder.append(record)
            folder.checkpoint_if_due(now, runtime.snapshot, settings.checkpoint_seconds)
        if on_round:
            on_round(record, now)

    if settings.runtime == "flower":  # the same loop, inside Flower's server process
        progress = runtime.carry_out(folder, on_round)
    else:
        run_rounds(runtime, prepared.plan, progress, after)
    if progress.best_state is not None:
        runtime.restore(progress.best_state)
    said, origin = prepared.described, prepared.origin
    result = summary(settings, prepared.method, said, progress, prepared.seconds, runtime, origin, repeatable=True)
    if folder is not None:
        key = made_key() if settings.histories == "hashed" else None
        known = stored(known_of(prepared.task, prepared.people), prepared.task.protocol.negatives, key)
        folder.finish(result, progress.best_state, progress.best_per_user, prepared.task.data.user_ids, known)
        if settings.runtime == "flower":
            runtime.clear(folder)
    return Result(result, folder, progress.best_per_user, prepared, tuple(progress.records))

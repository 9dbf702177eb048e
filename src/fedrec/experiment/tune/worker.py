"""One worker: takes a trial that nobody works on, runs it in its folder, and takes the next."""

from __future__ import annotations

import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from fedrec.core.loop import Progress, Record
from fedrec.core.population import Population
from fedrec.core.reference import Reference
from fedrec.core.state import flatten
from fedrec.evaluation.task import Task
from fedrec.experiment.estimate import expected_mb
from fedrec.experiment.jobs import reason_of
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.run import carry_out
from fedrec.experiment.tune import claims, suggest
from fedrec.experiment.tune.packed import unpack
from fedrec.experiment.tune.study import RUNGS, Study
from fedrec.memory import MIB, available_mb
from fedrec.report.model.search import ENDED, Trial, end_trial
from fedrec.runs.atomic import clear_leftovers
from fedrec.runs.files import CHECKPOINT, RESULT, SETTINGS
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import HERE, RunSettings

log = logging.getLogger("fedrec.tune")

WAIT_SECONDS = 2.0
CHECKPOINT_MB = 64
"""State beyond this is not written when time is up: such a trial starts over."""
GPU_PLACE_GIB = 8
"""Memory of the GPU that a trial counts with: so many trials share it."""
BROKEN = 3
"""A search whose first trials all failed, this many of them, is given up."""


class Pruned(Exception):
    """The trial is not worth its rounds."""


class Stopped(Exception):
    """Time is up, or somebody wants us to end: the trial waits for the next worker."""


class HeldFolder(RunFolder):
    """A trial's folder that is written to only while the claim is ours."""

    def __init__(self, path: Path, claim: claims.Claim) -> None:
        super().__init__(path)
        self.claim = claim

    def append(self, record: Record) -> None:
        self.claim.check()
        super().append(record)

    def checkpoint(self, progress: Progress, state: Any) -> None:
        self.claim.check()
        super().checkpoint(progress, state)

    def finish(self, *given: Any) -> None:
        self.claim.check()
        super().finish(*given)


@dataclass
class Worker:
    """Works on the searches until all their trials are over, time is up, or ``stop`` says so."""

    studies: Sequence[Study]
    deadline: float = float("inf")
    """By ``time.monotonic``."""
    stop: Callable[[], bool] = lambda: False
    on_round: Callable[[Study, int, Record], None] | None = None
    on_trial: Callable[[Study, int], None] | None = None
    _gpu: TextIO | None = None
    _not_here: set[Path] = field(default_factory=set)
    """Searches that this machine cannot work on."""
    _known: dict[Path, Trial] = field(default_factory=dict)
    _data: dict[str, tuple[Task, Population]] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        while not self._over():
            found = next(self._free(), None)
            if found is None:
                if not self._under_way():
                    return
                time.sleep(WAIT_SECONDS)  # others may lapse
                continue
            study, number, claim = found
            try:
                self._trial(study, number, claim)
            except claims.Lost:
                continue
            except Stopped:
                return
            finally:
                claim.release()
                self._leave_gpu()
            if self.on_trial is not None:
                self.on_trial(study, number)

    def _over(self) -> bool:
        return self.stop() or time.monotonic() >= self.deadline

    def _free(self) -> Iterator[tuple[Study, int, claims.Claim]]:
        """Trials that can be had, of the searches with the fewest trials first."""

        def turn(study: Study) -> tuple[int, int]:
            begun = sum(self._ended(study, number) or self._held(study, number) for number in range(study.limit))
            # workers that start together spread over the searches
            return begun, zlib.crc32(f"{os.getpid()}".encode() + os.fsencode(study.folder))

        for study in sorted(self.studies, key=turn):
            if study.folder in self._not_here:
                continue
            trials = study.trials(self._known)
            if self._given_up(study, trials) or not self._fits(study, trials) or not self._enter_gpu(study):
                continue
            over = {trial.number for trial in trials if trial.state != "open"}
            for number in sorted({*range(study.limit)} - over):
                claim = claims.take(study.claims, number)
                if claim is None:
                    continue
                if self._ended(study, number):  # while we looked
                    claim.release()
                    continue
                yield study, number, claim
            self._leave_gpu()

    def _enter_gpu(self, study: Study) -> bool:
        """A place on the GPU, where the search runs there."""
        if study.base.device == "cuda":
            import torch

            places = max(1, round(torch.cuda.mem_get_info()[1] / (GPU_PLACE_GIB * 1024 * MIB)))
            self._gpu = claims.place(places, "fedrec-gpu")
            return self._gpu is not None
        return True

    def _leave_gpu(self) -> None:
        if self._gpu is not None:
            import torch

            torch.cuda.empty_cache()  # others need what the last trial held
            self._gpu.close()
            self._gpu = None

    def _ended(self, study: Study, number: int) -> bool:
        path = study.trial(number)
        return path in self._known or (path / RESULT).is_file() or (path / ENDED).is_file()

    def _under_way(self) -> bool:
        """Whether trials are open that others hold."""
        return any(not self._ended(study, number) and self._held(study, number) for study, number in self._all())

    def _held(self, study: Study, number: int) -> bool:
        return claims.held(study.claims, number)

    def _given_up(self, study: Study, trials: list[Trial]) -> bool:
        over = [trial for trial in trials if trial.state != "open"]
        if len(over) >= BROKEN and all(trial.state == "failed" for trial in over):
            return True
        most = study.budget.total_steps
        if most is None:
            return False
        _, people = self._shared(study.base)
        return sum(study.steps_of(trial, people) for trial in trials) >= most

    def _fits(self, study: Study, trials: list[Trial]) -> bool:
        """Whether a trial can be expected to end in time, and to find memory."""
        if available_mb() < expected_mb(study.base) and any(self._held(*one) for one in self._all()):
            return False
        done = [trial.seconds for trial in trials if trial.state == "complete"]
        if not done or self.deadline == float("inf"):
            return True
        need, left = max(done), self.deadline - time.monotonic()
        return need < left or need > self.deadline - self._began  # what never fits goes on from its checkpoints

    def _all(self) -> Iterator[tuple[Study, int]]:
        return ((study, number) for study in self.studies for number in range(study.limit))

    def _shared(self, settings: RunSettings) -> tuple[Task, Population]:
        """Data is loaded and split once for all trials of this process."""
        if settings.data not in self._data:
            path = next(study.packed for study in self.studies if study.data == settings.data)
            self._data[settings.data] = unpack(path, settings)
        return self._data[settings.data]

    def _trial(self, study: Study, number: int, claim: claims.Claim) -> None:
        path = study.trial(number)
        try:
            folder, prepared = self._prepared(study, number, claim)
            progress = folder.restore(prepared.runtime.expected())
            carry_out(prepared, folder, progress, self._watch(study, number, folder, prepared))
        except Pruned as problem:
            end_trial(path, "pruned", str(problem))
            (path / CHECKPOINT).unlink(missing_ok=True)
        except (Stopped, claims.Lost, KeyboardInterrupt):
            raise
        except (ImportError, MemoryError) as problem:  # this machine's lack, not the settings': others may do it
            self._not_here.add(study.folder)
            log.warning("%s cannot be tuned here: %s", study.label, reason_of(problem))
        except Exception as problem:
            if os.environ.get("FEDREC_DEBUG"):
                raise
            if not (path / SETTINGS).is_file():
                raise  # nothing of the trial is there: what is wrong is not its settings
            claim.check()
            end_trial(path, "failed", reason_of(problem))
            (path / CHECKPOINT).unlink(missing_ok=True)

    def _prepared(self, study: Study, number: int, claim: claims.Claim) -> tuple[HeldFolder, Prepared]:
        """The trial's folder, made where there is none, and all that its run needs."""
        path = study.trial(number)
        shared = self._shared(study.base)
        here = {key: getattr(study.base, key) for key in HERE}
        if (path / SETTINGS).is_file():
            settings = RunFolder.open(path).settings().model_copy(update=here)
        else:
            if path.is_dir():
                clear_leftovers(path)
            point = None
            if number and study.space.ranges:
                trials = [trial for trial in study.trials(self._known) if trial.number != number]
                point = suggest.propose(study.space, trials, study.seed, number)
            settings = study.settings(point, shared[1])
            RunFolder.create(path, settings)
        prepared = prepare(settings, shared)
        if state_mb(prepared) > CHECKPOINT_MB:
            prepared = replace(prepared, settings=settings.model_copy(update={"checkpoint_seconds": 1e9}))
        return HeldFolder(path, claim), prepared

    def _watch(
        self, study: Study, number: int, folder: HeldFolder, prepared: Prepared
    ) -> Callable[[Record, Progress], None]:
        settings, seen = prepared.settings, -1

        def after(record: Record, progress: Progress) -> None:
            nonlocal seen
            if self.on_round is not None:
                self.on_round(study, number, record)
            if record.round >= settings.rounds:
                return
            now = suggest.rung(record.round, settings.rounds)
            if record.valid is not None and now > seen and now < RUNGS and number:
                seen = now
                others = [trial for trial in study.trials(self._known) if trial.number != number]
                curve = {r.round: r.valid[study.metric] for r in progress.records if r.valid is not None}
                if suggest.hopeless(study.space, others, curve, settings.rounds):
                    raise Pruned(f"below the median in round {record.round} of {settings.rounds}")
            if self._over():
                if settings.checkpoint_seconds < 1e9:
                    folder.checkpoint(progress, prepared.runtime.snapshot())
                raise Stopped

        return after


def state_mb(prepared: Prepared) -> float:
    """What a checkpoint of a run would hold."""
    runtime = prepared.runtime
    live = runtime.state if isinstance(prepared.method, Reference) else (runtime.server, runtime.private)
    return sum(array.nbytes for array in flatten(live)[0].values()) / MIB

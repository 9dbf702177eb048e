"""Progress in a notebook: one line of HTML that is written over again; no widget is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedrec.experiment.jobs import Job

if TYPE_CHECKING:
    from fedrec.core.loop import Progress, Record
    from fedrec.experiment.prepare import Prepared


def in_notebook() -> bool:
    """Whether somebody sees HTML: this is the kernel of a notebook."""
    found = sys.modules.get("IPython")
    shell = found.get_ipython() if found is not None else None
    return getattr(shell, "kernel", None) is not None


def bar(progress: bool | None, label: str) -> Bar | None:
    """A bar where ``progress`` asks for one, by default in a notebook; as plain lines where there is no HTML."""
    wanted = in_notebook() if progress is None else progress
    return Bar(label) if wanted else None


class Bar:
    """Rounds of one run as they end."""

    def __init__(self, label: str) -> None:
        self.label, self.rounds = label, 1
        self._handle: Any = None
        self._html = in_notebook()

    def start(self, prepared: Prepared, progress: Progress) -> None:
        world, data = prepared.people.world, prepared.task.data
        self.rounds = prepared.settings.rounds
        self.show(progress.round, f"{data.name}, {world.n_users} users, {world.n_items} items")

    def round(self, record: Record, progress: Progress) -> None:
        metric = next(iter(record.valid or {}), None)
        valid = f", valid {metric} {(record.valid or {})[metric]:.4f}" if metric else ""
        self.show(record.round, f"loss {record.loss:.4f}{valid}")

    def stop(self) -> None:
        """Nothing is left to close."""

    def show(self, done: int, note: str) -> None:
        if not self._html:
            print(f"{self.label}: round {done}/{self.rounds}  {note}", file=sys.stderr, flush=True)
            return
        shown: Any = import_module("IPython.display")
        text = f"{escape(self.label)} {done}/{self.rounds} <small>{escape(note)}</small>"
        html = shown.HTML(f'<progress value="{done}" max="{self.rounds}"></progress> {text}')
        if self._handle is None:
            self._handle = shown.display(html, display_id=True)
        else:
            self._handle.update(html)


class Bars:
    """The runs of a comparison: one bar that counts them, with the rounds of the run under way."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar

    def begins(self, job: Job, number: int, total: int) -> _OneOf:
        self.bar.rounds = total
        return _OneOf(self.bar, job, number - 1)

    def ends(self, job: Job, seconds: float, failure: str | None, done: int, total: int, left: float | None) -> None:
        self.bar.rounds = total
        self.bar.show(done, f"{job.label}: {'failed: ' + failure if failure else f'done in {seconds:.0f} s'}")

    def ticks(self, running: Sequence[tuple[Job, int]], done: int, total: int, left: float | None) -> None:
        self.bar.rounds = total
        self.bar.show(done, ", ".join(f"{job.label} round {number}" for job, number in running))


class _OneOf(Bar):
    """One run among several: its rounds stand beside the bar that counts the runs."""

    def __init__(self, bar: Bar, job: Job, before: int) -> None:
        super().__init__(job.label)
        self.bar, self.before = bar, before

    def show(self, done: int, note: str) -> None:
        self.bar.show(self.before, f"{self.label}: round {done}/{self.rounds}")

"""What a person sees while a run goes on: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from fedrec.evaluation.headline import headline
from fedrec.interrupts import saying
from fedrec.report.text.shown import shown

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from fedrec.core.loop import Progress, Record
    from fedrec.experiment.jobs import Job
    from fedrec.experiment.prepare import Prepared


class Watch:
    """Shows rounds as they end. Quiet where the caller asks for it."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.label, self.quiet = label, quiet
        self.terminal = sys.stderr.isatty()
        self.bar: Bar | None = None
        self.last_line = 0.0

    def start(self, prepared: Prepared, progress: Progress) -> None:
        if self.quiet:
            return
        from fedrec.data.describe import said_of

        data, world = prepared.task.data, prepared.people.world
        origin = f" from round {progress.round + 1}" if progress.round else ""
        typer.echo(
            f"{self.label}: {shown(data.name)}, {world.n_users} users, {world.n_items} items, "
            f"{len(data)} interactions, {world.n_clients} clients, protocol {prepared.task.protocol.name}{origin}",
            err=True,
        )
        for note in said_of(data):
            typer.echo(f"  {shown(note)}", err=True)
        if self.terminal and prepared.settings.rounds > 1:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.task = self.bar.add_task(self.label, total=prepared.settings.rounds, completed=progress.round, note="")

    def round(self, record: Record, progress: Progress) -> None:
        if self.quiet:
            return
        note = f"loss {record.loss:.4f}  valid {headline(record.valid, most=1)}"
        if self.bar is not None:
            self.bar.update(self.task, completed=record.round, note=note)
        elif time.monotonic() - self.last_line > 2.0:
            self.last_line = time.monotonic()
            typer.echo(f"  round {record.round}  {note}", err=True)

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


@contextmanager
def kept(what: str) -> Iterator[None]:
    """After an interrupt, say that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt as why:
        raise saying(why, f"{what} so far are kept; the same command goes on from there") from None


def span(seconds: float | None) -> str:
    """``about 12 min``."""
    if seconds is None:
        return "time left not known yet"
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


class Lines:
    """Progress as lines: one when a run ends, and now and then what is under way."""

    def __init__(self, quiet: bool, parallel: int, jobs: Iterable[Job] = ()) -> None:
        """Of the jobs that are there already it is said where."""
        self.quiet, self.parallel, self.last = quiet, parallel, time.monotonic()
        for job in jobs:
            if job.state == "finished" and not quiet:
                typer.echo(f"{_label(job)}: read from {job.folder}", err=True)

    def begins(self, job: Job, number: int, total: int) -> Watch | None:
        if self.parallel > 1:
            return None
        return Watch(f"[{number}/{total}] {_label(job)}", self.quiet)

    def ends(self, job: Job, seconds: float, failure: str | None, done: int, total: int, left: float | None) -> None:
        if not self.quiet:
            how = f"FAILED: {shown(failure)}" if failure else f"done in {seconds:.0f} s"
            rest = span(left) if done < total else "all done"
            typer.echo(f"[{done}/{total}] {_label(job)}: {how}; {rest}", err=True)

    def ticks(self, running: Iterable[tuple[Job, int]], done: int, total: int, left: float | None) -> None:
        if self.quiet or time.monotonic() - self.last < 30:
            return
        self.last = time.monotonic()
        now = ", ".join(f"{_label(job)} round {rounds}/{job.settings.rounds}" for job, rounds in running)
        typer.echo(f"  {now}; {span(left)}", err=True)


def _label(job: Job) -> str:
    return shown(f"{job.label} on {job.settings.data}, {job.settings.protocol}")

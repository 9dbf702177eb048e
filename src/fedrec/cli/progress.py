"""What a person sees while a run goes on: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from typing import Any

import typer

SHOWN = ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10", "F1@10", "HR@20")


def headline(metrics: dict[str, float] | None, names: tuple[str, ...] = SHOWN, most: int = 3) -> str:
    """The first few metrics that matter, as text."""
    chosen = [(name, (metrics or {})[name]) for name in names if name in (metrics or {})]
    return "  ".join(f"{name} {value:.4f}" for name, value in chosen[:most])


class Watch:
    """Shows rounds as they end. Quiet where the caller asks for it."""

    def __init__(self, label: str, quiet: bool = False) -> None:
        self.label, self.quiet = label, quiet
        self.terminal = sys.stderr.isatty()
        self.bar: Any = None
        self.last_line = 0.0

    def start(self, prepared: Any, progress: Any) -> None:
        if self.quiet:
            return
        data, world = prepared.task.data, prepared.people.world
        origin = f" from round {progress.round + 1}" if progress.round else ""
        typer.echo(
            f"{self.label}: {data.name}, {world.n_users} users, {world.n_items} items, {len(data)} interactions, "
            f"{world.n_clients} clients, protocol {prepared.task.protocol.name}{origin}",
            err=True,
        )
        for note in data.notes:
            typer.echo(f"  {note}", err=True)
        if self.terminal and prepared.settings.rounds > 1:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.task = self.bar.add_task(self.label, total=prepared.settings.rounds, completed=progress.round, note="")

    def round(self, record: Any, progress: Any) -> None:
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

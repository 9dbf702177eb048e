"""``fedrec tune``: search for a method's settings, on validation data only."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrec.cli import options as o
from fedrec.cli.progress import kept, span
from fedrec.cli.result import say_report
from fedrec.errors import BadInput
from fedrec.experiment.tune.own import OWN

OPTIONS = o.takes(
    before="out",
    left_out=OWN,
    data={"help": "Data set, file or folder; several with commas.", "metavar": "NAME,..."},
    settings={
        "help": "A setting to fix instead of searching, of every method that has it or of one (fedavg.dim=16); may be "
        "repeated.",
        "metavar": "[METHOD.]KEY=VALUE",
    },
)


def tune(
    context: typer.Context,
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            help="The methods (see `fedrec methods`); also: all, federated, centralised.", metavar="METHOD..."
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", help="Trials per method and data set.")] = 15,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="Most rounds of a trial.", show_default="the search space's")
    ] = None,
    steps: Annotated[
        int,
        typer.Option("--steps", help="Most optimiser steps that the mean client takes in a trial, for every method."),
    ] = 1000,
    hours: Annotated[
        float | None,
        typer.Option(
            "--hours",
            help="Hours after which this call ends; the same command goes on (0: only prepare folders and data).",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            help="Limits in one word: 15trials, 0.5h, or 30000steps (of the mean client, over all trials of a search).",
            metavar="AMOUNT",
        ),
    ] = None,
    jobs: o.Jobs = 1,
    launcher: Annotated[
        str, typer.Option("--launcher", help="Where workers run: process (here) or submitit (a SLURM cluster).")
    ] = "process",
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="Folder of the searches; workers on several machines may share it.", callback=o.a_folder
        ),
    ] = Path("runs/tune"),
    so_far: Annotated[bool, typer.Option("--so-far", help="Report on the trials made so far; start none.")] = False,
    quiet: o.Quiet = False,
) -> None:
    """Search for settings: TPE over the method's search space, hopeless trials pruned, selected on validation.

    The test part is not evaluated. Every trial is a run folder; interrupted ones go on with the same command. Ends with
    a recipe file for `--recipe` of run, compare and reproduce, the importance of each setting, and a picture.
    """
    from fedrec.cli.compare import command_line, data_names
    from fedrec.experiment.tune import finish, launch
    from fedrec.experiment.tune.study import Budget, check_limits
    from fedrec.report.text.search import HEAD, rows
    from fedrec.report.text.terminal import print_rows

    if not methods:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    given = o.given(context)
    own = given.pop("settings", {})
    names = data_names(given.pop("data", "demo"))
    said = parse_budget(budget)
    for name in said:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise BadInput(f"--budget {budget} and --{name} say the same; give one of them")
    limits = {"trials": trials, "steps": steps, "rounds": rounds, "hours": hours, **said}
    check_limits(limits, "--")
    order = launch.Order(tuple(methods), tuple(names), given, own, Budget(**limits), out)
    with kept("trials"):
        watcher = None if quiet else Told()
        state = launch.carry_out(order, jobs=jobs, launcher=launcher, watcher=watcher, start=not so_far)
    searches, written = finish.write_reports(state, out, command_line(context))
    print_rows(HEAD, rows(searches), title="tuned on validation", title_style="bold")
    waiting = finish.unfinished(state)
    if waiting and not so_far:
        left = state.total - state.done
        typer.echo(f"{left} of {state.total} trials are left; the same command goes on from there", err=True)
    if written:
        say_report(written[:2], "pictures of the searches")
    if not any(search.best for search in searches) and not waiting:
        raise typer.Exit(1)


def parse_budget(text: str | None) -> dict[str, Any]:
    """``15trials``, ``0.5h`` or ``30000steps`` as limits of a search."""
    if text is None:
        return {}
    found = re.fullmatch(r"([0-9]+\.?[0-9]*(?:e\+?[0-9]+)?) *(trials|h|hours|steps)", text.strip())
    amount, unit = (float(found[1]), found[2]) if found else (0.0, "")
    if not unit or (unit == "trials" and not amount.is_integer()):
        raise BadInput(f"--budget {text!r} is not a budget; write it as 15trials, 0.5h or 30000steps")
    return {"trials": int(amount)} if unit == "trials" else {"total_steps" if unit == "steps" else "hours": amount}


class Told:
    """How far all searches are, as a line now and then."""

    last, done = 0.0, -1

    def ticks(self, state: Any) -> None:
        quiet_for = time.monotonic() - self.last
        if quiet_for < 2 or (quiet_for < 30 and state.done == self.done):
            return
        self.last, self.done = time.monotonic(), state.done
        pruned = sum(trial.state == "pruned" for study in state.studies for trial in state.over(study))
        typer.echo(f"{state.done} of {state.total} trials ({pruned} pruned); {span(state.left_seconds)}", err=True)

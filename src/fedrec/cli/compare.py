"""``fedrec compare``: several methods under several seeds, side by side."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.progress import Lines, kept
from fedrec.cli.result import say_report, write_json
from fedrec.errors import BadInput

if TYPE_CHECKING:
    from fedrec.report.model.comparison import Comparison
    from fedrec.report.model.leaderboard import Leaderboard

OPTIONS = o.takes(
    before="total_memory_mb",
    left_out=("seed",),
    data={"help": "Data set, file or folder; several, with commas, make a leaderboard.", "metavar": "NAME,..."},
    settings={
        "help": "A setting of every method that has it, or of one (fedavg.dim=16); may be repeated.",
        "metavar": "[METHOD.]KEY=VALUE",
    },
)


def compare(
    context: typer.Context,
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            help="The methods (see `fedrec methods`); also: all, federated, centralised, variants (fedavg:lr=0.1), "
            "FILE.py:Class, folders of finished runs.",
            metavar="METHOD...",
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="Seeds, separated by commas.", metavar="N,N,...", show_default="0,1,2"),
    ] = None,
    total_memory_mb: Annotated[
        int | None,
        typer.Option(
            "--total-memory-mb",
            help="Memory for all runs together, with --jobs.",
            show_default="four fifths of what is free",
            callback=o.at_least_one("--total-memory-mb"),
        ),
    ] = None,
    jobs: o.Jobs = 1,
    so_far: o.SoFar = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of runs and report.", show_default="runs/compare-DATA-PROTOCOL")
    ] = None,
    recipe: o.Recipe = None,
    json_file: o.JsonFile = None,
    quiet: o.Quiet = False,
) -> None:
    """Run methods under several seeds and compare them, with the controls random, popularity and local.

    Runs already in the folder are read, not run again; an interrupted run is continued.
    """
    from fedrec.experiment import compare as comparing
    from fedrec.report.model.leaderboard import Leaderboard
    from fedrec.report.text.leaderboard import board_json
    from fedrec.report.text.records import as_json
    from fedrec.runs.recipes import read_recipes

    if not methods:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    given = o.given(context)
    own = given.pop("settings", {})
    names = data_names(given.pop("data", ""))
    several = len(names) > 1
    numbers = None if seeds is None else parse_seeds(seeds)
    recipes = read_recipes(recipe)
    if several:
        plans = comparing.plan_all(methods, numbers, names, given, own, out, recipes)
    else:
        given |= {"data": names[0]} if names[0] else {}
        plans = [comparing.plan(methods, numbers, given, own, out, recipes)]
    watcher = Lines(quiet or so_far, jobs, [job for plan in plans for job in plan.jobs])
    with kept("runs"):
        comparisons = comparing.carry_out(
            plans, parallel=jobs, memory_mb=total_memory_mb, watcher=watcher, start=not so_far
        )
    command = command_line(context)
    written, board = [], Leaderboard(tuple(comparisons))
    for plan, comparison in zip(plans, comparisons, strict=True):
        written += comparing.write_report(comparison, plan.out, command)
    if several:
        written = comparing.write_leaderboard(comparisons, plans[0].out.parent, command)
    if json_file is not None:
        write_json(json_file, board_json(board, command) if several else as_json(comparisons[0], command))
    if several:  # printed last: what cannot be shown, or a pipe that is closed, loses no file
        print_leaderboard(board)
    else:
        print_comparison(comparisons[0])
    say_report(written)
    if any(comparison.failures for comparison in comparisons) and not so_far:
        raise typer.Exit(1)


def data_names(text: str) -> list[str]:
    """``"ml-100k,demo"`` as a list; a world's own settings (``scale:users=9,items=8``) have commas too."""
    names: list[str] = []
    for part in o.words(text):
        if names and ":" in names[-1] and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names or [text]


def parse_seeds(text: str) -> list[int]:
    """``"0,1,2"`` as numbers."""
    parts = o.words(text)
    if not parts or not all(part.isdecimal() for part in parts):
        raise BadInput(f"--seeds {text!r} is not a list of seeds; write whole numbers with commas, e.g. 0,1,2")
    return [int(part) for part in parts]


def command_line(context: typer.Context) -> str:
    """The command that was given, in one order and quoted for a shell."""
    words = ["fedrec", context.info_name or "compare"]
    for parameter in context.command.get_params(context):
        source = context.get_parameter_source(parameter.name or "")
        value = context.params.get(parameter.name or "")
        if source is None or source.name != "COMMANDLINE" or parameter.name == "quiet":
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        if parameter.param_type_name == "argument":
            words += map(str, values)
        elif getattr(parameter, "is_flag", False):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for one in values:
                words += [parameter.opts[0], str(one)]
    return shlex.join(words).encode(errors="surrogateescape").decode(errors="replace")  # a file's name may be no text


def print_comparison(comparison: Comparison) -> None:
    """Leak banner, table and notes; within the width of a terminal, elsewhere as wide as they are."""
    from rich.text import Text

    from fedrec.report.text.terminal import print_parts, terminal_table
    from fedrec.report.text.wording import notes

    banner = [Text(comparison.banner, style="bold red")] if comparison.banner else []
    print_parts(*banner, terminal_table(comparison), *(Text(note, style="dim") for note in notes(comparison)))


def print_leaderboard(board: Leaderboard) -> None:
    """A table a metric, and how to read them."""
    from rich.text import Text

    from fedrec.report.text.leaderboard import reading, terminal_table
    from fedrec.report.text.terminal import print_parts

    tables = (terminal_table(board, metric) for metric in board.metrics)
    print_parts(*tables, *(Text(note, style="dim") for note in reading(board)))

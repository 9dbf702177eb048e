"""``fedrec reproduce``: a published table, made again, with the honest one beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.progress import Lines, kept
from fedrec.cli.result import say_report, write_json
from fedrec.errors import BadInput

if TYPE_CHECKING:
    from rich.table import Table

    from fedrec.experiment.reproduce import Work
    from fedrec.report.model.reproduction import Reproduction

OPTIONS = o.takes("data_dir", "device", before="out")


def reproduce(
    context: typer.Context,
    paper: Annotated[
        str | None, typer.Argument(help="The paper: fedca, fedcia, fed3cr, fediar or feddae.", metavar="PAPER")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            help="The table's number, or a figure such as 'Figure 4'.",
            show_default="the paper's main table",
            metavar="N",
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", help="Only these rows: labels, methods or groups.", metavar="A,B")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="Only these data sets, e.g. ml-100k.", metavar="A,B")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict/--no-strict", help="Also run every row under the strict protocol, where nothing leaks."),
    ] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few rounds only, to see that it runs; not a result.")
    ] = False,
    seeds: o.Seeds = "0,1,2",
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            help="How many runs at once, each in its own process.",
            show_default="a quarter of the cores",
            callback=o.at_least_one("--jobs"),
        ),
    ] = None,
    memory_mb: Annotated[
        int | None,
        typer.Option(
            "--total-memory-mb",
            "--memory-mb",  # as it was called first; in `run` and `compare` that is a block's
            help="Memory for all runs together; at least 256.",
            show_default="four fifths of what is free",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of runs and report.", show_default="runs/reproduce-PAPER")
    ] = None,
    recipe: o.Recipe = None,
    json_file: o.JsonFile = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Show what would be run; run nothing.")] = False,
    so_far: o.SoFar = False,
    quiet: o.Quiet = False,
) -> None:
    """Reproduce a table of a paper: published value, ours, the difference, and ours under the strict protocol.

    Every cell is a run folder: a finished run is read, not run again; an interrupted one is continued.
    """
    from fedrec.cli.compare import command_line, parse_seeds
    from fedrec.experiment import reproduce as reproducing
    from fedrec.experiment.message_bytes import bytes_table
    from fedrec.recipes import published
    from fedrec.report.text.reproduction import as_json
    from fedrec.runs.recipes import read_recipes

    if paper is None:
        raise BadInput(f"which paper? name one of {', '.join(published.PAPERS)}")
    if memory_mb is not None and memory_mb < 256:
        raise BadInput(f"--total-memory-mb {memory_mb} is out of range; give 256 or more")
    found = published.find(paper)
    chosen = (found.table(table) if table else found.tables[0]).chosen(o.words(rows), o.words(columns))
    parallel = jobs or max(1, (os.cpu_count() or 1) // 4)
    folder = (out or Path("runs") / f"reproduce-{paper}") / ("quick" if quick else "")
    command = command_line(context)
    if chosen.kind == "bytes":
        done = bytes_table(chosen)
    else:
        blocks = min(1024, max(64, memory_mb // parallel // 4)) if memory_mb else 1024
        given = {**o.given(context), "memory_mb": blocks}
        work = reproducing.plan(
            chosen, parse_seeds(seeds), folder, quick=quick, given=given, recipes=read_recipes(recipe), strict=strict
        )
        if plan_only:
            print_plan(work)
            return
        if not work.jobs:
            reasons = "; ".join(dict.fromkeys(spot.absent for spot in work.spots))
            raise BadInput(f"nothing of {paper} {chosen.name} can be run here: {reasons}")
        with kept("runs"):
            done = reproducing.carry_out(
                work, parallel=parallel, memory_mb=memory_mb, watcher=Lines(quiet, parallel), start=not so_far
            )
    written = reproducing.write_report(done, folder, command)
    if json_file is not None:
        write_json(json_file, as_json(done, command))
    print_reproduction(done)
    say_report(written)
    if done.failures:
        raise typer.Exit(1)


def print_plan(work: Work) -> None:
    """What would be run, and what cannot be."""
    jobs = work.jobs
    open_jobs = [job for job in jobs if job.state != "finished"]
    typer.echo(f"{len(jobs)} runs, {len(jobs) - len(open_jobs)} of them finished, in {work.out}")
    for job in open_jobs:
        where = f"{job.settings.data}, {job.settings.protocol}"
        typer.echo(f"  {job.folder.name} on {where}, {job.settings.rounds} rounds ({job.state})")
    for reason in dict.fromkeys(spot.absent for spot in work.spots if spot.absent):
        names = dict.fromkeys(spot.row.name for spot in work.spots if spot.absent == reason)
        typer.echo(f"  not run: {', '.join(names)}: {reason}")


def print_reproduction(done: Reproduction) -> None:
    """Banners, tables, remarks, and what is not there and why."""
    from rich.text import Text

    from fedrec.report.model.reproduction import heading, remarks
    from fedrec.report.text.reproduction import terminal_tables
    from fedrec.report.text.terminal import print_parts

    parts: list[Table | Text] = [Text(heading(done), style="bold")]
    for banner, table in terminal_tables(done):
        parts += [Text(banner, style="bold red"), table] if banner else [table]
    parts += [Text(remark, style="dim") for remark in remarks(done)]
    parts += [Text(f"not run: {what}: {reason}", style="yellow") for what, reason in done.absent]
    parts += [Text(f"failed: {failure}", style="red") for failure in done.failures]
    print_parts(*parts)

"""``fedrec compare``: several methods under several seeds, side by side."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrec.cli import options as o
from fedrec.cli.run import check_json
from fedrec.errors import BadInput


def compare(
    context: typer.Context,
    methods: Annotated[
        list[str] | None, typer.Argument(help="The methods (see `fedrec methods`).", metavar="METHOD...")
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds, separated by commas.", metavar="N,N,...")] = "0,1,2",
    data: o.Data = "demo",
    data_dir: o.DataDir = None,
    protocol: o.Protocol = "strict",
    rounds: o.Rounds = None,
    participation: o.Share = None,
    rest: o.Rest = False,
    dropout: o.Dropout = 0.0,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of every method that has it, or of one (fedavg.dim=16); may repeat.",
            metavar="[METHOD.]KEY=VALUE",
        ),
    ] = None,
    device: o.Device = "cpu",
    runtime: Annotated[str, typer.Option("--runtime", help="simulate or flower.")] = "simulate",
    nodes: Annotated[int, typer.Option("--nodes", help="SuperNodes to start with --runtime flower.")] = 2,
    min_interactions: o.MinInteractions = None,
    clients: o.Clients = None,
    evaluate_every: o.EvaluateEvery = 1,
    evaluate_users: o.EvaluateUsers = None,
    memory_mb: o.MemoryMb = 1024,
    checkpoint_seconds: Annotated[
        float, typer.Option("--checkpoint-seconds", help="Least time between two checkpoints.")
    ] = 10.0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of runs and report [runs/compare-DATA-PROTOCOL].")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the comparison as one JSON object.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Run methods under several seeds and compare them, with the controls random, popularity and local.

    Runs that are in the folder already are read, not run again; one that was cut off is continued.
    """
    from fedrec import comparing
    from fedrec.cli.result import write_json
    from fedrec.report.records import as_json

    check_json(json_file)
    if not methods:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    given = o.present(
        data=data,
        data_dir=data_dir,
        protocol=protocol,
        rounds=rounds,
        participation=participation,
        rest=rest or None,
        dropout=dropout,
        device=device,
        runtime=runtime,
        nodes=nodes,
        min_interactions=min_interactions,
        clients=clients,
        evaluate_every=evaluate_every,
        evaluate_users=evaluate_users,
        memory_mb=memory_mb,
        checkpoint_seconds=checkpoint_seconds,
    )
    jobs = comparing.plan(methods, parse_seeds(seeds), given, o.parse_sets(sets), out)
    try:
        comparison = comparing.carry_out(jobs, _watcher(quiet))
    except KeyboardInterrupt:
        typer.echo("fedrec: runs so far are kept; the same command goes on from there", err=True)
        raise
    command = command_line(context)
    print_comparison(comparison)
    if json_file is not None:
        write_json(json_file, as_json(comparison, command))
    written = comparing.write_report(comparison, jobs.out, command)
    typer.echo(f"report: {', '.join(map(str, written))}")
    if comparison.failures:
        raise typer.Exit(1)


def parse_seeds(text: str) -> list[int]:
    """``"0,1,2"`` as numbers."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise BadInput(f"--seeds {text!r} is not a list of seeds; write whole numbers with commas, e.g. 0,1,2")
    return [int(part) for part in parts]


def command_line(context: typer.Context) -> str:
    """The command that was given, in one order and quoted for a shell."""
    words = ["fedrec", context.info_name or "compare"]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        value = context.params.get(parameter.name or "")
        if source is None or source.name != "COMMANDLINE" or parameter.name == "quiet":
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        if parameter.param_type_name == "argument":
            words += map(str, values)
        elif getattr(parameter, "is_flag", False):
            words.append(parameter.opts[0])
        else:
            for one in values:
                words += [parameter.opts[0], str(one)]
    return shlex.join(words)


def print_comparison(comparison: Any) -> None:
    """Leak banner, table and notes; within the width of a terminal, elsewhere as wide as they are."""
    from rich.console import Console
    from rich.text import Text

    from fedrec.report.terminal import terminal_table
    from fedrec.report.wording import notes

    console = Console(highlight=False)
    table = terminal_table(comparison)
    if not console.is_terminal:
        console.width = console.measure(table, options=console.options.update(width=1000)).maximum
    if comparison.banner:
        console.print(Text(comparison.banner, style="bold red"), soft_wrap=not console.is_terminal)
    console.print(table)
    for note in notes(comparison):
        console.print(Text(note, style="dim"), soft_wrap=not console.is_terminal)


def _watcher(quiet: bool) -> Any:
    from fedrec.cli.progress import Watch

    def on_job(job: Any, number: int, total: int) -> Watch:
        label = f"[{number}/{total}] {job.label}"
        if job.state == "finished" and not quiet:
            typer.echo(f"{label}: read from {job.folder}", err=True)
        return Watch(label, quiet)

    return on_job

"""``fedrec analyse sweep``: a method's metrics over one of its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.analyse import Out, file_of, metrics_of, write
from fedrec.errors import BadInput

OPTIONS = o.takes("data", "data_dir", "protocol", "rounds", "participation", "settings", before="vary")


def sweep(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="The method.")],
    vary: Annotated[
        str,
        typer.Option("--vary", help="A setting of the method or of the run, and its values.", metavar="KEY=A,B,..."),
    ],
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds; the mean over them is shown.")] = "0",
    jobs: o.Jobs = 1,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Metrics over one setting, all else equal.

    FedCA Figure 8: --vary participation=0.2,0.4,0.6,0.8,1; Figures 9 and 10: --vary alpha=...; Figures 11 and 12:
    --vary beta=.... Runs lie below the folder; those that are there already are read, not run again.
    """
    from fedrec.cli.progress import Lines
    from fedrec.experiment.analyses import sweep as analysis
    from fedrec.report.figures.analyses import curves, points_csv

    o.check_jobs(jobs)
    key, sign, text = vary.partition("=")
    if not key or not sign:
        raise BadInput(f"--vary {vary!r} is no setting with values; write it as alpha=0.1,0.5,1")
    name = f"{file_of(context, 'sweep')}-{method}-{key}"
    planned = analysis.plan(
        method, key, o.numbers(text, "--vary", float), {"keep_selected": False, **o.given(context)},
        o.numbers(seeds, "--seeds", int), out / name,
    )  # fmt: skip
    watcher = Lines(quiet, jobs)
    watcher.known(planned.jobs)
    points, failures = analysis.carry_out(planned, parallel=jobs, watcher=watcher)
    asked = context.params
    about = f"{asked['data']}, protocol {asked['protocol']}, seeds {seeds}"
    figure = curves(points, f"{method}: {key}", about, key, metrics_of(points))
    write(out, name, figure, points_csv(points, key, "part"))
    for folder, reason in failures.items():
        typer.echo(f"failed: {folder.name}: {reason}", err=True)
    if failures:
        raise typer.Exit(1)

"""``fedrec analyse filters``, ``privacy`` and ``sweep``: figures over many runs, which lie below the folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.analyse.shared import Out, about_data, end_with, file_of, given, metrics_of, write
from fedrec.errors import BadInput

if TYPE_CHECKING:
    from fedrec.cli.progress import Lines
    from fedrec.experiment.jobs import Job

app = typer.Typer()


@app.command("filters", cls=o.takes("data", "data_dir", "protocol", "seed", before="rounds"))
def filters(
    context: typer.Context,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds of the trained methods.")] = 50,
    filter_rounds: Annotated[int, typer.Option("--filter-rounds", help="Rounds of fedspectral.")] = 8,
    ks: Annotated[str, typer.Option("--ks", help="Vectors of fedspectral.")] = "16,32,64",
    trained: Annotated[str, typer.Option("--trained", help="Methods that learn by rounds.")] = "fedavg,fedca",
    noise: Annotated[
        str, typer.Option("--noise", help="Scales of Laplace noise on uploads; one alone leaves the panel out.")
    ] = "0,0.001,0.003,0.01,0.03,0.1",
    jobs: o.Jobs = 1,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Federated filters (fedspectral, fedease) beside training and centralised models: rounds, bytes, noise.

    Runs lie below the folder; those that are there already are read, not run again.
    """
    from fedrec.experiment.analyses import filters as analysis
    from fedrec.report.figures.filters import filters_csv, filters_figure

    o.check_jobs(jobs)
    asked = analysis.Asked(
        o.numbers(ks, "--ks", int), filter_rounds, tuple(o.words(trained)), rounds, o.numbers(noise, "--noise", float),
    )  # fmt: skip
    name = file_of(context, "filters")
    planned = analysis.plan(asked, given(context), out / f"{name}-seed{context.params['seed']}")
    shown, failures = analysis.carry_out(planned, parallel=jobs, watcher=_watcher(planned.jobs, quiet, jobs))
    write(out, name, filters_figure(shown, about_data(context)), filters_csv(shown))
    end_with(failures)


@app.command(
    "privacy",
    cls=o.takes(
        "data", "data_dir", "protocol", "rounds", "seed", "settings", "delta", "nodes", "secure_by", "secure_dropout",
        "secure_colluding", "secure_cohort", "secure_work", "evaluate_users", before="epsilons",
    ),
)  # fmt: skip
def privacy(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="A method whose card says that a sum suffices.")] = "fedease",
    epsilons: Annotated[str, typer.Option("--epsilons", help="Budgets.")] = "1,2,4,8,16",
    copies: Annotated[str, typer.Option("--copies", help="Populations: every user so many times.")] = "1,3,10",
    at: Annotated[float, typer.Option("--at", help="Epsilon for the populations.")] = 1.0,
    jobs: o.Jobs = 1,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """What a guarantee costs: quality over epsilon and over the number of users, bytes and seconds of secure sums.

    Runs lie below the folder; those that are there already are read, not run again.
    """
    from rich.console import Console
    from rich.table import Table

    from fedrec.experiment.analyses import privacy as analysis
    from fedrec.report.figures.analyses import curves
    from fedrec.report.text.csv_text import csv_text
    from fedrec.report.text.terminal import print_table

    o.check_jobs(jobs)
    numbers = o.numbers(epsilons, "--epsilons", float), o.numbers(copies, "--copies", int)
    asked = analysis.Asked(method, *numbers, at)
    name = f"{file_of(context, 'privacy')}-{method}"
    planned = analysis.plan(asked, given(context), out / f"{name}-seed{context.params['seed']}")
    rows, over, failures = analysis.carry_out(planned, parallel=jobs, watcher=_watcher(planned.jobs, quiet, jobs))
    table = Table(*analysis.HEAD)
    for row in analysis.table(rows):
        table.add_row(*row)
    print_table(Console(highlight=False), table)
    data = csv_text(analysis.HEAD, analysis.table(rows))
    for what, points in over.items():
        figure = curves(points, f"Quality over {what}", about_data(context), what, [analysis.QUALITY])
        write(out, f"{name}-{what}", figure, data)
    end_with(failures)


@app.command("sweep", cls=o.takes("data", "data_dir", "protocol", "rounds", "participation", "settings", before="vary"))
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
    from fedrec.experiment.analyses import sweep as analysis
    from fedrec.report.figures.analyses import curves, points_csv

    o.check_jobs(jobs)
    key, sign, text = vary.partition("=")
    if not key or not sign:
        raise BadInput(f"--vary {vary!r} is no setting with values; write it as alpha=0.1,0.5,1")
    name = f"{file_of(context, 'sweep')}-{method}-{key}"
    planned = analysis.plan(
        method, key, o.numbers(text, "--vary", float), given(context),
        o.numbers(seeds, "--seeds", int), out / name,
    )  # fmt: skip
    points, failures = analysis.carry_out(planned, parallel=jobs, watcher=_watcher(planned.jobs, quiet, jobs))
    asked = context.params
    about = f"{asked['data']}, protocol {asked['protocol']}, seeds {seeds}"
    figure = curves(points, f"{method}: {key}", about, key, metrics_of(points))
    write(out, name, figure, points_csv(points, key, "part"))
    end_with(failures)


def _watcher(planned: Iterable[Job], quiet: bool, jobs: int) -> Lines:
    """Says which runs are there already, and then how the others go."""
    from fedrec.cli.progress import Lines

    watcher = Lines(quiet, jobs)
    watcher.known(planned)
    return watcher

"""``fedrec analyse filters``, ``privacy``, ``sweep``, ``leak``: figures over many runs.

Those of the first three lie below the folder; ``leak`` draws what a protocol gives away, and runs beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.analyse.shared import Out, about_data, end_with, file_of, given, metrics_of, print_curves, write
from fedrec.cli.progress import Lines
from fedrec.errors import BadInput

app = typer.Typer()


@app.command("filters", cls=o.takes("data", "data_dir", "protocol", "seed", before="rounds"))
def filters(
    context: typer.Context,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds of the trained methods.")] = 50,
    filter_rounds: Annotated[int, typer.Option("--filter-rounds", help="Rounds of fedspectral.")] = 8,
    ks: Annotated[str, typer.Option("--ks", help="Vectors of fedspectral.")] = "16,32,64",
    trained: Annotated[str, typer.Option("--trained", help="Methods that learn by rounds.")] = "fedavg,fedca",
    noise: Annotated[
        str, typer.Option("--noise", help="Scales of Laplace noise on uploads; with only one, the panel is left out.")
    ] = "0,0.001,0.003,0.01,0.03,0.1",
    jobs: o.Jobs = 1,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Federated filters (fedspectral, fedease) beside training and centralised models: rounds, bytes, noise.

    Runs are kept below the folder; those already there are read, not run again.
    """
    from fedrec.experiment.analyses import filters as analysis
    from fedrec.report.figures.filters import filters_csv, filters_figure

    asked = analysis.Asked(
        o.numbers(ks, "--ks", int), filter_rounds, tuple(o.words(trained)), rounds, o.numbers(noise, "--noise", float),
    )  # fmt: skip
    name = file_of(context, "filters")
    planned = analysis.plan(asked, given(context), out / f"{name}-seed{context.params['seed']}")
    shown, failures = analysis.carry_out(planned, parallel=jobs, watcher=Lines(quiet, jobs, planned.jobs))
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
    copies: Annotated[
        str, typer.Option("--copies", help="Populations: how many times each user is repeated.")
    ] = "1,3,10",
    at: Annotated[float, typer.Option("--at", help="Epsilon for the populations.")] = 1.0,
    jobs: o.Jobs = 1,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """What a guarantee costs: quality over epsilon and over the number of users, bytes and seconds of secure sums.

    Runs are kept below the folder; those already there are read, not run again.
    """
    from fedrec.experiment.analyses import privacy as analysis
    from fedrec.report.figures.analyses import curves
    from fedrec.report.text.csv_text import csv_text
    from fedrec.report.text.terminal import print_rows

    numbers = o.numbers(epsilons, "--epsilons", float), o.numbers(copies, "--copies", int)
    asked = analysis.Asked(method, *numbers, at)
    name = f"{file_of(context, 'privacy')}-{method}"
    planned = analysis.plan(asked, given(context), out / f"{name}-seed{context.params['seed']}")
    rows, over, failures = analysis.carry_out(planned, parallel=jobs, watcher=Lines(quiet, jobs, planned.jobs))
    head, table = tuple(analysis.formats(planned.quality)), analysis.table(rows, planned.quality)
    print_rows(head, table)
    data = csv_text(head, table)
    for what, points in over.items():
        figure = curves(points, f"Quality over {what}", about_data(context), what, [planned.quality])
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
    --vary beta=.... Runs are kept below the folder; those already there are read, not run again.
    """
    from fedrec.experiment.analyses import sweep as analysis
    from fedrec.report.figures.analyses import curves, points_csv

    key, sign, text = vary.partition("=")
    if not key or not sign:
        raise BadInput(f"--vary {vary!r} is not a setting with values; write it as alpha=0.1,0.5,1")
    name = f"{file_of(context, 'sweep')}-{method}-{key}"
    planned = analysis.plan(
        method, key, o.numbers(text, "--vary", float), given(context),
        o.numbers(seeds, "--seeds", int), out / name,
    )  # fmt: skip
    points, failures = analysis.carry_out(planned, parallel=jobs, watcher=Lines(quiet, jobs, planned.jobs))
    asked = context.params
    about = f"{asked['data']}, protocol {asked['protocol']}, seeds {seeds}"
    figure = curves(points, f"{method}: {key}", about, key, metrics_of(points))
    write(out, name, figure, points_csv(points, key, "part"))
    end_with(failures)


@app.command(
    "leak",
    cls=o.takes("data", "data_dir", "protocol", "seed", before="rounds", protocol={"default": "paper-fedca"}),
)
def leak(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs under the same protocol, to draw as well.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds.")] = 100,
    negatives: Annotated[int, typer.Option("--negatives", min=1, help="Negatives per positive, per round (N).")] = 4,
    out: Out = Path("analyses"),
) -> None:
    """What elimination alone reaches: HR@10 of a table that knows only which items it was shown as negatives.

    It is a formula; nothing is fitted. Methods whose curve follows it have learnt which items were never drawn.
    """
    from fedrec.data.load import load
    from fedrec.evaluation.protocols import find
    from fedrec.experiment.analyses.leak import EXPECTED, expected, observed
    from fedrec.report.figures.analyses import curves, points_csv

    asked = context.params
    chosen = find(asked["protocol"])
    task = chosen.prepare(load(asked["data"], o.given(context).get("data_dir"), paper=chosen.paper), asked["seed"])
    shown = [r for r in range(1, rounds + 1) if r % max(1, rounds // 20) == 0 or r == rounds]
    points = expected(task, negatives, shown)
    metric = points[0].metric
    points += [point for point in observed(runs or [], metric, task) if point.x <= rounds]
    print_curves(points, metric, [r for r in shown if r % max(1, rounds // 10) == 0])
    about = about_data(context).replace(", seed", f", {negatives} negatives per positive, seed")
    figure = curves(points, "What elimination alone reaches", about, "round", [metric], EXPECTED)
    write(out, file_of(context, "leak"), figure, points_csv(points, "round", "series"))

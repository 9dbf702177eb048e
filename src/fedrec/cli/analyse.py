"""``fedrec analyse``: the papers' analyses, federated filters and the leak, each with its figure and its data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedrec.cli import options as o
from fedrec.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedrec.core.loop import Record
    from fedrec.experiment.analyses.points import OnRound, Point
    from fedrec.experiment.prepare import Prepared

app = typer.Typer(
    no_args_is_help=True, help="Analyses: embedding skew, sparsity, weights, filters, the leak, privacy, models."
)

SPARSE = ("local", "fcf", "perfedrec", "fedfast", "pfedrec", "fedca")
"""What FedCA's figures of sparsity compare."""

Out = Annotated[Path, typer.Option("--out", help="Folder for the figure (PNG) and the data (CSV).")]
TRAINED = ("data", "data_dir", "protocol", "rounds", "seed", "settings")
"""Options of analyses that train."""


@app.command("skew", cls=o.takes(*TRAINED, before="most"))
def skew(
    context: typer.Context,
    most: Annotated[int, typer.Option("--most", help="Largest number of similar clients.")] = 100,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Embedding skew (FedCA Figure 3): train and test accuracy over the number of similar clients aggregated."""
    from fedrec.experiment.analyses import skew as analysis
    from fedrec.report.figures.analyses import curves, points_csv

    if most < 10:
        raise BadInput(f"--most {most} is too few; give at least 10")
    points = analysis.skew(_given(context), range(10, most + 1, 10), _progress(quiet))
    about = f"{_about(context)}; FedAvg, then the mean of s of the most similar clients' tables"
    figure = curves(points, "Embedding skew", about, "similar clients s", metrics_of(points))
    write(out, file_of(context, "skew"), figure, points_csv(points, "s", "part"))


@app.command("sparsity", cls=o.takes(*TRAINED, before="shares"))
def sparsity(
    context: typer.Context,
    methods: Annotated[list[str] | None, typer.Argument(help="Methods.", show_default=" ".join(SPARSE))] = None,
    shares: Annotated[str, typer.Option("--shares", help="Shares of the training data.")] = "0.1,0.2,0.3,0.4,0.6,0.8,1",
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Sparsity (FedCA Figures 5 and 6, Table 3): accuracy over the share of training data."""
    from fedrec.experiment.analyses import sparsity as analysis
    from fedrec.report.figures.analyses import curves, points_csv

    try:
        chosen = [float(share) for share in shares.split(",")]
    except ValueError:
        raise BadInput(f"--shares {shares!r} is not a list of numbers; write it as 0.4,0.6,1") from None
    names = methods or list(SPARSE)
    points = analysis.sparsity(names, chosen, _given(context), _progress(quiet))
    about = f"{_about(context)}; the evaluating is that of the whole data"
    figure = curves(points, "Sparsity of training data", about, "share of training data", metrics_of(points))
    write(out, file_of(context, "sparsity"), figure, points_csv(points, "share", "method"))


@app.command("weights", cls=o.takes(*TRAINED, before="count"))
def weights(
    context: typer.Context,
    count: Annotated[int, typer.Option("--clients-shown", help="How many random clients are shown.")] = 10,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Aggregation weights of FedCA (Figure 7): similarity, complementarity and what they make together."""
    from fedrec.experiment.analyses import weights as analysis
    from fedrec.report.figures.analyses import heat_maps, matrix_csv

    found = analysis.weights(_given(context), count, _progress(quiet))
    matrices = {
        "similarity S": found.similarity,
        "complementarity C": found.complementarity,
        "composite weights W": found.composite,
    }
    about = f"{_about(context)}; {len(found.clients)} random clients"
    figure = heat_maps(found.clients, matrices, "Composite aggregation", about)
    write(out, file_of(context, "weights"), figure, matrix_csv(found.clients, matrices))


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
    from fedrec.cli.progress import Lines
    from fedrec.experiment.analyses import filters as analysis
    from fedrec.report.figures.filters import filters_csv, filters_figure

    o.check_jobs(jobs)
    asked = analysis.Asked(
        o.numbers(ks, "--ks", int), filter_rounds, tuple(o.words(trained)), rounds, o.numbers(noise, "--noise", float),
    )  # fmt: skip
    name = file_of(context, "filters")
    planned = analysis.plan(asked, _given(context), out / f"{name}-seed{context.params['seed']}")
    watcher = Lines(quiet, jobs)
    watcher.known(planned.jobs)
    shown, failures = analysis.carry_out(planned, parallel=jobs, watcher=watcher)
    write(out, name, filters_figure(shown, _about(context)), filters_csv(shown))
    for folder, reason in failures.items():
        typer.echo(f"failed: {folder.name}: {reason}", err=True)
    if failures:
        raise typer.Exit(1)


@app.command(
    "leak",
    cls=o.takes("data", "data_dir", "protocol", "seed", before="rounds", protocol={"default": "paper-fedca"}),
)
def leak(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs under the same protocol, to draw beside it.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds.")] = 100,
    negatives: Annotated[int, typer.Option("--negatives", min=1, help="Negatives per positive and round (N).")] = 4,
    out: Out = Path("analyses"),
) -> None:
    """What elimination alone reaches: HR@10 of a table that knows only which items it was shown as negatives.

    A formula without anything fitted; methods whose curve runs along it have learnt which items were never drawn.
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
    _print_curves(points, metric, [r for r in shown if r % max(1, rounds // 10) == 0])
    about = _about(context).replace(", seed", f", {negatives} negatives per positive, seed")
    figure = curves(points, "What elimination alone reaches", about, "round", [metric], EXPECTED)
    write(out, file_of(context, "leak"), figure, points_csv(points, "round", "series"))


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

    from fedrec.cli.progress import Lines
    from fedrec.experiment.analyses import privacy as analysis
    from fedrec.report.figures.analyses import curves
    from fedrec.report.text.csv_text import csv_text
    from fedrec.report.text.terminal import print_table

    o.check_jobs(jobs)
    numbers = o.numbers(epsilons, "--epsilons", float), o.numbers(copies, "--copies", int)
    asked = analysis.Asked(method, *numbers, at)
    name = f"{file_of(context, 'privacy')}-{method}"
    planned = analysis.plan(asked, _given(context), out / f"{name}-seed{context.params['seed']}")
    watcher = Lines(quiet, jobs)
    watcher.known(planned.jobs)
    rows, over, failures = analysis.carry_out(planned, parallel=jobs, watcher=watcher)
    table = Table(*analysis.HEAD)
    for row in analysis.table(rows):
        table.add_row(*row)
    print_table(Console(highlight=False), table)
    data = csv_text(analysis.HEAD, analysis.table(rows))
    for what, points in over.items():
        figure = curves(points, f"Quality over {what}", _about(context), what, [analysis.QUALITY])
        write(out, f"{name}-{what}", figure, data)
    for folder, reason in failures.items():
        typer.echo(f"failed: {folder.name}: {reason}", err=True)
    if failures:
        raise typer.Exit(1)


@app.command("items")
def items(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run of feddae or fedcia.")],
    users: Annotated[
        str | None,
        typer.Option("--users", help="Ids of users (feddae).", show_default="three at random", metavar="A,B"),
    ] = None,
    clients: Annotated[
        int | None, typer.Option("--clients", min=2, help="How many random clients (fedcia).", show_default="3")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=2, help="How many random items (fedcia).", show_default="100")
    ] = None,
    out: Out = Path("analyses"),
) -> None:
    """Items in the plane: features of FedDAE's encoders (Figure 3), or the tables of FedCIA's clients (Figure 4).

    feddae: global, a user's own, their mean, and by the gate; "apart" is the mean silhouette of the user's items
    against the others: 0 where they are mixed, 1 where they are two clusters. fedcia: at the start, trained, and
    aggregated in two ways; how far clients' tables lie from one another, and how their similarities are correlated.
    """
    from fedrec.experiment.analyses.items import item_maps, mapped_run
    from fedrec.report.figures.item_map import item_maps_csv, item_maps_figure

    prepared, found = mapped_run(run), []
    if prepared.method.name == "fedcia":
        if users is not None:
            raise BadInput("--users is for a run of feddae; a run of fedcia takes --clients and --count")
        _client_maps(prepared, 3 if clients is None else clients, 100 if count is None else count, out, run)
        return
    if clients is not None or count is not None:
        raise BadInput("--clients and --count are for a run of fedcia; a run of feddae takes --users")
    for one in item_maps(prepared, o.words(users)):
        found.append(one)
        apart = ", ".join(f"{view} {value:.3f}" for view, value in one.apart.items())
        typer.echo(f"user {one.user}: gate {one.weights[0]:.3f} / {one.weights[1]:.3f}; apart: {apart}")
    chosen = prepared.settings
    figure = item_maps_figure(found, f"{chosen.data}, protocol {chosen.protocol}, seed {chosen.seed}; t-SNE")
    write(out, f"items-{run.resolve().name}", figure, item_maps_csv(found, prepared.task.data.item_ids))


def _client_maps(prepared: Prepared, clients: int, count: int, out: Path, run: Path) -> None:
    """Draw the tables of some clients, and print how far they differ."""
    from fedrec.experiment.analyses.client_items import client_maps
    from fedrec.report.figures.item_map import client_maps_csv, client_maps_figure

    found, chosen = client_maps(prepared, clients, count), prepared.settings
    for stage, apart in found.distance.items():
        alike = found.agreement[stage]
        typer.echo(f"{stage}: distance between clients {apart:.3f}, correlation of their similarities {alike:.3f}")
    about = f"{chosen.data}, protocol {chosen.protocol}, seed {chosen.seed}; {count} items; t-SNE"
    data = client_maps_csv(found, prepared.task.data.item_ids[found.items])
    write(out, f"items-{run.resolve().name}", client_maps_figure(found, about), data)


@app.command("views", cls=o.takes(*TRAINED, before="client"))
def views(
    context: typer.Context,
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Methods with two views to train (fedrap, fed3cr, fediar), or folders of runs (fedrap, fed3cr).",
            metavar="METHOD|RUN...",
        ),
    ],
    client: Annotated[
        str | None, typer.Option("--client", help="The client whose correlations are shown.", show_default="the first")
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Length of the lists that are compared.")] = 50,
    persistence: Annotated[
        float, typer.Option("--p", min=0.0, max=1.0, help="p of rank-biased overlap: how deep a reader looks.")
    ] = 0.99,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Two views of the items: what each reaches alone (methods), or how they agree (folders of runs).

    METHOD: trained here; at some rounds HR and NDCG of both views, of the shared and of the private one alone, and how
    widely each scores items that a user has not had. RUN: overlap of the views' rankings (Fed3CR Figure 6), correlated
    features (Figure 7).
    """
    from fedrec.experiment.analyses.views import two_views
    from fedrec.report.figures.two_views import correlation_csv, correlation_plot, overlap_csv, overlap_plot

    if not any(Path(run).is_dir() for run in runs):
        _view_parts(context, list(dict.fromkeys(runs)), out, quiet)
        return
    found = [two_views(Path(run), client, depth, persistence) for run in dict.fromkeys(runs)]
    for one in found:
        typer.echo(
            f"{one.name}: rank-biased overlap {one.overlap.mean():.3f}, client {one.client}: mean size of "
            f"the correlations {abs(one.correlation).mean():.4f}"
        )
    about = f"top {depth}, p = {persistence:g}"
    write(out, "views-overlap", overlap_plot({one.name: one.overlap for one in found}, about), overlap_csv(found))
    matrices = {f"{one.name}, client {one.client}": one.correlation for one in found}
    write(out, "views-correlation", correlation_plot(matrices), correlation_csv(matrices))


def _view_parts(context: typer.Context, methods: list[str], out: Path, quiet: bool) -> None:
    """Train the methods, print what their views reach by themselves, and draw it."""
    from fedrec.experiment.analyses.view_parts import SPREAD, view_parts
    from fedrec.report.figures.analyses import curves, points_csv

    points = [point for method in methods for point in view_parts(method, _given(context), _progress(quiet))]
    metrics = [*metrics_of(points)[:1], SPREAD]
    for metric in metrics:
        _print_curves(points, metric, sorted({int(point.x) for point in points}))
    figure = curves(points, "Two views, together and alone", _about(context), "round", metrics)
    write(out, file_of(context, "views"), figure, points_csv(points, "round", "part"))


def _print_curves(points: Sequence[Point], metric: str, rounds: list[int]) -> None:
    """The curves' values at some rounds, a row each."""
    from rich.console import Console
    from rich.table import Table

    from fedrec.report.text.terminal import print_table

    table = Table(metric, *map(str, rounds))
    for series in dict.fromkeys(point.series for point in points):
        own = [point for point in points if point.series == series and point.metric == metric]
        values = {int(point.x): f"{point.value:.4f}" for point in own}
        table.add_row(series, *(values.get(number, "") for number in rounds))
    print_table(Console(highlight=False), table)


def _given(context: typer.Context) -> dict[str, Any]:
    return {"keep_selected": False, **o.given(context)}


def _about(context: typer.Context) -> str:
    """What a figure says of the data, the protocol and the seed."""
    asked = context.params
    return f"{asked['data']}, protocol {asked['protocol']}, seed {asked['seed']}"


def file_of(context: typer.Context, analysis: str) -> str:
    return f"{analysis}-{Path(context.params['data']).name}-{context.params['protocol']}"


def metrics_of(points: Sequence[Point]) -> list[str]:
    """The metrics to draw: among sampled candidates where the protocol has them, as the paper's figures."""
    known = {point.metric for point in points}
    sampled: list[str] = [name for name in ("HR@10/99", "NDCG@10/99") if name in known]
    return sampled or [name for name in ("HR@10", "NDCG@10") if name in known]


def _progress(quiet: bool) -> OnRound:
    def after(label: str, record: Record) -> None:
        if not quiet and (record.round % 10 == 0 or record.round == 1):
            typer.echo(f"  {label}: round {record.round}, loss {record.loss:.4f}", err=True)

    return after


LONGEST = 200
"""Rows of a table that somebody may print."""


def write(out: Path, name: str, figure: Figure, data: str) -> None:
    from fedrec.report.figures.files import save_all
    from fedrec.report.text.latex import csv_latex
    from fedrec.runs.atomic import write_text

    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{name}.csv", data)
    save_all(figure, out / name)
    short = data.count("\n") <= LONGEST
    if short:
        write_text(out / f"{name}.tex", csv_latex(data))
    typer.echo(f"figure: {out / name}.png, .svg, .pdf")
    typer.echo(f"data:   {out / name}.csv{', .tex' if short else ''}")

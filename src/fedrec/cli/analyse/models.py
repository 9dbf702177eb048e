"""``fedrec analyse items`` and ``views``: what trained models hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.analyse.shared import (
    TRAINED,
    Out,
    about_data,
    file_of,
    given,
    metrics_of,
    print_curves,
    progress,
    write,
)
from fedrec.errors import BadInput
from fedrec.report.text.shown import shown

if TYPE_CHECKING:
    from fedrec.experiment.prepare import Prepared

app = typer.Typer()


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

    feddae: global, a user's own, their mean, and weighted by the gate; "apart" is the mean silhouette of the user's
    items against the others: 0 where they are mixed, 1 where they are two clusters. fedcia: at the start, trained, and
    aggregated in two ways; how far clients' tables are from one another, and how their similarities correlate.
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
        typer.echo(f"user {shown(one.user)}: gate {one.weights[0]:.3f} / {one.weights[1]:.3f}; apart: {apart}")
    chosen = prepared.settings
    figure = item_maps_figure(found, f"{chosen.data}, protocol {chosen.protocol}, seed {chosen.seed}; t-SNE")
    write(out, f"items-{run.resolve().name}", figure, item_maps_csv(found, prepared.task.data.item_ids))


def _client_maps(prepared: Prepared, clients: int, count: int, out: Path, run: Path) -> None:
    """Draw the tables of some clients, and print how far they differ."""
    from fedrec.experiment.analyses.items import client_maps
    from fedrec.report.figures.item_map import client_maps_csv, client_maps_figure

    found, chosen = client_maps(prepared, clients, count), prepared.settings
    for stage, apart in found.distance.items():
        alike = found.agreement[stage]
        typer.echo(f"{stage}: distance between clients {apart:.3f}, correlation of their similarities {alike:.3f}")
    about = f"{chosen.data}, protocol {chosen.protocol}, seed {chosen.seed}; {count} items; t-SNE"
    data = client_maps_csv(found.clients, found.points, prepared.task.data.item_ids[found.items])
    figure = client_maps_figure(found.clients, found.points, found.distance, about)
    write(out, f"items-{run.resolve().name}", figure, data)


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
        str | None, typer.Option("--client", help="The client whose correlations to show.", show_default="the first")
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Length of the lists to compare.")] = 50,
    persistence: Annotated[
        float, typer.Option("--p", min=0.0, max=1.0, help="p of rank-biased overlap: how deep a reader looks.")
    ] = 0.99,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Two views of the items: what each reaches alone (methods), or how they agree (folders of runs).

    METHOD: trained here; at some rounds, HR and NDCG of both views together and of the shared and the private one
    alone, and how widely each view's scores spread over items that a user has not had. RUN: overlap of the views'
    rankings (Fed3CR Figure 6), correlated features (Figure 7).
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
    overlaps = [(one.name, *pair) for one in found for pair in zip(one.users, one.overlap, strict=True)]
    write(out, "views-overlap", overlap_plot({one.name: one.overlap for one in found}, about), overlap_csv(overlaps))
    matrices = {f"{one.name}, client {one.client}": one.correlation for one in found}
    write(out, "views-correlation", correlation_plot(matrices), correlation_csv(matrices))


def _view_parts(context: typer.Context, methods: list[str], out: Path, quiet: bool) -> None:
    """Train the methods, print what their views reach by themselves, and draw it."""
    from fedrec.experiment.analyses.views import SPREAD, view_parts
    from fedrec.report.figures.analyses import curves, points_csv

    points = [point for method in methods for point in view_parts(method, given(context), progress(quiet))]
    metrics = [*metrics_of(points)[:1], SPREAD]
    for metric in metrics:
        print_curves(points, metric, sorted({int(point.x) for point in points}))
    figure = curves(points, "Two views, together and alone", about_data(context), "round", metrics)
    write(out, file_of(context, "views"), figure, points_csv(points, "round", "part"))

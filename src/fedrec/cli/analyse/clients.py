"""``fedrec analyse skew``, ``sparsity``, ``weights``, ``stages``: what clients learn from one another (FedCA)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.analyse.shared import TRAINED, Out, about_data, file_of, given, metrics_of, progress, write
from fedrec.errors import BadInput

app = typer.Typer()

SPARSE = ("local", "fcf", "perfedrec", "fedfast", "pfedrec", "fedca")
"""What FedCA's figures of sparsity compare."""


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
    points = analysis.skew(given(context), range(10, most + 1, 10), progress(quiet))
    about = f"{about_data(context)}; FedAvg, then the mean of s of the most similar clients' tables"
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
    points = analysis.sparsity(names, chosen, given(context), progress(quiet))
    about = f"{about_data(context)}; the evaluating is that of the whole data"
    figure = curves(points, "Sparsity of training data", about, "share of training data", metrics_of(points))
    write(out, file_of(context, "sparsity"), figure, points_csv(points, "share", "method"))


@app.command("weights", cls=o.takes(*TRAINED, before="count"))
def weights(
    context: typer.Context,
    count: Annotated[int, typer.Option("--clients-shown", min=1, help="How many random clients to show.")] = 10,
    out: Out = Path("analyses"),
    quiet: o.Quiet = False,
) -> None:
    """Aggregation weights of FedCA (Figure 7): similarity, complementarity, and both combined."""
    from fedrec.experiment.analyses import weights as analysis
    from fedrec.report.figures.analyses import heat_maps, matrix_csv

    found = analysis.weights(given(context), count, progress(quiet))
    matrices = {
        "similarity S": found.similarity,
        "complementarity C": found.complementarity,
        "composite weights W": found.composite,
    }
    about = f"{about_data(context)}; {len(found.clients)} random clients"
    figure = heat_maps(found.clients, matrices, "Composite aggregation", about)
    write(out, file_of(context, "weights"), figure, matrix_csv(found.clients, matrices))


@app.command("stages", cls=o.takes("data", "data_dir", "protocol", "seed", "settings", "device", before="repeat"))
def stages(
    context: typer.Context,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="How often to measure each; the mean is reported.")
    ] = 5,
) -> None:
    """Seconds of FedCA's stages (Table 8): training and SVD of one client, the server's three steps for all."""
    from fedrec.experiment.analyses import stages as analysis
    from fedrec.report.text.terminal import print_rows

    found = analysis.stages(given(context), repeat)
    heads = ("data", "clients", "local training", "SVD", "similarity", "complementarity", "optimisation")
    seconds = (found.training, found.svd, found.similarity, found.complementarity, found.optimisation)
    print_rows(heads, [[str(context.params["data"]), str(found.clients), *(f"{value:.2g} s" for value in seconds)]])

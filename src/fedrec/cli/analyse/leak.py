"""``fedrec analyse leak``: what a protocol gives away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.analyse.shared import Out, about_data, file_of, print_curves, write

app = typer.Typer()


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
    print_curves(points, metric, [r for r in shown if r % max(1, rounds // 10) == 0])
    about = about_data(context).replace(", seed", f", {negatives} negatives per positive, seed")
    figure = curves(points, "What elimination alone reaches", about, "round", [metric], EXPECTED)
    write(out, file_of(context, "leak"), figure, points_csv(points, "round", "series"))

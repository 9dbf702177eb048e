"""``fedrec export``: a run's model or history for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.errors import BadInput

TensorBoard = Annotated[
    Path | None, typer.Option("--tensorboard", help="Write the history for TensorBoard below this folder.")
]
Mlflow = Annotated[
    str | None, typer.Option("--mlflow", help="Write the history to MLflow, at this tracking URI (sqlite:///FILE).")
]


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run; for --page a finished one of fedspectral or fedease.")],
    page: Annotated[Path | None, typer.Option("--page", help="Write a static page into this folder.")] = None,
    strongest: Annotated[
        int | None, typer.Option("--strongest", help="How many weights of each item a page of fedease keeps (64).")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="The page's title.")] = None,
    tensorboard: TensorBoard = None,
    mlflow: Mlflow = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep exporting the history until the run is finished.")
    ] = False,
) -> None:
    """Write a page that recommends in the visitor's own browser, or the run's history for TensorBoard or MLflow.

    Nothing that a visitor of the page chooses is sent anywhere. A run's history contains no user and no item.
    """
    from fedrec.report.export.exporting import export as hand_over
    from fedrec.report.export.exporting import sinks

    if page is None and tensorboard is None and mlflow is None:
        raise BadInput("export where to? give --page FOLDER, --tensorboard FOLDER or --mlflow URI")
    if page is None and (strongest is not None or title is not None):
        raise BadInput("--strongest and --title are of a page; give --page FOLDER, or leave them out")
    if follow and tensorboard is None and mlflow is None:
        raise BadInput("--follow is for histories; give --tensorboard FOLDER or --mlflow URI, or leave it out")
    if page is not None:
        from fedrec.serve.private_page import export_page

        made = export_page(run, page, strongest, title or "")
        typer.echo(f"{made.file}: {made.size / 1024:.0f} KiB, {made.says}; open it in a browser")
    places = [str(place) for place in (tensorboard, mlflow) if place is not None]
    for place, rounds in zip(places, hand_over(run, sinks(tensorboard, mlflow), follow), strict=True):
        typer.echo(f"{place}: {rounds} rounds")

"""``fedrec export``: a finished run's model for use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run of fedspectral or fedease.")],
    page: Annotated[Path, typer.Option("--page", help="Write a static page into this folder.")],
    strongest: Annotated[int, typer.Option("--strongest", help="Weights of each item that fedease keeps.")] = 64,
    title: Annotated[str, typer.Option("--title", help="The page's title.")] = "What would you like next?",
) -> None:
    """Write a page that recommends in the visitor's own browser: nothing that a visitor chooses is sent anywhere."""
    from fedrec.serve.private_page import export_page

    made = export_page(run, page, strongest, title)
    typer.echo(f"{made.file}: {made.size / 1024:.0f} KiB, {made.says}; open it in a browser")

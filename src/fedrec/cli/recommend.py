"""``fedrec recommend``: items for a user, out of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def recommend(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    user: Annotated[str, typer.Option("--user", help="The user's id, as in the data.")],
    k: Annotated[int, typer.Option("-k", help="How many items.")] = 10,
) -> None:
    """Print the best items for a user, with titles where the data has them; never one the user has."""
    from fedrec.experiment.open import opened

    found = opened(run).recommend(user, k)
    width = max(len(r.item) for r in found) if found else 1
    for r in found:
        typer.echo(f"{r.rank:3d}  {r.item:<{width}}  {r.title or ''}".rstrip())

"""``fedrec analyse``: the papers' analyses, federated filters and the leak, each with its figure and its data."""

from __future__ import annotations

import typer

from fedrec.cli.analyse import clients, many_runs, models

app = typer.Typer(
    no_args_is_help=True, help="Analyses: embedding skew, sparsity, weights, filters, the leak, privacy, models."
)
for part in (clients, many_runs, models):
    app.add_typer(part.app)

"""``fedrec methods``: what there is, and the card of one."""

from __future__ import annotations

from typing import Annotated

import typer


def methods(name: Annotated[str | None, typer.Argument(help="Show this method's card.")] = None) -> None:
    """List the methods, or show one's card: paper, what stays private, what is uploaded, departures, settings."""
    from fedrec.core.method import Method
    from fedrec.methods.registry import find, names
    from fedrec.recipes.search_spaces import space
    from fedrec.report.text.audit import card_facts

    if name is None:
        known = [(n, find(n)) for n in names()]
        for heading, federated in (("Centralised references", False), ("Federated methods", True)):
            typer.echo(heading)
            for n, kind in known:
                if issubclass(kind, Method) == federated:
                    typer.echo(f"  {n:<12} {kind.card.title}")
        return
    kind = find(name)
    card = kind.card
    typer.echo(f"{name}: {card.title}")
    for label, text in (*card_facts(name, card), *(("departure", text) for text in card.departures)):
        typer.echo(f"  {label:<15} {text}")
    typer.echo("  settings")
    for key, field in kind.Settings.model_fields.items():
        typer.echo(f"    {key}={field.default}  {field.description or ''}")
    searched = space(name)
    if searched.ranges:
        typer.echo("  searched by `fedrec tune`")
    for key, one in searched.ranges.items():
        typer.echo(f"    {key}: {one}  {one.why}")
    if searched.fixed:
        typer.echo(f"    with {', '.join(f'{key}={value}' for key, value in searched.fixed.items())}")

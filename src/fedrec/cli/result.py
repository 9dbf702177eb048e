"""How a run's result looks on a terminal and in a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fedrec.extras import left_out
from fedrec.report.text.shown import shown

if TYPE_CHECKING:
    from fedrec.experiment.open import Result
    from fedrec.runs.recommendations import Recommendation


def print_result(result: Result) -> None:
    """Metrics of the selected round, costs, and where the run lies."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fedrec.evaluation.protocols import find as find_protocol
    from fedrec.privacy.card import card_lines
    from fedrec.report.text.wording import secure_text

    found = result.json
    where = f"{found['method']} on {found['data']['name']}, protocol {found['protocol']}"
    table = Table("metric", title=Text(shown(where), style="bold"))
    table.add_column("valid", justify="right")
    table.add_column("test", justify="right")
    test, valid = found["metrics"]["test"], found["metrics"]["valid"]
    for name in valid or test:
        if "@5" in name or name.startswith(("Recall", "Precision")):
            continue
        table.add_row(name, _figure(valid.get(name)), _figure(test.get(name)))
    Console().print(table)
    seconds, size = found["seconds"], found["bytes"]
    typer.echo(
        f"round {found['selected_round']} of {found['rounds']} selected; {seconds['total']:.1f} s "
        f"(train {seconds['train']:.1f}, aggregate {seconds['aggregate']:.1f}, evaluate {seconds['evaluate']:.1f}); "
        f"per client and round {size['upload'] / 1024:.2f} KiB up, {size['download'] / 1024:.2f} KiB down; "
        f"peak {found['memory']['peak_mb']:.0f} MiB"
    )
    typer.echo(f"privacy: {shown(found['privacy'])}")
    for line in card_lines(found["privacy_card"]) if "privacy_card" in found else ():
        typer.echo(shown(line))
    if found.get("secure"):
        typer.echo(f"secure sums: {secure_text(found['secure'])}")
    for flaw in find_protocol(found["protocol"]).flaws:
        typer.echo(f"note: this protocol repeats a paper's procedure: {flaw}")
    if result.folder is not None:
        typer.echo(f"run folder: {result.folder.path}")


def _figure(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def print_items(found: Sequence[Recommendation]) -> None:
    """A list of items, with their titles where the data has them."""
    ids = [shown(r.item) for r in found]
    width = max(map(len, ids), default=1)
    for r, item in zip(found, ids, strict=True):
        typer.echo(f"{r.rank:3d}  {item:<{width}}  {shown(r.title or '')}".rstrip())


def say_report(written: Sequence[Path], pictures: str = "figures as files (the page has its own)") -> None:
    """Where a report lies, and what is missing in it for want of matplotlib."""
    typer.echo(f"report: {', '.join(map(str, written))}")
    if lack := left_out("matplotlib", pictures):
        typer.echo(lack, err=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """One object, atomically."""
    from fedrec.runs.atomic import write_text
    from fedrec.runs.plain_json import plain_json

    write_text(path, plain_json(content))

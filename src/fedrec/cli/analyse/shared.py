"""What the analyses of ``fedrec analyse`` share: options, progress, and how results are written and printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedrec.cli import options as o
from fedrec.report.text.shown import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedrec.core.loop import Record
    from fedrec.experiment.analyses.points import OnRound, Point

Out = Annotated[
    Path, typer.Option("--out", help="Folder for the figure (PNG) and the data (CSV).", callback=o.a_folder)
]
TRAINED = ("data", "data_dir", "protocol", "rounds", "seed", "settings")
"""Options of analyses that train."""


def print_curves(points: Sequence[Point], metric: str, rounds: list[int]) -> None:
    """The curves' values at some rounds, a row each."""
    from fedrec.report.text.terminal import print_rows

    values = {(point.series, int(point.x)): f"{point.value:.4f}" for point in points if point.metric == metric}
    names = dict.fromkeys(point.series for point in points)
    rows = [[name, *(values.get((name, number), "") for number in rounds)] for name in names]
    print_rows([metric, *map(str, rounds)], rows)


def given(context: typer.Context) -> dict[str, Any]:
    """Settings of the runs; their models are not kept."""
    return {"keep_selected": False, **o.given(context)}


def about_data(context: typer.Context) -> str:
    """What a figure says of the data, the protocol and the seed."""
    asked = context.params
    return f"{asked['data']}, protocol {asked['protocol']}, seed {asked['seed']}"


def file_of(context: typer.Context, analysis: str) -> str:
    return f"{analysis}-{Path(context.params['data']).name}-{context.params['protocol']}"


def metrics_of(points: Sequence[Point]) -> list[str]:
    """The metrics to draw: among sampled candidates where the protocol has them, as the paper's figures."""
    known = {point.metric for point in points}
    sampled: list[str] = [name for name in ("HR@10/99", "NDCG@10/99") if name in known]
    return sampled or [name for name in ("HR@10", "NDCG@10") if name in known]


def progress(quiet: bool) -> OnRound:
    def after(label: str, record: Record) -> None:
        if not quiet and (record.round % 10 == 0 or record.round == 1):
            typer.echo(f"  {label}: round {record.round}, loss {record.loss:.4f}", err=True)

    return after


LONGEST = 200
"""Rows of a table that somebody may print."""


def write(out: Path, name: str, figure: Figure, data: str) -> None:
    from fedrec.report.figures.files import save_all
    from fedrec.report.text.latex import csv_latex
    from fedrec.runs.atomic import keep_text

    out.mkdir(parents=True, exist_ok=True)
    keep_text(out / f"{name}.csv", data)
    save_all(figure, out / name)
    short = data.count("\n") <= LONGEST
    if short:
        keep_text(out / f"{name}.tex", csv_latex(data))
    typer.echo(f"figure: {out / name}.png, .svg, .pdf")
    typer.echo(f"data:   {out / name}.csv{', .tex' if short else ''}")


def end_with(failures: Mapping[Path, str]) -> None:
    """Name the runs that failed; the command then fails."""
    for folder, reason in failures.items():
        typer.echo(shown(f"failed: {folder.name}: {reason}"), err=True)
    if failures:
        raise typer.Exit(1)

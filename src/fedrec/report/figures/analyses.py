"""Figures and files of the analyses: curves over a quantity, and heat maps of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from matplotlib.figure import Figure

from fedrec.report.figures.canvas import FAINT, INK, PALETTE, panelled
from fedrec.report.text.csv_text import csv_text


class Measured(Protocol):
    """One measurement (:class:`fedrec.experiment.analyses.points.Point` fits)."""

    @property
    def x(self) -> float: ...
    @property
    def series(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def value(self) -> float: ...


def points_csv(points: Sequence[Measured], x: str, series: str) -> str:
    """The measurements as CSV with a header."""
    rows = ([f"{p.x:g}", p.series, p.metric, f"{p.value:.6f}"] for p in points)
    return csv_text([x, series, "metric", "value"], rows)


def matrix_csv(names: Sequence[str], matrices: dict[str, Any]) -> str:
    """Matrices between named clients as CSV: matrix, row, column, value."""
    rows = (
        [title, name, other, f"{matrix[row][k]:.8f}"]
        for title, matrix in matrices.items()
        for row, name in enumerate(names)
        for k, other in enumerate(names)
    )
    return csv_text(["matrix", "client", "other", "value"], rows)


MARKED = 25
"""Points of a line up to which each of them is marked."""


def curves(
    points: Sequence[Measured], title: str, about: str, x: str, metrics: Sequence[str], theory: str = ""
) -> Figure:
    """A panel for each metric, a line for each series; that of a formula (``theory``) is dashed and lies on top."""
    width = (2.6 if len(metrics) > 1 else 4.4) + 0.9
    figure, panels = panelled(title, about, (1.2 + width * len(metrics), 4.0), len(metrics))
    names = list(dict.fromkeys(p.series for p in points))
    for axes, metric in zip(panels, metrics, strict=True):
        for name, colour in zip(names, PALETTE * (1 + len(names) // len(PALETTE)), strict=False):
            line = sorted((p.x, p.value) for p in points if p.series == name and p.metric == metric)
            style = {"color": colour, "linewidth": 1.6, "marker": "o" if len(line) <= MARKED else "", "markersize": 4}
            if name == theory:
                style |= {"color": INK, "linestyle": "--", "marker": "", "zorder": 5}
            axes.plot(*zip(*line, strict=True), label=name, **style)
        axes.set_xlabel(x, color=INK, fontsize=10)
        axes.set_title(metric, fontsize=10, color=INK, loc="left")
        axes.grid(axis="y", color=FAINT, linewidth=0.7)
        highest = max((p.value for p in points if p.metric == metric), default=0.0)
        axes.set_ylim(0, 1.05 * max(highest, 1e-9))  # a margin of the values, not of how far they lie apart
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(metrics) == 1 else {}
    panels[0].legend(frameon=False, fontsize=9, **beside)
    return figure


def heat_maps(names: Sequence[str], matrices: dict[str, Any], title: str, about: str) -> Figure:
    """Matrices between the same clients side by side, each on its own scale; the diagonal is left out."""
    import numpy as np

    figure, panels = panelled(title, about, (1.2 + (2.3 + 0.9) * len(matrices), 4.0), len(matrices))
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=True):
        shown = np.array(matrix, float)
        np.fill_diagonal(shown, np.nan)  # a client with itself would hide all else
        picture = axes.imshow(shown, cmap="viridis")
        axes.set_title(name, fontsize=10, color=INK, loc="left")
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        bar = figure.colorbar(picture, ax=axes, fraction=0.046, pad=0.04)
        bar.ax.tick_params(labelsize=7)
    return figure

"""Figures of two-view methods: agreement of rankings (Fed3CR Figure 6) and correlation of features (Figure 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fedrec.report.figures.canvas import PALETTE, SOFT, sheet
from fedrec.report.text.csv_text import csv_text

CUT = 0.003
"""Correlations within +- this are shown as none, as in Figure 7."""


def overlap_plot(overlaps: Mapping[str, NDArray[np.floating]], about: str = "top 50, p = 0.99") -> Figure:
    """Histograms of rank-biased overlap ``[clients]`` by method, each of area one."""
    figure = sheet(7.0, 3.6, fitted=True)
    axes: Any = figure.subplots()
    bins = np.linspace(0.0, 1.0, 41)
    for (name, values), colour in zip(overlaps.items(), PALETTE * (1 + len(overlaps) // len(PALETTE)), strict=False):
        axes.hist(values, bins, density=True, alpha=0.55, color=colour, label=f"{name} (mean {np.mean(values):.2f})")
    axes.set_xlabel(f"rank-biased overlap of the two views ({about})")
    axes.set_ylabel("density")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def correlation_plot(matrices: Mapping[str, NDArray[np.floating]], cut: float = CUT) -> Figure:
    """Correlation matrices of the two views ``[d, d]`` side by side on one scale, small values blanked."""
    shown = {name: np.where(np.abs(matrix) <= cut, 0.0, matrix) for name, matrix in matrices.items()}
    reach = max(float(np.abs(matrix).max()) for matrix in shown.values()) or 1.0
    figure = sheet(3.6 * len(shown) + 1.0, 4.0, fitted=True)
    panels = list(figure.subplots(1, len(shown), squeeze=False)[0])
    for axes, (name, matrix) in zip(panels, shown.items(), strict=True):
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-reach, vmax=reach)
        axes.set_xlabel("private dimension")
        axes.set_title(name, fontsize=10, color=SOFT)
    panels[0].set_ylabel("consensus dimension")
    figure.colorbar(image, ax=panels, shrink=0.85)
    return figure


def overlap_csv(overlaps: Iterable[tuple[str, str, float]]) -> str:
    """Overlaps as CSV: run, user, overlap."""
    return csv_text(["run", "user", "overlap"], ([run, user, f"{value:.6f}"] for run, user, value in overlaps))


def correlation_csv(matrices: Mapping[str, NDArray[np.floating]]) -> str:
    """Matrices as CSV: run, consensus dimension, private dimension, value (nothing blanked)."""
    rows = (
        [name, row, column, f"{value:.6g}"]
        for name, matrix in matrices.items()
        for (row, column), value in np.ndenumerate(matrix)
    )
    return csv_text(["run", "consensus", "private", "value"], rows)

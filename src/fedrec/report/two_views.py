"""Figures of two-view methods: agreement of rankings (Fed3CR Figure 6) and correlation of features (Figure 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrec.report.canvas import PALETTE, SOFT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CUT = 0.003
"""Correlations within +- this are shown as none, as in Figure 7."""


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def overlap_plot(overlaps: dict[str, NDArray[np.floating]]) -> Figure:
    """Histograms of rank-biased overlap ``[clients]`` by method, each of area one."""
    figure, axes = _figure(7.0, 3.6)
    bins = np.linspace(0.0, 1.0, 41)
    for (name, values), colour in zip(overlaps.items(), PALETTE * (1 + len(overlaps) // len(PALETTE)), strict=False):
        axes.hist(values, bins, density=True, alpha=0.55, color=colour, label=f"{name} (mean {np.mean(values):.2f})")
    axes.set_xlabel("rank-biased overlap of the two views' top 50 (p = 0.99)")
    axes.set_ylabel("density")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def correlation_plot(matrix: NDArray[np.floating], title: str = "", cut: float = CUT) -> Figure:
    """The correlation matrix of the two views ``[d, d]``, small values blanked."""
    shown = np.where(np.abs(matrix) <= cut, 0.0, matrix)
    reach = float(np.abs(shown).max()) or 1.0
    figure, axes = _figure(4.6, 4.0)
    image = axes.imshow(shown, cmap="RdBu_r", vmin=-reach, vmax=reach)
    figure.colorbar(image, ax=axes, shrink=0.85)
    axes.set_xlabel("private dimension")
    axes.set_ylabel("consensus dimension")
    axes.set_title(title, fontsize=10, color=SOFT)
    return figure

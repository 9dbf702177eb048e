"""The critical-difference diagram: mean ranks on a line, and bars over methods that cannot be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrec.report.figures.canvas import INK, SOFT, WIDTH, sheet, shortened
from fedrec.report.model.mean_ranks import MeanRanks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP = 0.24
"""Inches from one method's line to the next."""
NAME = 24
"""Letters of a method's name."""
MOST_NUMBERS = 16
"""Numbers that fit on the line of ranks."""


def rank_plot(found: MeanRanks) -> Figure:
    """The better half of the methods has its names on the left, the other on the right."""
    count, groups = len(found.methods), found.groups
    left = (count + 1) // 2
    bars = 0.16 * (len(groups) + 1)
    height = 1.0 + bars + STEP * left
    figure = sheet(WIDTH, height)
    side = 1.7 / WIDTH
    axes = figure.add_axes((side, 0.12 / height, 1 - 2 * side, 1 - 0.62 / height))
    axes.set_xlim(1, count)
    axes.set_ylim(height - 0.74, 0)
    axes.axis("off")
    axes.plot([1, count], [0.3, 0.3], color=INK, lw=1)
    every = -(-count // MOST_NUMBERS)
    for place in range(1, count + 1):
        axes.plot([place, place], [0.24, 0.3], color=INK, lw=1)
        if place == 1 or place % every == 0:
            axes.text(place, 0.2, str(place), ha="center", va="bottom", fontsize=8.5, color=INK)
    for number, (first, last) in enumerate(groups):
        at = 0.42 + 0.16 * number
        axes.plot([found.ranks[first] - 0.06, found.ranks[last] + 0.06], [at, at], color=INK, lw=3)
    for place, (method, rank) in enumerate(zip(found.methods, found.ranks, strict=True)):
        better = place < left
        at = 0.42 + bars + STEP * (place if better else count - 1 - place)
        end = 1 if better else count
        axes.plot([rank, rank, end], [0.3, at, at], color=SOFT, lw=0.8, clip_on=False)
        text = f"{shortened(method, NAME)}  {rank:.1f}" if better else f"{rank:.1f}  {shortened(method, NAME)}"
        axes.text(end, at, text + "  " if better else "  " + text, ha="right" if better else "left", va="center",
                  fontsize=9, color=INK)  # fmt: skip
    about = (
        f"{found.metric}: mean ranks over {found.cases} data sets. Bars join what cannot be told apart: nearer than "
        f"{found.difference:.1f} (Nemenyi, 5 %)."
    )
    figure.text(0.012, 1 - 0.1 / height, about, ha="left", va="top", fontsize=9, color=INK)
    return figure

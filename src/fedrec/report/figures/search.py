"""A picture of a search: the best value so far, and the value at each setting that was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedrec.report.figures.canvas import ALARM, FAINT, INK, PALETTE, SOFT, sheet
from fedrec.report.model.search import Search, Trial, improved

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def search_plot(search: Search) -> Figure:
    """One panel for the course of the search, one for each setting; pruned trials are hollow, the best is marked."""
    ranges = list(search.space.ranges.values())
    figure = sheet(2.3 * (1 + len(ranges)) + 0.4, 2.6, fitted=True)
    panels: Any = figure.subplots(1, 1 + len(ranges), sharey=True, squeeze=False)[0]
    shown = [trial for trial in search.trials if trial.curve]
    _dots(panels[0], [float(trial.number) for trial in shown], shown, search)
    line = improved(search.trials)
    if line:
        panels[0].step(*zip(*line, strict=True), where="post", color=PALETTE[0], linewidth=1.2, zorder=1)
    panels[0].set_xlabel("trial", fontsize=9)
    panels[0].set_ylabel(f"{search.metric}, validation", fontsize=9)
    for axes, one in zip(panels[1:], ranges, strict=True):
        inside = [trial for trial in shown if one.holds(trial.own.get(one.key))]
        tried = [trial.own[one.key] for trial in inside]
        _dots(axes, [float(one.choices.index(value) if one.choices else value) for value in tried], inside, search)
        if one.choices:
            axes.set_xticks(range(len(one.choices)), [str(choice) for choice in one.choices])
        elif one.log:
            axes.set_xscale("log")
            axes.set_xlim(one.low / 1.2 if one.low else None, one.high * 1.2 if one.high else None)
            axes.xaxis.set_minor_formatter("")
        share = search.importance.get(one.key)
        axes.set_xlabel(one.key + (f" ({share:.0%})" if share is not None else ""), fontsize=9)
    for axes in panels:
        axes.tick_params(labelsize=8, color=SOFT)
        axes.grid(color=FAINT, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{search.method} on {search.data}", fontsize=11, fontweight="bold", color=INK)
    return figure


def _dots(axes: Axes, places: Sequence[float], trials: Sequence[Trial], search: Search) -> None:
    for place, trial in zip(places, trials, strict=True):
        best = search.best is not None and trial.number == search.best.number
        colour = ALARM if best else PALETTE[0]
        fill = colour if trial.state == "complete" else "none"
        axes.scatter([place], [trial.value], s=34 if best else 18, edgecolors=colour, facecolors=fill, zorder=2 + best)

"""Figures of a comparison: a figure goes out, the caller saves it (:mod:`fedrec.report.figures.files`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrec.report.figures.canvas import FAINT, INK, LEFT, SOFT, above, canvas, end_labels, fitted, room_for, signs_key
from fedrec.report.model import colours as shades
from fedrec.report.model.comparison import FLOOR, Comparison, Group, Row
from fedrec.report.model.series import Band, Series, series_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STROKES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)))
DOTTED, DASHED = (0, (1, 2)), (0, (4, 3))
SIGNS: dict[Group, str] = {"federated": "o", "centralised": "s", "control": "D"}


def dot_plot(comparison: Comparison) -> Figure:
    """The main metric of every method, best on top, with seeds and spread; chance and popularity as lines."""
    metric = comparison.main
    known = [row for row in comparison.rows if math.isfinite(row.mean(metric))]
    rows = sorted(known, key=lambda row: row.mean(metric))
    several, colours = len(comparison.seeds) > 1, {one.name: one for one in series_of(comparison)}
    left = room_for((row.method for row in rows), LEFT)
    figure, axes = canvas(
        comparison, f"{metric} on {comparison.data['name']}", 0.32 * len(rows) + 0.1, head=0.86, left=left
    )
    top = max([_reach(row, metric) for row in rows] + [1e-9])
    axes.set_xlim(0, 1.12 * top)
    axes.set_ylim(-0.65, len(rows) - 0.35)
    for place, row in enumerate(rows):
        colour, summary = colours[row.method].colour, row.cells[metric].summary
        axes.plot([0, summary.mean], [place, place], color=FAINT, linewidth=1, zorder=1)
        if summary.count > 1:
            values = [run.test(metric) for run in row.runs]
            axes.plot(values, [place] * len(values), "|", color=colour, markersize=10, alpha=0.75, zorder=3)
            axes.errorbar(summary.mean, place, xerr=summary.spread, color=colour, linewidth=1.8, zorder=3)
        axes.plot(summary.mean, place, SIGNS[row.group], color=colour, markersize=6.5, zorder=4)
        axes.annotate(
            f"{summary.mean:.{3 if top >= 0.2 else 4}f}",
            (_reach(row, metric), place),
            (8, 0),
            textcoords="offset points",
            va="center_baseline",
            fontsize=9,
            color=INK,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
            zorder=5,
        )
    axes.set_yticks(range(len(rows)), [fitted(row.method, left) for row in rows])
    _lines(axes, comparison, metric, len(rows) - 0.35)
    axes.set_xlabel(f"{metric}, test" + (" (tick: a seed; bar: ± standard deviation over seeds)" if several else ""))
    present = {row.group for row in rows}
    signs_key(figure, axes, {g: {"marker": SIGNS[g], "color": SOFT} for g in SIGNS if g in present}, 0.22)
    return figure


def curve_plot(comparison: Comparison) -> Figure | None:
    """Validation metric over rounds, mean and range over seeds; None where no method has several rounds."""
    metric = comparison.main
    colours = {one.name: one for one in series_of(comparison)}
    bands = {name: one.band(metric) for name, one in colours.items()}
    trained = [row for row in comparison.rows if len(bands.get(row.method, [])) > 1]
    if not trained:
        return None
    trained.sort(key=lambda row: (row.control, -row.mean(metric)))
    first = min(bands[row.method][0][0] for row in trained)
    last = max(bands[row.method][-1][0] for row in trained)
    several = len(comparison.seeds) > 1
    caption = "dot: selected round" + (" (median of the seeds); band: range over seeds" if several else "")
    single = [row for row in comparison.rows if len(bands.get(row.method, [])) == 1]
    caption += "; dashed: fitted in one step" if single else ""
    figure, axes = canvas(
        comparison,
        f"{metric} over rounds on {comparison.data['name']}",
        max(3.3, 0.19 * len(bands)),
        right=room_for((row.method for row in comparison.rows), 1.35),
        caption=caption,
    )
    labels = [_draw_curve(axes, colours[row.method], bands[row.method], last) for row in trained]
    for row in single:
        value = bands[row.method][0][2]
        axes.axhline(value, color=SOFT, linewidth=1, linestyle=DASHED, zorder=1)
        labels.append((value, row.method, SOFT))
    highest = max([value for value, _, _ in labels] + [high for row in trained for _, _, _, high in bands[row.method]])
    axes.set_xlim(first, last)
    axes.set_ylim(0, 1.05 * max(highest, 1e-9))
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    central = any(row.group == "centralised" for row in trained)
    axes.set_xlabel("round (an epoch, for a centralised model)" if central else "round")
    axes.set_ylabel(f"{metric}, validation")
    end_labels(axes, labels, last)
    return figure


def _draw_curve(axes: Axes, drawn: Series, band: Band, last: int) -> tuple[float, str, str]:
    """One method's line; gives its label. Controls are grey: colours are for what is compared."""
    colour, control = drawn.colour, drawn.group == "control"
    stroke = "-" if control else STROKES[shades.place(drawn.number)[1]]
    rounds, low, mean, high = (list(part) for part in zip(*band, strict=True))
    if len(drawn.runs) > 1:
        axes.fill_between(rounds, low, high, color=colour, alpha=0.13, linewidth=0)
    axes.plot(rounds, mean, color=colour, linestyle=stroke, linewidth=1.2 if control else 1.8)
    at = int(np.argmin(np.abs(np.asarray(rounds) - drawn.selected)))
    axes.plot(rounds[at], mean[at], "o", color=colour, markersize=6, markeredgecolor="white", clip_on=False, zorder=4)
    if rounds[-1] < last:  # stopped early: lead the eye to the label
        axes.plot([rounds[-1], last], [mean[-1]] * 2, color=colour, linewidth=0.8, alpha=0.5, linestyle=DOTTED)
    return mean[-1], drawn.name, colour


def _lines(axes: Axes, comparison: Comparison, metric: str, height: float) -> None:
    """Chance and popularity: below the one nothing was learnt, below the other nothing was personalised."""
    known: list[tuple[float, str, Any]] = []
    random, floor = comparison.row("random"), comparison.row(FLOOR)
    if metric in comparison.chance:
        known.append((comparison.chance[metric], "chance", DOTTED))
    elif random is not None and math.isfinite(random.mean(metric)):
        known.append((random.mean(metric), "random", DOTTED))
    if floor is not None and math.isfinite(floor.mean(metric)):
        known.append((floor.mean(metric), FLOOR, DASHED))
    known.sort(key=lambda line: line[0])
    width = axes.get_xlim()[1]
    close = len(known) == 2 and known[1][0] - known[0][0] < 0.14 * width
    for number, (value, name, stroke) in enumerate(known):
        axes.axvline(value, color=SOFT, linewidth=1, linestyle=stroke, zorder=0)
        side = ("right", "left")[number] if close else "center"
        if value < 0.06 * width and number == 0 and side == "center":
            side = "left"
        above(axes, name, (value, height), side)


def _reach(row: Row, metric: str) -> float:
    """How far to the right a row's marks go."""
    summary = row.cells[metric].summary
    spread = summary.spread if summary.count > 1 else 0.0
    return max([summary.mean + spread, *(run.test(metric) for run in row.runs)])

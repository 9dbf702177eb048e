"""The figure of federated filters: quality over rounds, over bytes and over noise; and its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from fedrec.report.figures.canvas import FAINT, INK, SOFT, panelled, spread_out
from fedrec.report.model.filters import Level, Shown, Spot
from fedrec.report.text.csv_text import csv_text

BLUES = ("#9ecae1", "#4292c6", "#08519c", "#08306b")
OTHERS = ("#009E73", "#CC79A7", "#E69F00", "#000000")
EASE = "#D55E00"
DASHES = {"ease": (0, (6, 2)), "gfcf": (0, (3, 2)), "popularity": (0, (1, 2))}


def filters_csv(shown: Shown) -> str:
    """One line for every mark of the figure."""
    rows: list[list[Any]] = [[level.name, "", "", "", f"{level.quality:.6f}"] for level in shown.levels]
    for course in shown.courses:
        marks = zip(course.rounds, course.bytes, course.quality, strict=True)
        rows += [[course.name, number, f"{size:.0f}", 0, f"{value:.6f}"] for number, size, value in marks]
    rows += [[spot.name, "", "", f"{spot.scale:g}", f"{spot.quality:.6f}"] for spot in shown.spots]
    return csv_text(["series", "round", "bytes_per_client", "noise", shown.metric], rows)


def filters_figure(shown: Shown, about: str) -> Figure:
    """Three panels over one axis of quality; the third only where there is noise."""
    panels = 3 if shown.spots else 2
    title = f"Federated filters: {shown.metric}"
    figure, axes = panelled(title, about, (4.3 * panels, 4.7), panels, (0.006, 0.935), sharey=True)
    style = _styles(shown)
    for one in axes:
        one.grid(axis="y", color=FAINT, linewidth=0.7)
        one.set_axisbelow(True)
    for course in shown.courses:
        for one, where in ((axes[0], course.rounds), (axes[1], [size / 1e6 for size in course.bytes])):
            one.plot(where, course.quality, markersize=9 if len(where) == 1 else 4, linewidth=1.7, **style[course.name])
    _axis(axes[0], "rounds", [number for course in shown.courses for number in course.rounds])
    _axis(axes[1], "MB sent and received by a client", [b / 1e6 for course in shown.courses for b in course.bytes])
    if shown.spots:
        _noise(axes[2], shown.spots, style)
    for one in axes:
        for level in shown.levels:
            one.axhline(level.quality, color=SOFT, linewidth=1, linestyle=DASHES.get(level.name, "-"), zorder=1)
    lowest = min([0.0, *(value for course in shown.courses for value in course.quality)])
    highest = max([level.quality for level in shown.levels] + [q for course in shown.courses for q in course.quality])
    axes[0].set_ylim(lowest, 1.08 * highest)
    axes[0].set_ylabel(f"{shown.metric}, test", color=INK, fontsize=10)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=len(names), frameon=False, fontsize=9)
    _name_levels(axes[-1], shown.levels)
    return figure


def _styles(shown: Shown) -> dict[str, dict[str, Any]]:
    """Colour and mark of each series: filters in blues and red, what is trained in the others."""
    found: dict[str, dict[str, Any]] = {}
    blues, others = iter(BLUES * 9), iter(OTHERS * 9)
    for course in shown.courses:
        if course.name.startswith("fedspectral"):
            found[course.name] = {"color": next(blues), "marker": "o"}
        elif course.name == "fedease":
            found[course.name] = {"color": EASE, "marker": "*", "linestyle": "none"}
        else:
            found[course.name] = {"color": next(others), "marker": "", "linestyle": "-"}
        found[course.name]["label"] = course.name
    return found


def _noise(axes: Any, spots: Sequence[Spot], style: dict[str, dict[str, Any]]) -> None:
    """Quality over the scale of noise, scales at equal distances."""
    scales = sorted({spot.scale for spot in spots})
    widths = [look for name, look in style.items() if name.startswith("fedspectral")]
    for name in dict.fromkeys(spot.name for spot in spots):
        line = sorted((scales.index(spot.scale), spot.quality) for spot in spots if spot.name == name)
        own = style.get(name) or widths[len(widths) // 2]  # the width that noise was tried on
        look = {"color": own["color"], "marker": own["marker"] or "s", "linestyle": "-"}
        axes.plot(*zip(*line, strict=True), markersize=9 if look["marker"] == "*" else 4, linewidth=1.7, **look)
    axes.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    axes.set_xlabel("scale of Laplace noise on every number sent", color=INK, fontsize=10)


def _axis(axes: Any, label: str, values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    wide = max(values, default=1) > 80 * min(values, default=1)
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if values:
        axes.set_xlim(0.85 * min(values), 1.18 * max(values))
    axes.set_xlabel(label, color=INK, fontsize=10)


def _name_levels(axes: Any, levels: Sequence[Level]) -> None:
    """Names of the lines across, right of the last panel, apart where they would cover one another."""
    low, high = axes.get_ylim()
    ordered = sorted(levels, key=lambda level: level.quality)
    places = spread_out([(level.quality - low) / (high - low) for level in ordered], least=0.05)
    for place, level in zip(places, ordered, strict=True):
        axes.annotate(level.name, (1.015, place), xycoords="axes fraction", va="center", fontsize=9, color=SOFT)

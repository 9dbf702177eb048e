"""The figure of one run: a metric over its rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedrec.errors import BadInput, nearest
from fedrec.report.figures.canvas import FAINT, INK, PALETTE, plain, sheet
from fedrec.report.model.runs import points_of
from fedrec.report.text.result import metrics_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def round_plot(found: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]], metric: str | None = None) -> Figure:
    """Validation and, where it was evaluated, test over rounds; a dot at the selected round."""
    name = metric or metrics_of(found)[-1]
    known = {key for part in ("valid", "test") for key in found["metrics"][part]}
    if name not in known:
        raise BadInput(f"no metric {name!r} in this run; {nearest(name, sorted(known))}")
    figure = sheet(7.6, 3.6, fitted=True)
    axes = figure.subplots()
    for part, colour in zip(("valid", "test"), PALETTE, strict=False):
        points = points_of(rounds, name, part)
        if not points:
            continue
        numbers, values = zip(*points, strict=True)
        axes.plot(numbers, values, color=colour, linewidth=1.8, marker="o" if len(points) == 1 else "", label=part)
        chosen = dict(points).get(found["selected_round"])
        if chosen is not None:
            axes.plot(found["selected_round"], chosen, "o", color=colour, markersize=6, markeredgecolor="white")
    where = f"{found['method']} on {found['data']['name']}, protocol {found['protocol']}, seed {found['seed']}"
    axes.set_title(f"{name}: {where}", fontsize=11, color=INK, loc="left")
    axes.set_xlabel("round (dot: selected)", color=INK)
    axes.set_ylabel(name, color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    plain(axes)
    axes.legend(frameon=False)
    return figure

"""The picture of a reproduction: published, ours and strict on one line for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedrec.report.figures import canvas
from fedrec.report.figures.canvas import FAINT, INK, SOFT, WIDTH
from fedrec.report.model.reproduction import Panel, Reproduction, heading
from fedrec.report.text.reproduction import name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGNS: dict[str, dict[str, Any]] = {
    "published": {"marker": "o", "markeredgecolor": "#777777", "markerfacecolor": "white"},
    "ours": {"marker": "o", "markeredgecolor": "#0072B2", "markerfacecolor": "#0072B2"},
    "strict": {"marker": "D", "markeredgecolor": "#D55E00", "markerfacecolor": "#D55E00"},
}
LEFT, RIGHT, LETTER = 1.9, 0.35, 0.075  # inches; LEFT or more, as names need it
MOST_LETTERS = 46


def dot_plot(reproduction: Reproduction, panel: Panel) -> Figure | None:
    """The first metric of a data set, row by row as in the paper; None where there is nothing to draw."""
    metric, drawn, warning = reproduction.table.metrics[0], panel.drawn, canvas.wrapped(panel.banner)
    if not drawn:
        return None
    names = [canvas.shortened(name_of(line), MOST_LETTERS) for line, _ in drawn]
    left = max(LEFT, LETTER * max(map(len, names)) + 0.2)
    figure, axes = canvas.framed(0.3 * len(drawn) + 0.1, 0.95, 0.55 + 0.15 * len(warning), left, RIGHT)
    top = max(value for _, points in drawn for value in points.values())
    axes.set_xlim(0, 1.06 * max(top, 1e-9))
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    for place, (_, points) in enumerate(drawn):
        axes.plot([min(points.values()), max(points.values())], [place] * 2, color=FAINT, linewidth=2.5, zorder=1)
        for name, look in SIGNS.items():
            if name in points:
                axes.plot(points[name], place, linestyle="", markersize=6.5, zorder=3, **look)
    if metric in panel.chance:
        axes.axvline(panel.chance[metric], color=SOFT, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        canvas.above(axes, "chance", (panel.chance[metric], -0.6))
    axes.set_yticks(range(len(drawn)), names)
    axes.set_xlabel(metric, color=INK)
    x, height = 0.2 / WIDTH, figure.get_size_inches()[1]
    title = heading(reproduction)
    figure.text(x, 1 - 0.22 / height, title, va="center", fontsize=11.5, fontweight="bold", color=INK)
    about = f"{panel.column.label}, {metric}, {canvas.of_seeds(reproduction.seeds)}"
    about += f"; ours under {reproduction.table.protocol}"
    figure.text(x, 1 - 0.43 / height, about, va="center", fontsize=9, color=SOFT)
    canvas.signs_key(figure, axes, SIGNS, 0.43)
    canvas.warn(figure, warning)
    return figure

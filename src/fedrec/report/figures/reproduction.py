"""The picture of a reproduction: published, ours and strict on one line for every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrec.report.figures.canvas import ALARM, FAINT, INK, KEY, SOFT, sheet, shortened
from fedrec.report.model.reproduction import Panel, Reproduction, heading
from fedrec.report.text.reproduction import name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGNS = (
    ("published", "o", "#777777", "white"),
    ("ours", "o", "#0072B2", "#0072B2"),
    ("strict", "D", "#D55E00", "#D55E00"),
)
WIDTH, LEFT, RIGHT, LETTER = 7.6, 1.9, 0.35, 0.075  # inches; LEFT or more, as names need it
MOST_LETTERS = 46


def dot_plot(reproduction: Reproduction, panel: Panel) -> Figure | None:
    """The first metric of a data set, row by row as in the paper; None where there is nothing to draw."""
    import textwrap

    metric = reproduction.table.metrics[0]
    drawn = [(line, points) for line in panel.lines if (points := line.entries[0].points)]
    if panel.missing or not any("ours" in points for _, points in drawn):
        return None
    warning = textwrap.wrap(panel.banner or "", 114)
    head, body, foot = 0.95, 0.3 * len(drawn) + 0.1, 0.55 + 0.15 * len(warning)
    height = head + body + foot
    figure = sheet(WIDTH, height)
    names = [shortened(name_of(line), MOST_LETTERS) for line, _ in drawn]
    left = max(LEFT, LETTER * max(map(len, names)) + 0.2)
    axes = figure.add_axes((left / WIDTH, foot / height, 1 - (left + RIGHT) / WIDTH, body / height))
    top = max(value for _, points in drawn for value in points.values())
    axes.set_xlim(0, 1.06 * max(top, 1e-9))
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    for place, (_, points) in enumerate(drawn):
        axes.plot([min(points.values()), max(points.values())], [place] * 2, color=FAINT, linewidth=2.5, zorder=1)
        for name, sign, edge, face in SIGNS:
            if name in points:
                axes.plot(
                    points[name], place, sign, markeredgecolor=edge, markerfacecolor=face, markersize=6.5, zorder=3
                )
    if metric in panel.chance:
        axes.axvline(panel.chance[metric], color=SOFT, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        axes.annotate("chance", (panel.chance[metric], -0.6), (0, 2), textcoords="offset points", ha="center",
                      va="bottom", fontsize=8.5, color=SOFT)  # fmt: skip
    axes.set_yticks(range(len(drawn)), names)
    axes.tick_params(colors=INK, labelsize=9.5, length=3, color=SOFT)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(SOFT)
    axes.set_xlabel(metric, color=INK)

    def write(text: str, inches_down: float, **style: object) -> None:
        figure.text(0.2 / WIDTH, 1 - inches_down / height, text, va="center", **style)  # type: ignore[arg-type]

    write(heading(reproduction), 0.22, fontsize=11.5, fontweight="bold", color=INK)
    seeds = f"{len(reproduction.seeds)} seeds" if len(reproduction.seeds) > 1 else f"seed {reproduction.seeds[0]}"
    write(
        f"{panel.column.label}, {metric}, {seeds}; ours under {reproduction.table.protocol}",
        0.43,
        fontsize=9,
        color=SOFT,
    )
    _key(figure, height)
    if warning:
        figure.text(
            0.2 / WIDTH, 0.09 / height, "\n".join(warning), fontsize=8.5, color=ALARM, va="bottom", linespacing=1.2
        )
    return figure


def _key(figure: Figure, height: float) -> None:
    from matplotlib.lines import Line2D

    figure.legend(
        [
            Line2D([], [], marker=s, markeredgecolor=e, markerfacecolor=f, linestyle="", markersize=6)
            for _, s, e, f in SIGNS
        ],
        [name for name, *_ in SIGNS],
        bbox_to_anchor=(1 - RIGHT / WIDTH, 1 - 0.43 / height),
        ncols=3,
        **KEY,
    )

"""What figures are drawn on: size, margins, headline, colours. Matplotlib's global state is not used."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fedrec.extras import needs
from fedrec.report.model.colours import LIGHT
from fedrec.report.model.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, FAINT, ALARM = "#222222", "#666666", "#dddddd", "#a50f15"
PALETTE = LIGHT[0]
KEY: dict[str, Any] = {"loc": "center right", "frameon": False, "fontsize": 9, "labelcolor": INK, "handletextpad": 0.1}
KEY |= {"columnspacing": 1.2, "borderaxespad": 0, "borderpad": 0}
"""How the key of signs beside a headline looks."""
WIDTH = 7.6  # inches
LEFT = 1.1


def sheet(width: float, height: float, *, fitted: bool = False) -> Figure:
    """An empty figure, in inches; ``fitted`` leaves its margins to matplotlib."""
    needs("matplotlib", "a figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained" if fitted else None)
    FigureCanvasAgg(figure)
    return figure


def shortened(name: str, most: int) -> str:
    """A name of no more than so many letters.

    >>> shortened("Collaborative information", 13)
    'Collaborativ…'
    """
    return name if len(name) <= most else name[: max(most - 1, 1)].rstrip() + "…"


def without_middle(name: str, most: int) -> str:
    """A name of no more than so many letters; variants of a method differ at their ends.

    >>> without_middle("fedca:alpha=auto,beta=auto", 15)
    'fedca:a…ta=auto'
    """
    return name if len(name) <= most else name[: most // 2] + "…" + name[len(name) - (most - most // 2 - 1) :]


LETTER = 0.07
"""Inches that a letter of a method's name takes, a little more than most do."""


def room_for(names: Iterable[str], least: float) -> float:
    """Inches beside the axes for names of methods; longer ones lose their middle."""
    return min(max(least, 0.45 + LETTER * max(map(len, names), default=0)), 0.38 * WIDTH)


def letters_in(room: float) -> int:
    """Letters of a name for which there is room."""
    return int((room - 0.4) / LETTER)


def canvas(
    comparison: Comparison,
    title: str,
    body: float,
    *,
    head: float = 0.66,
    left: float = LEFT,
    right: float = 0.3,
    caption: str = "",
) -> tuple[Figure, Axes]:
    """A figure with axes ``body`` inches high, headline, caption and, where there is one, leak warning."""
    warning = textwrap.wrap(comparison.banner or "", 114)
    foot = 0.52 + 0.2 * bool(caption) + 0.15 * len(warning) + 0.1 * bool(warning)
    height = head + body + foot
    figure = sheet(WIDTH, height)
    axes = figure.add_axes((left / WIDTH, foot / height, 1 - (left + right) / WIDTH, body / height))
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=9.5, length=3, color=SOFT)
    axes.xaxis.label.set(color=INK, fontsize=10)
    axes.yaxis.label.set(color=INK, fontsize=10)

    def write(text: str, inches_up: float, **style: object) -> None:
        figure.text(left / WIDTH, inches_up / height, text, **style)  # type: ignore[arg-type]

    write(title, height - 0.22, fontsize=12, fontweight="bold", color=INK, va="center")
    write(_about(comparison), height - 0.43, fontsize=9, color=SOFT, va="center")
    if caption:
        write(caption, foot - 0.58, fontsize=8.5, color=SOFT, va="center")
    if warning:
        figure.text(
            0.2 / WIDTH, 0.09 / height, "\n".join(warning), fontsize=8.5, color=ALARM, va="bottom", linespacing=1.2
        )
    return figure, axes


def _about(comparison: Comparison) -> str:
    seeds = f"{len(comparison.seeds)} seeds" if len(comparison.seeds) > 1 else f"seed {comparison.seeds[0]}"
    data = comparison.data
    return f"protocol {comparison.protocol.name}, {seeds}, {data['users']:,} users, {data['items']:,} items"


def end_labels(axes: Axes, labels: list[tuple[float, str, str]], last: float) -> None:
    """Names ``(value, text, colour)`` at the right end of lines, apart where they would cover one another."""
    low, high = axes.get_ylim()
    inches = axes.get_window_extent().height / axes.figure.dpi
    ordered = sorted(labels)
    most = letters_in((1 - axes.get_position().x1) * WIDTH)
    places = spread_out([(value - low) / (high - low) for value, _, _ in ordered], least=0.165 / inches)
    for place, (value, name, colour) in zip(places, ordered, strict=True):
        axes.annotate(
            without_middle(name, most),
            (last, value),
            (1.045, place),
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            color=colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.7,
                "alpha": 0.6,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 3,
            },
        )


def spread_out(places: list[float], least: float) -> list[float]:
    """Ascending places moved as little as need be so that neighbours are ``least`` apart.

    Places that are too close become one cluster around their mean; clusters that then touch are merged.

    >>> spread_out([0.0, 0.5, 0.5], 0.2)
    [0.0, 0.4, 0.6]
    """
    clusters: list[tuple[float, int]] = []  # centre, members
    for place in places:
        centre, size = place, 1
        while clusters and centre - clusters[-1][0] < least * (size + clusters[-1][1]) / 2:
            before, members = clusters.pop()
            centre, size = (centre * size + before * members) / (size + members), size + members
        clusters.append((centre, size))
    return [centre + least * (i - (size - 1) / 2) for centre, size in clusters for i in range(size)]

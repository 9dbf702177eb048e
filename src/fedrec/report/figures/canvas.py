"""What figures are drawn on: size, margins, headline, colours. Matplotlib's global state is not used."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
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


def fitted(name: str, room: float) -> str:
    """A name, cut where there is no room for it in so many inches."""
    return without_middle(name, int((room - 0.4) / LETTER))


def plain(axes: Axes) -> None:
    """Two spines, and both soft."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(SOFT)


def panelled(
    title: str, about: str, size: tuple[float, float], panels: int, at: tuple[float, float] = (0.01, 0.925), **more: Any
) -> tuple[Figure, list[Any]]:
    """A figure with panels side by side, below a headline and a line (``at`` its corner) about the data."""
    figure = sheet(*size, fitted=True)
    figure.suptitle(f"{title}\n", x=at[0], ha="left", fontsize=12, fontweight="bold", color=INK)
    figure.text(*at, about, fontsize=9, color=SOFT, va="top")
    axes = list(figure.subplots(1, panels, squeeze=False, **more)[0])
    for one in axes:
        one.tick_params(labelsize=9, colors=INK, color=SOFT)
        plain(one)
    return figure, axes


def framed(body: float, head: float, foot: float, left: float, right: float) -> tuple[Figure, Axes]:
    """A figure with axes ``body`` inches high, and so much room around them."""
    height = head + body + foot
    figure = sheet(WIDTH, height)
    axes = figure.add_axes((left / WIDTH, foot / height, 1 - (left + right) / WIDTH, body / height))
    plain(axes)
    axes.tick_params(colors=INK, labelsize=9.5, length=3, color=SOFT)
    return figure, axes


def wrapped(warning: str | None) -> list[str]:
    """A leak warning as the lines that fit below a figure."""
    return textwrap.wrap(warning or "", 114)


def warn(figure: Figure, lines: list[str]) -> None:
    """A leak warning, where there is one, in the lower left corner."""
    if lines:
        at = (0.2 / WIDTH, 0.09 / figure.get_size_inches()[1])
        figure.text(*at, "\n".join(lines), fontsize=8.5, color=ALARM, va="bottom", linespacing=1.2)


def signs_key(figure: Figure, axes: Axes, looks: Mapping[str, Mapping[str, Any]], down: float) -> None:
    """Which sign is which, so many inches from the top, where no data can lie."""
    from matplotlib.lines import Line2D

    signs = [Line2D([], [], linestyle="", markersize=6, **look) for look in looks.values()]
    corner = (axes.get_position().x1, 1 - down / figure.get_size_inches()[1])
    figure.legend(signs, list(looks), bbox_to_anchor=corner, ncols=len(looks), **KEY)


def above(axes: Axes, name: str, at: tuple[float, float], side: str = "center") -> None:
    """The name of a line across, above the axes; to a ``side`` of its place."""
    look: dict[str, Any] = {"ha": side, "va": "bottom", "fontsize": 8.5, "color": SOFT}
    axes.annotate(name, at, ({"right": 3, "left": -3, "center": 0}[side], 2), textcoords="offset points", **look)


def of_seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seeds" if len(seeds) > 1 else f"seed {seeds[0]}"


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
    warning, data = wrapped(comparison.banner), comparison.data
    foot = 0.52 + 0.2 * bool(caption) + 0.15 * len(warning) + 0.1 * bool(warning)
    figure, axes = framed(body, head, foot, left, right)
    height = head + body + foot
    axes.xaxis.label.set(color=INK, fontsize=10)
    axes.yaxis.label.set(color=INK, fontsize=10)

    def write(text: str, inches_up: float, **style: object) -> None:
        figure.text(left / WIDTH, inches_up / height, text, **style)  # type: ignore[arg-type]

    write(title, height - 0.22, fontsize=12, fontweight="bold", color=INK, va="center")
    about = f"protocol {comparison.protocol.name}, {of_seeds(comparison.seeds)}, {data['users']:,} users"
    write(f"{about}, {data['items']:,} items", height - 0.43, fontsize=9, color=SOFT, va="center")
    if caption:
        write(caption, foot - 0.58, fontsize=8.5, color=SOFT, va="center")
    warn(figure, warning)
    return figure, axes


def end_labels(axes: Axes, labels: list[tuple[float, str, str]], last: float) -> None:
    """Names ``(value, text, colour)`` at the right end of lines, apart where they would cover one another."""
    low, high = axes.get_ylim()
    inches = axes.get_window_extent().height / axes.figure.dpi
    ordered = sorted(labels)
    room = (1 - axes.get_position().x1) * WIDTH
    places = spread_out([(value - low) / (high - low) for value, _, _ in ordered], least=0.165 / inches)
    lead: dict[str, Any] = {
        "arrowstyle": "-",
        "linewidth": 0.7,
        "alpha": 0.6,
        "relpos": (0, 0.5),
        "shrinkA": 1,
        "shrinkB": 3,
    }
    for place, (value, name, colour) in zip(places, ordered, strict=True):
        axes.annotate(fitted(name, room), (last, value), (1.045, place), textcoords="axes fraction",
                      va="center", fontsize=9, color=colour, annotation_clip=False,
                      arrowprops={**lead, "color": colour})  # fmt: skip


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

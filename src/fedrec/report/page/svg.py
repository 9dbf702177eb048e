"""Plain SVG pieces that charts share: axes, ticks, marks. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from fedrec.report.figures.canvas import without_middle
from fedrec.report.page.parts import attributes

WIDE, NARROW = 900, 380
"""Widths in which every chart is drawn; the style sheet shows the one that fits."""
LETTER = 7.3
"""Width of a letter of a name, roughly."""


@dataclass(frozen=True)
class Frame:
    """Where on a drawing the data lie."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float

    @property
    def narrow(self) -> bool:
        return self.width < 500

    def svg(self, inside: str, label: str, **more: object) -> str:
        """The whole drawing, for one width."""
        given = {"data_left": round(self.left, 1), "data_right": round(self.right, 1), "data_width": self.width, **more}
        kind = "chart narrow" if self.narrow else "chart wide"
        box = f"0 0 {self.width} {self.height}"
        return f"<svg{attributes(cls=kind, viewBox=box, role='img', aria_label=label, **given)}>{inside}</svg>"


def scale(low: float, high: float, begin: float, end: float, log: bool = False) -> Callable[[float], float]:
    """Data to pixels."""
    if log:
        low, high = math.log10(low), math.log10(high)
    span = (high - low) or 1.0
    return lambda value: begin + (end - begin) * ((math.log10(value) if log else value) - low) / span


def nice(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between two.

    >>> nice(0, 0.47)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    span = high - low
    if span <= 0:
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: powers of ten, with 2 and 5 between them where there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    many = len([p for p in powers if low <= 10.0**p <= high]) >= 3
    steps = (1,) if many else (1, 2, 5)
    return [10.0**p * m for p in powers for m in steps if low <= 10.0**p * m <= high]


def short(value: float) -> str:
    """A number for an axis."""
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    if value >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:g}"


def fitted(name: str, room: float) -> str:
    """A name, cut where it would not fit into so many pixels."""
    return without_middle(name, int(room / LETTER))


def text(x: float, y: float, content: str, anchor: str = "start", cls: str = "", **more: object) -> str:
    return (
        f"<text{attributes(x=round(x, 1), y=round(y, 1), text_anchor=anchor, cls=cls, **more)}>{escape(content)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    given = {"x1": round(x1, 1), "y1": round(y1, 1), "x2": round(x2, 1), "y2": round(y2, 1)}
    return f"<line{attributes(cls=cls, **given)}/>"


def path(points: Sequence[tuple[float, float]], cls: str, closed: bool = False) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"<path{attributes(cls=cls, d=f'M{steps}' + ('Z' if closed else ''))}/>"


def y_axis(frame: Frame, ticks: Sequence[float], place: Callable[[float], float], title: str) -> str:
    """Grid lines with numbers, and what they are above them."""
    found = ""
    for tick in ticks:
        found += line(frame.left, place(tick), frame.right, place(tick), "grid")
        found += text(frame.left - 6, place(tick) + 4, f"{tick:g}", "end")
    return found + text(frame.left - 6 if not frame.narrow else 0, frame.top - 10, title)


def x_axis(frame: Frame, ticks: Sequence[float], place: Callable[[float], float], title: str) -> str:
    found = line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")
    for tick in ticks:
        found += line(place(tick), frame.bottom, place(tick), frame.bottom + 4, "axis")
        found += text(place(tick), frame.bottom + 17, short(tick), "middle")
    return found + text((frame.left + frame.right) / 2, frame.bottom + 36, title, "middle")


def diamond(x: float, y: float, size: float, cls: str, **more: object) -> str:
    points = f"{x:.1f},{y - size:.1f} {x + size:.1f},{y:.1f} {x:.1f},{y + size:.1f} {x - size:.1f},{y:.1f}"
    return f"<polygon{attributes(points=points, cls=cls, **more)}/>"


def circle(x: float, y: float, size: float, cls: str, **more: object) -> str:
    return f"<circle{attributes(cx=round(x, 1), cy=round(y, 1), r=size, cls=cls, **more)}/>"


def square(x: float, y: float, size: float, cls: str, **more: object) -> str:
    given = {"x": round(x - size, 1), "y": round(y - size, 1), "width": 2 * size, "height": 2 * size}
    return f"<rect{attributes(cls=cls, **given, **more)}/>"


def is_free(boxes: Sequence[tuple[float, float, float, float]], box: tuple[float, float, float, float]) -> bool:
    """Whether a box (left, top, right, bottom) is free of all others."""
    return not any(box[0] < r and box[2] > l and box[1] < b and box[3] > t for l, t, r, b in boxes)

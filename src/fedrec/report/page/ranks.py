"""The critical-difference diagram of a leaderboard as SVG: mean ranks, and bars over what cannot be told apart."""

from __future__ import annotations

from fedrec.report.model.mean_ranks import MeanRanks
from fedrec.report.page import svg
from fedrec.report.page.figures import figure

STEP, BAR, HEAD = 22, 12, 40
"""Pixels from one method's line to the next, from one bar to the next, and above them."""


def ranks_figure(found: MeanRanks) -> str:
    """The better half of the methods has its names on the left, the other on the right."""
    caption = (
        f"Bars join methods that cannot be told apart: nearer than {found.difference:.1f} "
        f"(Nemenyi, 5 %; {found.cases} data sets, Friedman p = {found.p:.2g})."
    )
    drawings = "".join(_drawing(found, width) for width in (svg.WIDE, svg.NARROW))
    return figure("ranks", f"Mean ranks by {found.metric}", caption, drawings)


def _drawing(found: MeanRanks, width: int) -> str:
    count, groups = len(found.methods), found.groups
    left = (count + 1) // 2
    margin = 210 if width == svg.WIDE else 136
    below = HEAD + 14 + BAR * (len(groups) + 1)
    frame = svg.Frame(width, below + STEP * left, margin, width - margin, HEAD, below)
    place = svg.scale(1, count, frame.left, frame.right)
    parts = [svg.line(frame.left, HEAD, frame.right, HEAD, "axis")]
    for tick in sorted({1, *map(int, svg.nice(1, count)), count}):
        parts.append(svg.line(place(tick), HEAD - 5, place(tick), HEAD, "axis"))
        parts.append(svg.text(place(tick), HEAD - 10, str(tick), "middle"))
    for number, (first, last) in enumerate(groups):
        at = HEAD + 12 + BAR * number
        parts.append(svg.line(place(found.ranks[first]) - 3, at, place(found.ranks[last]) + 3, at, "alike"))
    for number, (method, rank) in enumerate(zip(found.methods, found.ranks, strict=True)):
        better = number < left
        at = below + STEP * (number if better else count - 1 - number)
        end = frame.left if better else frame.right
        parts.append(svg.path([(place(rank), HEAD), (place(rank), at), (end, at)], "lead"))
        name, value = svg.fitted(method, margin - 50), f"{rank:.1f}"
        words = f"{name}  {value}" if better else f"{value}  {name}"
        parts.append(svg.text(end - 6 if better else end + 6, at + 4, words, "end" if better else "start", "name"))
    order = ", ".join(f"{method} {rank:.1f}" for method, rank in zip(found.methods, found.ranks, strict=True))
    return frame.svg("".join(parts), f"Mean ranks by {found.metric}: {order}")

"""The page's figures as SVG: curves over rounds, quality against cost, users, and mean ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from html import escape

from fedrec.report.figures.canvas import spread_out
from fedrec.report.model.mean_ranks import MeanRanks
from fedrec.report.model.series import Band, Series, fate
from fedrec.report.page import svg
from fedrec.report.page.parts import HtmlTable, Td, Th, attributes, data_block

MOST_POINTS = 160
"""Rounds that a curve keeps; a screen shows no more."""
SIGNS = {"federated": svg.circle, "centralised": svg.square, "control": svg.diamond}


def figure(kind: str, title: str, caption: str, inside: str) -> str:
    return (
        f"<figure{attributes(cls=kind)}><figcaption><strong>{escape(title)}</strong> {escape(caption)}</figcaption>"
        f"{inside}</figure>"
    )


def curves(series: Sequence[Series], metric: str, where: str = "") -> str:
    """A metric on validation over rounds; empty where nothing has several rounds."""
    bands = {one.name: one.band(metric) for one in series}
    drawn = [one for one in series if len(bands[one.name]) > 1]
    if not drawn:
        return ""
    every = sorted({point[0] for one in drawn for point in bands[one.name]})
    step = max(1, math.ceil(len(every) / MOST_POINTS))
    rounds = [r for i, r in enumerate(every) if i % step == 0 or i == len(every) - 1]
    flat = [one for one in series if len(bands[one.name]) == 1]
    charts = "".join(_curves(drawn, flat, bands, rounds, metric, width) for width in (svg.WIDE, svg.NARROW))
    kept = set(rounds)
    values = []
    for one in drawn:
        known = {r: round(mean, 6) for r, _, mean, _ in bands[one.name] if r in kept}
        values.append({"name": one.name, "cls": one.cls, "values": [known.get(r) for r in rounds]})
    keys = "".join(
        f'<li><button type="button"{attributes(cls=f"key {one.cls}", aria_pressed="true", data_series=i)}>'
        f'<svg viewBox="0 0 20 8" aria-hidden="true"><line class="swatch" x1="0" y1="4" x2="20" y2="4"/></svg>'
        f"{escape(one.name)}</button></li>"
        for i, one in enumerate(drawn)
    )
    several = max(len(one.runs) for one in drawn) > 1
    caption = "Dot: selected round" + (" (median of the seeds). Band: range over seeds." if several else ".")
    caption += " Dashed: fitted in one step." if flat else ""
    caption += " Point at the chart, or focus it and use the arrow keys, for values."
    inside = f'{charts}<ul class="keys">{keys}</ul>{data_block({"rounds": rounds, "series": values})}'
    return figure("curves", f"{metric} on validation over rounds{where}", caption, inside)


def _curves(
    drawn: Sequence[Series],
    flat: Sequence[Series],
    bands: dict[str, Band],
    rounds: Sequence[int],
    metric: str,
    width: int,
) -> str:
    narrow = width == svg.NARROW
    height = 300 if narrow else max(340, 18 * (len(drawn) + len(flat)) + 80)
    longest = max(len(one.name) for one in [*drawn, *flat])
    room = 14 if narrow else min(0.3 * width, longest * svg.LETTER + 24)
    frame = svg.Frame(width, height, 40 if narrow else 48, width - room, 26, height - 44)
    highest = max([p[3] for one in drawn for p in bands[one.name]] + [bands[one.name][0][2] for one in flat] + [1e-9])
    x = svg.scale(rounds[0], rounds[-1], frame.left, frame.right)
    y = svg.scale(0, 1.05 * highest, frame.bottom, frame.top)
    ticks = [t for t in svg.nice(rounds[0], rounds[-1], 4 if narrow else 8) if float(t).is_integer()]
    inside = svg.y_axis(frame, svg.nice(0, 1.05 * highest), y, f"{metric}, validation") + svg.x_axis(
        frame, ticks, x, "round"
    )
    inside += svg.line(frame.left, frame.top, frame.left, frame.bottom, "guide")
    ends: list[tuple[float, str, str]] = []
    kept = set(rounds)
    for i, one in enumerate(drawn):
        band = [point for point in bands[one.name] if point[0] in kept]
        part = ""
        if len(one.runs) > 1:
            outline = [(x(r), y(high)) for r, _, _, high in band] + [(x(r), y(low)) for r, low, _, _ in reversed(band)]
            part += svg.path(outline, "band", closed=True)
        part += svg.path([(x(r), y(mean)) for r, _, mean, _ in band], "curve")
        chosen = one.selected
        at = min(band, key=lambda point: abs(point[0] - chosen))
        part += svg.circle(x(at[0]), y(at[2]), 4, "dot")
        inside += f"<g{attributes(cls=one.cls, data_series=i)}>{part}</g>"
        ends.append((y(band[-1][2]), one.name, f'{one.cls}" data-series="{i}'))
    for one in flat:
        level = y(bands[one.name][0][2])
        inside += svg.line(frame.left, level, frame.right, level, "floor")
        ends.append((level, one.name, "sc"))
    if narrow:  # curves have their names in the keys below; those fitted in one step have no key
        levels = sorted((y(bands[one.name][0][2]), one.name) for one in flat)
        for place, (_, name) in zip(spread_out([level for level, _ in levels], 13), levels, strict=True):
            inside += svg.text(frame.right, place - 4, name, "end")
    else:
        ends.sort()
        places = spread_out([end[0] for end in ends], 14)
        for place, (at_y, name, cls) in zip(places, ends, strict=True):
            joint = svg.line(frame.right + 2, at_y, frame.right + 9, place, "axis")
            label = svg.text(frame.right + 12, place + 4, svg.fitted(name, room - 12), cls="name")
            inside += f'<g class="{cls}">{joint}{label}</g>'
    best = max(drawn, key=lambda one: bands[one.name][-1][2])
    label = f"{metric} on validation over {rounds[-1]} rounds; highest at the end: {best.name}"
    return frame.svg(inside, label, tabindex=0)


def against(
    series: Sequence[Series], metric: str, cost: Callable[[Series], float], axis: str, title: str, caption: str
) -> str:
    """A test metric against a cost on a logarithmic axis; empty where nobody has a cost."""
    points = [(one, cost(one), one.summary(metric).mean) for one in series if one.runs]
    points = [(one, x, y) for one, x, y in points if x > 0 and not math.isnan(y)]
    if not points:
        return ""
    charts = "".join(_against(points, metric, axis, width) for width in (svg.WIDE, svg.NARROW))
    return figure("points", title, caption, charts)


def _against(points: Sequence[tuple[Series, float, float]], metric: str, axis: str, width: int) -> str:
    narrow = width == svg.NARROW
    height = 320 if narrow else 380
    frame = svg.Frame(width, height, 40 if narrow else 48, width - (14 if narrow else 24), 26, height - 44)
    costs = [cost for _, cost, _ in points]
    low, high = min(costs) / 1.5, max(costs) * 1.5
    widen = max(1.0, math.sqrt(10 * low / high))  # never less than a decade: small differences must look small
    low, high = low / widen, high * widen
    top = 1.08 * max(max(value for _, _, value in points), 1e-9)
    x, y = svg.scale(low, high, frame.left, frame.right, log=True), svg.scale(0, top, frame.bottom, frame.top)
    inside = svg.y_axis(frame, svg.nice(0, top), y, f"{metric}, test")
    inside += svg.x_axis(frame, svg.decades(low, high), x, axis)
    inside += svg.path(_front([(x(c), y(v)) for _, c, v in points], frame), "front")
    taken = [(x(c) - 6, y(v) - 6, x(c) + 6, y(v) + 6) for _, c, v in points]
    for one, cost, value in sorted(points, key=lambda point: -point[2]):
        tip = [one.name, [metric, f"{value:.4f}"], [axis, f"{cost:,.1f}"]]
        spread = one.summary(metric).spread
        if not math.isnan(spread):
            tip.insert(2, ["± over seeds", f"{spread:.4f}"])
        mark = SIGNS[one.group](
            x(cost), y(value), 5.5, "dot", data_tip=json.dumps(tip), tabindex=0, role="img",
            aria_label=f"{one.name}: {metric} {value:.4f}, {axis} {cost:,.1f}",
        )  # fmt: skip
        inside += f"<g{attributes(cls=one.cls)}>{mark}{_label(one.name, x(cost), y(value), taken, frame)}</g>"
    return frame.svg(inside, f"{metric} against {axis}").replace('role="img"', 'role="group"', 1)


def _label(name: str, x: float, y: float, taken: list[tuple[float, float, float, float]], frame: svg.Frame) -> str:
    """The name beside its mark, where there is room: right, left, then above and below."""
    wide = len(name) * svg.LETTER
    for dx, dy, anchor in (
        (9, 4, "start"), (-9, 4, "end"), (0, -9, "middle"), (0, 17, "middle"), (9, -8, "start"), (9, 16, "start"),
        (-9, -8, "end"), (-9, 16, "end"), (9, 28, "start"), (-9, 28, "end"), (9, -20, "start"), (-9, -20, "end"),
    ):  # fmt: skip
        left = {"start": x + dx, "end": x + dx - wide, "middle": x - wide / 2}[anchor]
        box = (left, y + dy - 10, left + wide, y + dy + 2)
        inside = box[0] >= frame.left - 2 and box[2] <= frame.width and box[1] >= 0 and box[3] <= frame.bottom
        if inside and svg.is_free(taken, box):
            taken.append(box)
            return svg.text(x + dx, y + dy, name, anchor, "name")
    return ""  # no room: the mark still tells its name under the pointer


def _front(places: Sequence[tuple[float, float]], frame: svg.Frame) -> list[tuple[float, float]]:
    """The best that can be had at each cost, as steps; y grows downwards."""
    steps: list[tuple[float, float]] = []
    best = math.inf
    for x, y in sorted(places):
        if y < best:
            steps += [(x, best), (x, y)] if steps else [(x, y)]
            best = y
    return [*steps, (frame.right, best)]


def users(series: Sequence[Series], other: Series, metric: str) -> str:
    """Who gains and who loses against another method, user by user; empty where users' values were not kept."""
    rows = []
    counted = served = 0
    for one in series:
        if one.name == other.name or one.method == "random":
            continue
        found = fate(one, other, metric)
        if found is None:
            continue
        counted, served = found.users, found.served_users
        widths = (100 * found.worse, 100 * found.same, 100 * found.better)
        at, bars = 0.0, ""
        for kind, width in zip(("loss", "same", "gain"), widths, strict=True):
            bars += f"<rect{attributes(cls=kind, x=round(at, 2), y=0, width=round(width, 2), height=10)}/>"
            at += width
        bar = f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
        cells = [Td(escape(one.name)), Td(bar, found.better - found.worse, "bar")]
        cells += [Td(f"{width:.1f} %", width) for width in widths]
        cells += [Td("-" if math.isnan(v) else f"{v:.4f}", v) for v in (found.served, found.unserved)]
        rows.append(("control" if one.group == "control" else "", cells))
    if not rows:
        return ""
    rows.sort(key=lambda row: -(row[1][1].value or 0.0))
    heads = [
        Th("method", number=False),
        Th(f"against {other.name}", about="sorts by gains minus losses"),
        Th("worse off"), Th("the same"), Th("better off"),
        Th("where it hits", about=f"mean {metric} of users whose item {other.name} finds"),
        Th("where it misses", about=f"mean {metric} of users whose item {other.name} does not find"),
    ]  # fmt: skip
    legend = (
        '<p class="legend"><span><i class="loss"></i>worse off</span><span><i class="same"></i>the same</span>'
        '<span><i class="gain"></i>better off</span></p>'
    )
    caption = (
        f"{counted:,} users by {metric}, each averaged over seeds. Last columns: means over the {served:,} users "
        f"whose item {other.name} finds (where it hits) and over the others."
    )
    return legend + HtmlTable(caption, heads, rows).html()


STEP, BAR, HEAD = 22, 12, 40
"""Of the diagram of ranks: pixels from one method's line to the next, from one bar to the next, and above them."""


def ranks_figure(found: MeanRanks) -> str:
    """The critical-difference diagram: mean ranks, and bars over what cannot be told apart.

    The better half of the methods has its names on the left, the other on the right.
    """
    caption = (
        f"Bars join methods that cannot be told apart: nearer than {found.difference:.1f} "
        f"(Nemenyi, 5 %; {found.cases} data sets, Friedman p = {found.p:.2g})."
    )
    drawings = "".join(_ranks(found, width) for width in (svg.WIDE, svg.NARROW))
    return figure("ranks", f"Mean ranks by {found.metric}", caption, drawings)


def _ranks(found: MeanRanks, width: int) -> str:
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

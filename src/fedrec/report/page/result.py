"""A result as a notebook shows it: a line, the table of metrics and the curve over rounds, with no file beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from fedrec.report.model.runs import points_of
from fedrec.report.text.result import metrics_of, said

WIDTH, HEIGHT, EDGE = 320, 120, 8


def result_html(found: Mapping[str, Any], rounds: Sequence[Mapping[str, Any]] = ()) -> str:
    """A piece of HTML."""
    parts = found["metrics"]
    rows = "".join(
        f"<tr><th>{escape(name)}</th>"
        + "".join(f"<td>{parts[part].get(name, float('nan')):.4f}</td>" for part in ("valid", "test"))
        + "</tr>"
        for name in metrics_of(found)
    )
    table = f"<table><thead><tr><th></th><th>valid</th><th>test</th></tr></thead><tbody>{rows}</tbody></table>"
    line = said(found).strip("<>").rpartition(": ")[0]
    drawn = _curve(rounds, metrics_of(found)[-1]) if metrics_of(found) else ""
    return f"<div><p>{escape(line)}</p>{table}{drawn}</div>"


def _curve(rounds: Sequence[Mapping[str, Any]], metric: str) -> str:
    """The metric on validation over rounds, where there are several."""
    known = points_of(rounds, metric)
    if len(known) < 2:
        return ""
    first, last = known[0][0], known[-1][0]
    low, high = min(value for _, value in known), max(value for _, value in known)
    across, up = (WIDTH - 2 * EDGE) / (last - first), (HEIGHT - 2 * EDGE) / ((high - low) or 1.0)
    drawn = " ".join(f"{EDGE + (x - first) * across:.1f},{HEIGHT - EDGE - (y - low) * up:.1f}" for x, y in known)
    title = escape(f"{metric} on validation, rounds {first} to {last}: {low:.4f} to {high:.4f}")
    return (
        f'<svg role="img" aria-label="{title}" width="{WIDTH}" height="{HEIGHT}"><title>{title}</title>'
        f'<polyline points="{drawn}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg><p>{title}</p>'
    )

"""The few metrics that stand for all of them in a line of text."""

from __future__ import annotations

from collections.abc import Mapping

SHOWN = ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10", "F1@10", "HR@20")
"""Those that matter, the first of them the most."""


def headline(metrics: Mapping[str, float] | None, most: int = 3) -> str:
    """The first few metrics that matter, as text."""
    known = metrics or {}
    return "  ".join([f"{name} {known[name]:.4f}" for name in SHOWN if name in known][:most])

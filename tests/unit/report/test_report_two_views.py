"""Figures of how two views agree."""

from __future__ import annotations

import numpy as np

from fedrec.report.figures.two_views import correlation_plot, overlap_plot


def test_figures_are_drawn() -> None:
    rng = np.random.default_rng(0)
    assert overlap_plot({"fed3cr": rng.random(50), "fedrap": rng.random(50)}).axes
    both = {"fed3cr": rng.normal(size=(4, 4)) * 0.01, "fedrap": rng.normal(size=(4, 4))}
    assert len(correlation_plot(both).axes) == 3  # one for each, and the scale

"""What elimination alone reaches, against a simulation of it."""

from __future__ import annotations

import numpy as np
import pytest

from fedrec.data.synthetic import world
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find
from fedrec.experiment.analyses.leak import expected, hit


def test_hits_are_the_mean_over_how_many_others_still_stand() -> None:
    # two candidates, each left with probability one half: K = 0, 1, 2 with 1/4, 1/2, 1/4; k = 1
    assert hit(np.array([0.5]), 2, 1)[0] == pytest.approx(1 / 4 + 1 / 2 / 2 + 1 / 4 / 3)


def test_the_formula_is_what_drawing_negatives_gives() -> None:
    """Scores of -1 for every item ever drawn, 0 for the rest; the held-out item is outside the pool."""
    rng = np.random.default_rng(3)
    pool, draws, users, sampled, k = 300, 400, 4000, 99, 10
    hits = 0.0
    for _ in range(users):
        drawn = np.zeros(pool, bool)
        drawn[rng.integers(0, pool, draws)] = True
        still = int((~drawn[rng.choice(pool, sampled, replace=False)]).sum())
        hits += min(1.0, k / (still + 1))
    found = hit(np.array([(1 - 1 / pool) ** draws]), sampled, k)[0]
    assert hits / users == pytest.approx(found, abs=0.02)


def test_only_a_leaky_pool_gives_more_than_chance() -> None:
    data = world("demo", 0)
    for name, rises in (("paper-fedca", True), ("strict", False)):
        values = [point.value for point in expected(find(name).prepare(data, 0), 4, (1, 10, 100))]
        assert (values[0] < values[1] < values[2]) is rises
        assert rises or values == pytest.approx([0.1] * 3)


def test_a_protocol_without_sampled_items_is_bad_input() -> None:
    with pytest.raises(BadInput, match="sampled"):
        expected(find("paper-feddae").prepare(world("demo", 0), 0), 4, (1,))

"""The closed form for steps without a gradient equals the steps themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.learn.adam import BETA_1, BETA_2, EPS, schedule


def stepwise(m, s, then, now):
    """Adam's steps with gradient zero, one by one, for a learning rate of one."""
    moved, v = 0.0, s * s
    for t in range(then + 1, now + 1):
        m, v = BETA_1 * m, BETA_2 * v
        moved += m / (1 - BETA_1**t) / (np.sqrt(v / (1 - BETA_2**t)) + EPS)
    return moved, m, np.sqrt(v)


def closed(m, s, then, now, steps):
    plan, k = schedule(steps), now - then
    a = plan.tail_a[then] - plan.power_a[k] * plan.tail_a[now]
    b = plan.tail_b[then] - plan.power_b[k] * plan.tail_b[now]
    return m * a / (s + EPS * b / a), m * plan.decay_m[k], s * plan.decay_s[k]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    then=st.integers(1, 3000),
    gap=st.integers(1, 400),
    s=st.floats(1e-5, 1.0),
    ratio=st.floats(-1.0, 1.0),
)
def test_gap_is_the_sum_of_its_steps(then, gap, s, ratio):
    found = closed(ratio * s, s, then, then + gap, 4000)
    assert found == pytest.approx(stepwise(ratio * s, s, then, then + gap), rel=1e-5, abs=1e-12)


def test_gap_of_gradients_near_eps():
    """Even where eps is as large as the gradient, the error is a small share of the learning rate."""
    for root in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7):
        for then, now in ((1, 2), (1, 50), (10, 60), (100, 146)):
            # moments after `then` steps of a constant gradient of size `root`
            m, s = root * (1 - BETA_1**then), root * np.sqrt(1 - BETA_2**then)
            assert closed(m, s, then, now, 200)[0] == pytest.approx(stepwise(m, s, then, now)[0], abs=0.15)


def test_long_schedules_stay_finite():
    plan = schedule(100_000)
    for name in plan.__dataclass_fields__:
        assert np.isfinite(getattr(plan, name)).all(), name

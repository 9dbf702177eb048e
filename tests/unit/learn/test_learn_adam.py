"""The closed form for steps without a gradient equals the steps themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.learn.adam import BETA_1, BETA_2, EPS, descend, descended, schedule
from fedrec.learn.torch.optimisers import Dense


def stepwise(m: float, s: float, then: int, now: int) -> tuple[float, float, float]:
    """Adam's steps with gradient zero, one by one, for a learning rate of one."""
    moved, v = 0.0, s * s
    for t in range(then + 1, now + 1):
        m, v = BETA_1 * m, BETA_2 * v
        moved += m / (1 - BETA_1**t) / (np.sqrt(v / (1 - BETA_2**t)) + EPS)
    return moved, m, float(np.sqrt(v))


def closed(m: float, s: float, then: int, now: int, steps: int) -> tuple[float, float, float]:
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
def test_gap_is_the_sum_of_its_steps(then: int, gap: int, s: float, ratio: float) -> None:
    found = closed(ratio * s, s, then, then + gap, 4000)
    assert found == pytest.approx(stepwise(ratio * s, s, then, then + gap), rel=1e-5, abs=1e-12)


def test_gap_of_gradients_near_eps() -> None:
    """Even where eps is as large as the gradient, the error is a small share of the learning rate."""
    for root in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7):
        for then, now in ((1, 2), (1, 50), (10, 60), (100, 146)):
            # moments after `then` steps of a constant gradient of size `root`
            m, s = root * (1 - BETA_1**then), root * np.sqrt(1 - BETA_2**then)
            assert closed(m, s, then, now, 200)[0] == pytest.approx(stepwise(m, s, then, now)[0], abs=0.15)


@pytest.mark.parametrize(
    ("then", "gradient", "error"),
    [(1, 1e-5, 2e-6), (1, 1e-6, 2e-4), (1, 1e-7, 1.1e-2), (1, 1e-12, 0.2), (100, 0, 2e-3)],
)
def test_what_the_closed_form_leaves_out_is_as_documented(then: int, gradient: float, error: float) -> None:
    for size in [gradient] if gradient else [1e-12, 1e-9, 1e-8, 1e-7, 1e-6]:
        m, s = (1 - BETA_1) * size, np.sqrt(1 - BETA_2) * size
        for gap in (3, 30, 300):
            found, exact = (one[0] for one in (closed(m, s, then, then + gap, 500), stepwise(m, s, then, then + gap)))
            assert abs(found - exact) <= error * exact


def test_long_schedules_stay_finite() -> None:
    plan = schedule(100_000)
    for name in plan.__dataclass_fields__:
        assert np.isfinite(getattr(plan, name)).all(), name


def test_steps_of_tensors_and_of_arrays_are_those_of_torchs_adam() -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(3, 4)).astype(np.float32)
    wanted = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimiser = torch.optim.Adam([wanted], lr=0.02)
    value, mean, square = torch.from_numpy(start.copy()), torch.zeros(3, 4), torch.zeros(3, 4)
    arrays = (start, np.zeros_like(start), np.zeros_like(start))
    for step in range(1, 6):
        gradient = rng.normal(size=(3, 4)).astype(np.float32)
        wanted.grad = torch.from_numpy(gradient)
        optimiser.step()
        descend(value, mean, square, torch.from_numpy(gradient), 0.02, step)
        arrays = descended(*arrays, gradient, 0.02, step)
    np.testing.assert_allclose(value.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(arrays[0], wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert all(array.dtype == np.float32 for array in arrays)


@pytest.mark.parametrize("fused", [True, False])
def test_only_the_first_entries_move_in_a_step_of_some_clients(fused: bool) -> None:
    value = torch.ones(5, 2)
    dense = Dense(value, 0.1, adam=True, fused=fused)
    dense.step(1, 3, torch.ones(3, 2))
    np.testing.assert_allclose(value.numpy(), np.repeat([0.9, 1.0], [6, 4]).reshape(5, 2), rtol=1e-6)

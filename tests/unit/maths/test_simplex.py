"""The projection onto the simplex: by hand, by its optimality conditions, against a QP solver."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from fedrec.maths.simplex import project


def of(*rows: list[float]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = project(torch.tensor(rows, dtype=torch.float64)).numpy()
    return found


def test_by_hand() -> None:
    np.testing.assert_allclose(of([0.5, 0.9]), [[0.3, 0.7]])  # sum 1.4: both lose 0.2
    np.testing.assert_allclose(of([2.0, 0.5, 0.1]), [[1, 0, 0]])  # a lead of one or more takes all
    np.testing.assert_allclose(of([0.6, 0.5, -1.0]), [[0.55, 0.45, 0]])  # the third stays out
    np.testing.assert_allclose(of([0.2, 0.3, 0.5]), [[0.2, 0.3, 0.5]])  # already on the simplex
    np.testing.assert_allclose(of([7.0]), [[1]])


def test_rows_do_not_touch_each_other() -> None:
    together = of([0.5, 0.9], [3.0, 0.0], [-5.0, -5.0])
    np.testing.assert_allclose(together, [[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]])


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=st.floats(-3, 3)))
def test_the_result_is_the_nearest_point(points: NDArray[np.float64]) -> None:
    found = project(torch.from_numpy(points)).numpy()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)
    assert (found >= 0).all()
    # nearest: z - w is the same number on the support and at most that number elsewhere
    away = points - found
    for row, gap in zip(found, away, strict=True):
        tau = gap[row > 0].max()
        np.testing.assert_allclose(gap[row > 0], tau, atol=1e-12)
        assert (gap[row == 0] <= tau + 1e-12).all()


def test_float32_sums_in_64_bits() -> None:
    points = torch.rand(3, 20_000, generator=torch.Generator().manual_seed(0)) * 1e-4
    found = project(points)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.double().sum(1).numpy(), 1, atol=1e-5)


def test_a_qp_solver_agrees() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    draw = np.random.default_rng(1)
    points = draw.normal(size=(4, 15)) * 0.3
    found = project(torch.from_numpy(points)).numpy()
    for point, row in zip(points, found, strict=True):
        x = cvxpy.Variable(15)
        cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - point)), [cvxpy.sum(x) == 1, x >= 0]).solve(
            solver=cvxpy.CLARABEL,
            tol_gap_abs=1e-13,
            tol_gap_rel=1e-13,
            tol_feas=1e-13,
        )
        np.testing.assert_allclose(row, x.value, atol=1e-6)


def test_a_wrong_shape_is_said() -> None:
    with pytest.raises(ValueError, match=r"\[rows, n\]"):
        project(torch.zeros(3))

"""FedIAR's server mathematics against the dense formulas, and against numerical gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import logm

from fedrec.maths.dirichlet_clusters import cluster_items
from fedrec.maths.matrix_entropy import (
    ThinLogarithm,
    autocovariance,
    centroids_of,
    dimension_loss,
    sample_loss,
    total_coding_rate,
)
from fedrec.maths.rank_overlap import rank_biased_overlap, top

GAMMA = 1e-3
Float64 = NDArray[np.float64]


def mce(x: Float64, y: Float64) -> float:
    return float(np.trace(-x @ logm(y) + y).real)


def table(n: int = 12, d: int = 4, seed: int = 0) -> Float64:
    scales = np.array([1.0, 0.5, 2.0, 0.1])[:d]
    found: Float64 = np.random.default_rng(seed).normal(size=(n, d)) * scales
    return found


def numerical(function: Callable[[Float64], float], at: Float64, step: float = 1e-6) -> Float64:
    found = np.zeros_like(at)
    for index in np.ndindex(*at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        found[index] = (function(up) - function(down)) / (2 * step)
    return found


def test_eq_4_autocovariance_is_that_of_the_centred_table() -> None:
    z = table()
    h = np.eye(12) - np.ones((12, 12)) / 12
    np.testing.assert_allclose(autocovariance(z), z.T @ h @ z / 12, atol=1e-12)


def test_eq_5_dimension_loss_and_gradient() -> None:
    z, d = table(), 4
    dense = mce((1 / d + GAMMA) * np.eye(d), autocovariance(z) + GAMMA * np.eye(d))
    loss, gradient = dimension_loss(z, GAMMA)
    assert loss == pytest.approx(dense, rel=1e-10)
    np.testing.assert_allclose(gradient, numerical(lambda at: dimension_loss(at, GAMMA)[0], z), atol=1e-6)


def test_descending_the_dimension_loss_makes_dimensions_independent_and_equal() -> None:
    z = table(200, 4)
    for _ in range(4000):
        z = z - 2.0 * dimension_loss(z, GAMMA)[1]
    np.testing.assert_allclose(autocovariance(z), np.eye(4) / 4, atol=2e-3)


def test_eq_16_sample_loss_and_gradient_against_the_dense_n_by_n_formula() -> None:
    n, d = 12, 4
    z, cluster = table(n, d), np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 4])
    centre = np.eye(d) - np.ones((d, d)) / d
    v = centroids_of(z, cluster, 5)[cluster]
    y = v @ centre @ v.T / d + GAMMA * np.eye(n)

    def dense(at: Float64) -> float:
        return mce(at @ centre @ at.T / d, y)

    loss, gradient = sample_loss(z, cluster, 5, GAMMA)
    assert loss == pytest.approx(dense(z), rel=1e-9)
    np.testing.assert_allclose(gradient, numerical(dense, z), atol=2e-5)


def test_a_thin_logarithm_is_the_logarithm() -> None:
    f = np.random.default_rng(2).normal(size=(9, 3))
    thin = ThinLogarithm.of(f, GAMMA)
    whole = logm(f @ f.T + GAMMA * np.eye(9)).real
    np.testing.assert_allclose(thin.times(np.eye(9)), whole, atol=1e-8)
    assert thin.trace == pytest.approx(np.trace(f @ f.T) + 9 * GAMMA)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(3, 30), d=st.integers(1, 6), gamma=st.floats(1e-4, 1.0), seed=st.integers(0, 10**6))
def test_theorem_1_corrected(n: int, d: int, gamma: float, seed: int) -> None:
    """L_d = (1 + d gamma) (1 - log gamma - 2 TCR / d), for tables with tr(C_g) = 1.

    The printed theorem lacks the division of TCR by d.
    """
    z = np.random.default_rng(seed).normal(size=(n, d))
    z = z / np.sqrt(np.trace(autocovariance(z)))
    loss, _ = dimension_loss(z, gamma)
    rate = total_coding_rate(z, gamma)
    assert loss == pytest.approx((1 + d * gamma) * (1 - np.log(gamma) - 2 * rate / d), rel=1e-8, abs=1e-8)
    if d > 1:
        printed = (1 + d * gamma) * (1 - np.log(gamma) - 2 * rate)
        assert abs(loss - printed) > 1e-6


def test_clusters_are_found_and_a_warm_start_keeps_them() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    values = np.array([[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]])[truth] + 0.3 * rng.normal(size=(120, 2))
    first = cluster_items(values, 8, 1.0, 5)
    assert len(np.unique(first.cluster)) < 8, "the process leaves clusters empty"
    for group in range(3):
        assert len(np.unique(first.cluster[truth == group])) == 1
    again = cluster_items(values + 0.01, 8, 1.0, 6, first.state)
    np.testing.assert_array_equal(first.cluster, again.cluster)


def test_clusters_depend_on_the_seed_alone() -> None:
    values = np.random.default_rng(1).normal(size=(60, 3))
    one, other = cluster_items(values, 6, 1.0, 9), cluster_items(values, 6, 1.0, 9)
    np.testing.assert_array_equal(one.cluster, other.cluster)


def test_rank_biased_overlap_by_hand() -> None:
    left, right = np.array([[1, 2, 3]]), np.array([[2, 1, 4]])
    p = 0.9
    # overlaps 0/1, 2/2, 2/3
    expected = (0 * 1 + 1.0 * p + 2 / 3 * p**2) / (1 + p + p**2)
    assert rank_biased_overlap(left, right, p)[0] == pytest.approx(expected)
    assert rank_biased_overlap(left, left)[0] == pytest.approx(1.0)
    assert rank_biased_overlap(left, np.array([[7, 8, 9]]))[0] == 0.0
    np.testing.assert_array_equal(top(np.array([[0.1, 0.9, 0.9, 0.2]]), 3), [[1, 2, 3]])

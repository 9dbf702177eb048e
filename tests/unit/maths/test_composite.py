"""Composite aggregation (FedCA Eq. 5 to 8) against hand-computed values, plain loops and a QP solver."""

from __future__ import annotations

from math import acos, cos, pi, sin, sqrt
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.core.messages import Float32
from fedrec.maths import composite, gram
from fedrec.maths.graphs import cosines

ORTHOGONAL = pi / 2
TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
"""The solver's own default leaves errors of 4e-6 near the boundary."""


@pytest.fixture
def tables() -> Float32:
    return np.random.default_rng(0).normal(size=(11, 7, 3)).astype(np.float32)


def test_eq_6_by_hand() -> None:
    tables = np.zeros((3, 2, 2), np.float32)
    tables[1, 0] = [1, 1]  # distance^2 2 to the first
    tables[2, 1] = [0, 3]  # 9 to the first, 11 to the second
    found = composite.similarity(composite.squared_distances(tables)).numpy()
    np.testing.assert_allclose(found, [[1, 1 / 3, 1 / 10], [1 / 3, 1, 1 / 12], [1 / 10, 1 / 12, 1]], atol=1e-6)


@pytest.mark.parametrize("rows", [3, 768])
def test_distances_are_those_of_a_plain_loop(tables: Float32, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composite, "ROWS", rows)  # several blocks of pairs
    monkeypatch.setattr(composite, "COLUMNS", 6)  # several slices of the tables
    plain = ((tables[:, None] - tables[None]) ** 2).sum((2, 3))
    np.testing.assert_allclose(composite.squared_distances(tables).numpy(), plain, atol=1e-4)
    some = np.array([7, 2, 4])
    found = composite.squared_distances(tables, some).numpy()
    np.testing.assert_allclose(found, plain[np.ix_(some, some)], atol=1e-4)


def test_distances_keep_their_digits_far_from_the_origin(tables: Float32) -> None:
    near = 1000 + 0.01 * tables
    plain = ((near[:, None].astype(np.float64) - near[None]) ** 2).sum((2, 3))
    np.testing.assert_allclose(composite.squared_distances(near).numpy(), plain, rtol=1e-3, atol=1e-7)


def test_eq_7_by_hand() -> None:
    # u has two items, v has one: v is padded, so only the first rows meet
    vectors = np.array([[0.6, 0.8], [0.8, -0.6], [1.0, 1.0]], np.float32)
    angles = composite.mean_angles(vectors, np.array([0, 2, 3]))
    between = (acos(0.6) + acos(0.8)) / 2  # = pi / 4
    assert between == pytest.approx(pi / 4)
    np.testing.assert_allclose(angles.numpy(), [[0, between], [between, 0]], atol=1e-3)
    c = composite.complementarity(angles.clone(), "cos").numpy()
    s = composite.complementarity(angles.clone(), "sin").numpy()
    assert c[0, 1] == pytest.approx(sqrt(0.5), abs=1e-6)
    assert s[0, 1] == pytest.approx(sin(between), abs=1e-6)


@pytest.mark.parametrize("rows", [2, 96])
def test_angles_are_those_of_a_plain_loop(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composite, "ANGLE_ROWS", rows)
    draw = np.random.default_rng(2)
    counts = np.array([4, 1, 0, 9, 4, 2, 30, 7])
    start = np.concatenate([[0], np.cumsum(counts)])
    vectors = draw.normal(size=(start[-1], 3)).astype(np.float32) * 0.2
    found = composite.mean_angles(vectors, start).numpy()
    for u in range(len(counts)):
        for v in range(len(counts)):
            both = min(counts[u], counts[v])
            x, y = vectors[start[u] : start[u] + both], vectors[start[v] : start[v] + both]
            plain = np.mean([acos(np.clip((x[:, l] * y[:, l]).sum(), -1, 1)) for l in range(3)])
            assert found[u, v] == pytest.approx(plain, abs=2e-3 if u == v else 1e-5)


def test_components_are_matched_greedily() -> None:
    # the best pair (a0, b1) is taken first, so a1 must take b0 although b1 would be nearer
    turn = pi / 6
    a = np.array([[1, 0, 0], [cos(turn), 0, sin(turn)]])
    b = np.array([[0, 1, 0], [-1, 0, 0]])
    found = composite.matched_angles(np.stack([a, b]).astype(np.float32)).numpy()
    assert found[0, 1] == pytest.approx((0 + ORTHOGONAL) / 2, abs=1e-3)
    assert found[1, 0] == pytest.approx(found[0, 1], abs=1e-6)
    assert found[0, 0] == pytest.approx(0, abs=1e-3)


def test_eq_8_by_hand() -> None:
    # p = (1/4, 3/4), alpha s + beta c / 2 of the first client = (0.5 + 0.1, 0.2 + 0.05):
    # the point (0.85, 1.0) sums to 1.85, both lose 0.425
    s = np.array([[1.0, 0.4], [0.4, 1.0]])
    c = np.array([[0.5, 0.25], [0.25, 0.5]])
    found = composite.composite_weights(s, c, np.array([1, 3]), 0.5, 0.4).numpy()
    np.testing.assert_allclose(found[0], [0.425, 0.575], atol=1e-7)
    # second: (0.25 + 0.2 + 0.05, 0.75 + 0.5 + 0.1) = (0.5, 1.35), both lose 0.425
    np.testing.assert_allclose(found[1], [0.075, 0.925], atol=1e-7)


def test_eq_5_divides_by_one_plus_alpha() -> None:
    s, c = np.array([[1.0, 0.4], [0.4, 1.0]]), np.array([[0.5, 0.25], [0.25, 0.5]])
    found = composite.composite_weights(s, c, np.array([1, 3]), 0.5, 0.4, normalise="eq5").numpy()
    # (0.85, 1.0) / 1.5 differ by 0.1: half of it to either side of one half
    np.testing.assert_allclose(found[0], [0.45, 0.55], atol=1e-6)


def test_the_public_code_swaps_and_doubles() -> None:
    s, c = np.array([[1.0, 0.4], [0.4, 1.0]]), np.array([[0.5, 0.25], [0.25, 0.5]])
    coded = composite.composite_weights(s, c, np.array([1, 3]), 0.4, 0.5, roles="code").numpy()
    written = composite.composite_weights(s, c, np.array([1, 3]), 0.5, 0.8).numpy()
    np.testing.assert_allclose(coded, written, atol=1e-7)


@pytest.mark.parametrize("normalise", ["eq8", "eq5"])
def test_a_qp_solver_agrees(normalise: Literal["eq8", "eq5"]) -> None:
    cvxpy = pytest.importorskip("cvxpy")
    draw = np.random.default_rng(3)
    n, alpha, beta = 20, 0.5, 0.4
    s, c = draw.uniform(0, 0.2, (n, n)), draw.uniform(-0.1, 0.4, (n, n))
    np.fill_diagonal(s, 1)
    np.fill_diagonal(c, 1)
    sizes = draw.integers(5, 200, n)
    p = sizes / sizes.sum()
    found = composite.composite_weights(s, c, sizes, alpha, beta, normalise=normalise).numpy()
    for u in range(5):
        x = cvxpy.Variable(n)
        if normalise == "eq8":  # as printed
            aim = cvxpy.sum_squares(x) + (-2 * p - 2 * alpha * s[u] - beta * c[u]) @ x
        else:  # Eq. (5) with (6) and (7) put in
            aim = cvxpy.sum_squares(x - p) + alpha * cvxpy.sum_squares(x - s[u]) - beta * (x @ c[u])
        cvxpy.Problem(cvxpy.Minimize(aim), [cvxpy.sum(x) == 1, x >= 0]).solve(solver=cvxpy.CLARABEL, **TIGHT)
        np.testing.assert_allclose(found[u], x.value, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.floats(0, 2), st.floats(0, 2), st.integers(0, 1000))
def test_weights_are_distributions(n: int, alpha: float, beta: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    s, c = draw.uniform(0, 1, (n, n)), draw.uniform(-1, 1, (n, n))
    found = composite.composite_weights(s, c, draw.integers(1, 50, n), alpha, beta).double().numpy()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)


def test_section_5_2_without_similarity_and_complementarity_weights_are_sizes() -> None:
    found = composite.composite_weights(None, None, np.array([1, 2, 5]), 0.0, 0.0).numpy()
    np.testing.assert_allclose(found, np.tile([1 / 8, 2 / 8, 5 / 8], (3, 1)), atol=1e-7)  # FedAvg
    found = composite.composite_weights(None, None, np.ones(4), 0.0, 0.0).numpy()
    np.testing.assert_allclose(found, 0.25)  # FCF


@pytest.mark.parametrize("share", [1.0, 0.08])
def test_the_mixture_is_the_weighted_sum(tables: Float32, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composite, "COLUMNS", 8)
    draw = np.random.default_rng(4)
    weights = np.where(draw.random((11, 11)) < share, draw.random((11, 11)), 0).astype(np.float32)
    plain = np.einsum("uv,vid->uid", weights, tables)
    np.testing.assert_allclose(composite.mix(tables, weights), plain, atol=1e-5)
    own = tables.copy()
    assert composite.mix(own, torch.from_numpy(weights), out=own) is own
    np.testing.assert_allclose(own, plain, atol=1e-5)


def test_only_the_chosen_are_mixed(tables: Float32) -> None:
    some, weights = np.array([1, 5, 9]), np.array([[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.3, 0.5]], np.float32)
    found = composite.mix(tables, weights, some)
    np.testing.assert_allclose(found[some], np.einsum("uv,vid->uid", weights, tables[some]), atol=1e-6)
    rest = np.setdiff1d(np.arange(11), some)
    np.testing.assert_array_equal(found[rest], tables[rest])


def test_similarity_as_coded_by_hand() -> None:
    # tables whose items lie on one line: the projection is the position on it, the initial one is taken off
    line = np.array([[-1.0, 0], [0, 0], [1, 0]], np.float32)
    tables = np.stack([line, line * 3, line * 1.01])
    found = composite.similarity_as_coded(tables, line).numpy()
    assert found[0, 1] == pytest.approx(1 / (1 + 2 * sqrt(2)), abs=1e-5)  # (-2, 0, 2) apart
    assert found[0, 2] == 1.0  # 1 / (1 + 0.014) exceeds 0.9


@pytest.mark.parametrize("some", [None, np.array([1, 4, 5, 8])])
def test_cosines_in_blocks_are_the_direct_ones(some: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (composite, gram):
        monkeypatch.setattr(module, "ROWS", 2)  # several blocks of pairs
        monkeypatch.setattr(module, "COLUMNS", 6)  # several slices of the tables
    tables = np.random.default_rng(5).normal(size=(9, 7, 3)).astype(np.float32)
    before = tables.copy()
    flat = (tables if some is None else tables[some]).reshape(9 if some is None else 4, -1)
    lengths = np.linalg.norm(flat, axis=1)
    np.testing.assert_allclose(cosines(tables, some), flat @ flat.T / np.outer(lengths, lengths), atol=1e-6)
    np.testing.assert_array_equal(tables, before)  # slices are views: nothing is written
    one_for_all = np.broadcast_to(tables[0], tables.shape)  # read only, as clients' tables are at the start
    np.testing.assert_allclose(cosines(one_for_all, some), 1, atol=1e-6)
    mixed = composite.mix(one_for_all, np.full((9, 9), 1 / 9, np.float32))
    np.testing.assert_allclose(mixed, one_for_all, atol=1e-6)

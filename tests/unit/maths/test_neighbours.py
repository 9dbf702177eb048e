"""The approximate mode: exact where it has room, and how far off where it has not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64
from fedrec.maths import composite, neighbours
from fedrec.maths.neighbours import FewRows, few_rows

Sparse = tuple[Float32, Float32, Int64]


@pytest.fixture
def sparse() -> Sparse:
    """60 clients in four groups of taste; each differs from the shared table in 6 of 30 items."""
    draw = np.random.default_rng(0)
    whole = np.zeros((60, 30, 4), np.float32)
    taste = draw.normal(size=(4, 30, 4))
    for c in range(60):
        own = draw.permutation(30)[:6]
        whole[c, own] = taste[c % 4, own] + 0.1 * draw.normal(size=(6, 4))
    counts = draw.integers(1, 40, 60)
    start = np.concatenate([[0], np.cumsum(counts)])
    vectors = draw.normal(size=(start[-1], 3)).astype(np.float32)
    vectors /= np.sqrt(np.repeat(np.add.reduceat(vectors**2, start[:-1]), counts, axis=0))
    return whole, vectors, start


def exact(whole: Float32, vectors: Float32, start: Int64, alpha: float = 0.5, beta: float = 0.4) -> Float32:
    s = composite.similarity(composite.squared_distances(whole))
    c = composite.complementarity(composite.mean_angles(vectors, start))
    weights: Float32 = composite.composite_weights(s, c, np.diff(start), alpha, beta).numpy()
    return weights


def approximate(
    whole: Float32, vectors: Float32, start: Int64, count: int, alpha: float = 0.5, beta: float = 0.4
) -> tuple[Float32, Int64, Float32, FewRows]:
    tables = few_rows(whole, 6)
    proxy = np.diff(start) / start[-1]
    sketches = neighbours.sketch(tables, key=1)
    others = neighbours.candidates(sketches, vectors, start, proxy, alpha, beta / 2, count)
    weights = neighbours.sparse_weights(tables, vectors, start, others, proxy, alpha, beta / 2)
    found = np.zeros((60, 60), np.float32)
    np.put_along_axis(found, others, weights, axis=1)
    return found, others, weights, tables


def test_few_rows_keep_the_largest_and_come_back(sparse: Sparse) -> None:
    whole = sparse[0]
    base = np.ones((30, 4), np.float32)
    np.testing.assert_allclose(few_rows(whole, 6).added(base), whole + 1, atol=1e-6)
    two = few_rows(whole, 2)
    assert (np.diff(two.ids, axis=1) > 0).all()
    sizes = np.sort((whole**2).sum(2), axis=1)[:, ::-1]
    np.testing.assert_allclose(np.sort((two.values**2).sum(2), axis=1)[:, ::-1], sizes[:, :2], rtol=1e-5)
    roomy = few_rows(whole, 9)  # more room than rows: the rest says that there is none
    assert (roomy.ids[:, 6:] == 30).all()
    np.testing.assert_allclose(roomy.added(base), whole + 1, atol=1e-6)


def test_tables_that_do_not_differ() -> None:
    none = FewRows.none(3, 5, 2, 7)
    np.testing.assert_array_equal(none.added(np.ones((7, 2), np.float32)), 1)


def test_a_sketch_keeps_distances(sparse: Sparse) -> None:
    whole = sparse[0]
    plain = ((whole[:, None] - whole[None]) ** 2).sum((2, 3))
    errors = []
    for key in range(20):
        points = neighbours.sketch(few_rows(whole, 6), key)
        seen = ((points[:, None] - points[None]) ** 2).sum(2)
        errors.append(seen - plain)
    away = ~np.eye(60, dtype=bool)
    relative = (np.array(errors) / np.maximum(plain, 1e-9))[:, away]
    assert abs(relative.mean()) < 0.02  # unbiased
    assert relative.std() < 1.2 * np.sqrt(2 / neighbours.WIDTH)


def test_with_all_clients_as_candidates_weights_are_exact(sparse: Sparse) -> None:
    found = approximate(*sparse, count=60)[0]
    np.testing.assert_allclose(found, exact(*sparse), atol=1e-5)


def test_error_against_exact_weights_falls_with_candidates(sparse: Sparse) -> None:
    right = exact(*sparse)
    off = {count: np.abs(approximate(*sparse, count=count)[0] - right).sum(1).mean() for count in (4, 16, 32)}
    assert off[4] > off[16] > off[32]
    assert off[32] < 0.05  # of 2 at most: half of it is weight given to the wrong clients
    support = (right > 0).sum(1).mean()
    assert 4 < support < 32  # the bound above means something


def test_a_client_is_its_own_first_candidate(sparse: Sparse) -> None:
    others = approximate(*sparse, count=5)[1]
    np.testing.assert_array_equal(others[:, 0], np.arange(60))
    assert all(len(set(row)) == 5 for row in others)


def test_the_mixture_is_the_weighted_sum(sparse: Sparse) -> None:
    found, others, weights, tables = approximate(*sparse, count=20)
    expected = np.einsum("uv,vid->uid", found, sparse[0])
    mixed = neighbours.mix_few(tables, others, weights, 30)
    np.testing.assert_allclose(mixed.added(np.zeros((30, 4), np.float32)), expected, atol=1e-5)
    few = neighbours.mix_few(tables, others, weights, 8)
    assert few.ids.shape == (60, 8)
    largest = few_rows(expected.astype(np.float32), 8)
    np.testing.assert_array_equal(few.ids, largest.ids)
    np.testing.assert_allclose(few.values, largest.values, atol=1e-5)


def test_missing_terms_count_as_zero(sparse: Sparse) -> None:
    start = sparse[2]
    proxy = np.diff(start) / start[-1]
    others = neighbours.candidates(None, None, None, proxy, 0, 0, 60)
    weights = neighbours.sparse_weights(None, None, None, others, proxy, 0, 0)
    np.testing.assert_allclose(weights, proxy[others], atol=1e-6)
    assert torch.is_tensor(composite.composite_weights(None, None, np.diff(start), 0, 0))

"""What clients tell of their data (FedCA section 5.1.1)."""

from __future__ import annotations

import numpy as np
import pytest

from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64
from fedrec.maths.subspaces import left_singular, principal_components, unit_columns


@pytest.fixture
def ragged() -> tuple[Float32, Int64]:
    draw = np.random.default_rng(0)
    counts = [9, 1, 0, 5, 3]
    return draw.normal(size=(sum(counts), 4)).astype(np.float32), np.concatenate([[0], np.cumsum(counts)])


def test_left_singular_vectors_by_hand() -> None:
    # rows (3, 0), (4, 0), (0, 2): singular values 5 and 2, left vectors (0.6, 0.8, 0) and (0, 0, 1)
    rows = np.array([[3, 0], [4, 0], [0, 2]], np.float32)
    np.testing.assert_allclose(
        left_singular(rows, np.array([0, 3]), 2), [[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]], atol=1e-7
    )


def test_signs_are_such_that_columns_sum_to_at_least_zero() -> None:
    rows = np.array([[-3, 0], [-4, 0], [0, -2]], np.float32)
    np.testing.assert_allclose(
        left_singular(rows, np.array([0, 3]), 2), [[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]], atol=1e-7
    )


def test_left_singular_vectors_are_those_of_the_svd(ragged: tuple[Float32, Int64]) -> None:
    rows, start = ragged
    found = left_singular(rows, start, 3)
    for c in range(len(start) - 1):
        own, mine = rows[start[c] : start[c + 1]], found[start[c] : start[c + 1]]
        rank = min(3, len(own))
        left = np.linalg.svd(own.astype(np.float64), full_matrices=False)[0][:, :rank]
        left *= np.where(left.sum(0) < 0, -1, 1)
        np.testing.assert_allclose(mine[:, :rank], left, atol=1e-6)
        np.testing.assert_array_equal(mine[:, rank:], 0)  # fewer items than k: padded


def test_a_client_alone_gets_what_it_gets_among_others(ragged: tuple[Float32, Int64]) -> None:
    rows, start = ragged
    found = left_singular(rows, start, 2)
    alone = left_singular(rows[start[3] : start[4]], np.array([0, 5]), 2)
    np.testing.assert_array_equal(found[start[3] : start[4]], alone)


def test_more_vectors_than_dimensions_are_padded(ragged: tuple[Float32, Int64]) -> None:
    rows, start = ragged
    found = left_singular(rows, start, 6)
    assert found.shape == (len(rows), 6)
    np.testing.assert_array_equal(found[:, 4:], 0)


def test_raw_columns_have_length_one(ragged: tuple[Float32, Int64]) -> None:
    rows, start = ragged
    found = unit_columns(rows, start)
    np.testing.assert_allclose((found[: start[1]] ** 2).sum(0), 1, rtol=1e-6)
    np.testing.assert_allclose(found[0] * np.sqrt((rows[: start[1]] ** 2).sum(0)), rows[0], rtol=1e-5)


def test_principal_components_by_hand() -> None:
    # along (1, 1) the points spread, across they do not
    rows = np.array([[0, 0], [1, 1], [2, 2], [5, 5]], np.float32)
    found = principal_components(rows, np.array([0, 4]), 2)
    np.testing.assert_allclose(found[0, 0], np.sqrt([0.5, 0.5]), atol=1e-6)
    np.testing.assert_array_equal(found[0, 1], 0)

"""The inverse of a sparse matrix by levels of items, against the dense one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, identity
from scipy.sparse import random as sparse_random

from fedrec.core.fold import add_rows
from fedrec.core.messages import Rows
from fedrec.maths.packed import pack, unpack_sparse, unpack_upper
from fedrec.maths.sparse_inverse import eliminated, inverse
from fedrec.methods.references.ease import ease_weights


def gram(users: int, items: int, density: float) -> csr_matrix:
    counts = sparse_random(users, items, density, format="csr", random_state=3)
    counts.data[:] = 1.0
    return csr_matrix(counts.T @ counts)


@pytest.mark.parametrize("density", [0.001, 0.01, 0.05, 0.5])
def test_inverse_is_the_dense_one(density: float) -> None:
    matrix = gram(150, 200, density) + 2.0 * identity(200, format="csr")
    found, order = inverse(matrix)
    assert sorted(order) == list(range(200))
    np.testing.assert_allclose(found, np.linalg.inv(matrix.toarray())[np.ix_(order, order)], rtol=1e-9, atol=1e-12)


def test_a_sparse_matrix_has_levels_and_a_core() -> None:
    levels, core, left = eliminated(gram(150, 200, 0.02) + 2.0 * identity(200, format="csr"))
    assert len(levels) > 1
    assert 0 < len(left) < 200
    assert core.shape == (len(left), len(left))


def test_no_inverse_of_what_is_not_positive_definite() -> None:
    pairs = csr_matrix(np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    with pytest.raises(np.linalg.LinAlgError, match="a larger lam helps"):
        ease_weights(pairs, 0.5)
    with pytest.raises(np.linalg.LinAlgError, match="a larger lam helps"):
        ease_weights(pairs.toarray(), 0.5)


def test_weights_of_sparse_and_dense_pairs_are_the_same() -> None:
    dense = gram(150, 200, 0.02).toarray()
    triangle = pack(dense)
    np.testing.assert_array_equal(unpack_sparse(triangle, 200).toarray(), dense)
    np.testing.assert_allclose(
        ease_weights(unpack_sparse(triangle, 200), 5.0), ease_weights(unpack_upper(triangle, 200), 5.0), atol=1e-7
    )


def test_few_rows_of_a_long_table_are_added_as_many_are() -> None:
    rng = np.random.default_rng(0)
    ids = np.concatenate([np.sort(rng.choice(60, 5, replace=False)) for _ in range(3)]).astype(np.int32)
    values = rng.normal(size=(15, 2)).astype(np.float32)
    weights = np.array([1.0, 2.0, 0.5])
    totals = []
    for length in (60, 61):  # at four rows of the table for each that came, and beyond
        total = np.ones((length, 2))
        add_rows(total, Rows(np.array([0, 5, 10, 15]), ids, values, length), weights)
        totals.append(total[:60])
    np.testing.assert_array_equal(totals[0], totals[1])
    assert (totals[0] != 1).any()


def test_weights_without_kernels_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedrec.methods.references import ease

    wanted = ease_weights(gram(60, 40, 0.05), 0.5)
    monkeypatch.setattr(ease, "installed", lambda _: False)
    assert ease_weights(gram(60, 40, 0.05), 0.5) == pytest.approx(wanted, abs=1e-6)

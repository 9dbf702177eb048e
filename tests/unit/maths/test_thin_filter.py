"""Thin products on threads against scipy's, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from fedrec.maths.thin_filter import filtered, times_thin


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("users", [0, 1, 300])
def test_a_thin_product_is_scipys(users: int, ones: bool) -> None:
    drawn = np.random.default_rng(0)
    histories = csr_matrix(random_array((users, 40), density=0.2, rng=drawn, dtype=np.float32))
    if ones:
        histories.data[:] = 1.0
    thin = drawn.standard_normal((40, 7)).astype(np.float32)
    np.testing.assert_array_equal(times_thin(histories, thin), histories @ thin)
    np.testing.assert_array_equal(times_thin(histories, thin[::-1]), histories @ thin[::-1])


def test_an_item_does_not_recommend_itself() -> None:
    drawn = np.random.default_rng(1)
    reads, writes = drawn.standard_normal((2, 9, 3)).astype(np.float32)
    histories = csr_matrix(drawn.random((6, 9)) < 0.4, dtype=np.float32)
    weights = reads @ writes.T
    found = filtered(histories, reads, writes, np.diag(weights).copy())
    np.testing.assert_allclose(found, histories @ (weights - np.diag(np.diag(weights))), atol=1e-5)

"""Item weights that are never built, against those that are."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from fedrec.maths.thin_filter import filtered


def test_an_item_does_not_recommend_itself() -> None:
    drawn = np.random.default_rng(1)
    reads, writes = drawn.standard_normal((2, 9, 3)).astype(np.float32)
    histories = csr_matrix(drawn.random((6, 9)) < 0.4, dtype=np.float32)
    weights = reads @ writes.T
    found = filtered(histories, reads, writes, np.diag(weights).copy())
    np.testing.assert_allclose(found, histories @ (weights - np.diag(np.diag(weights))), atol=1e-5)

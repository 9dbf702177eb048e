"""The explicit vector code of two views against numpy, in shapes that fill its vectors and shapes that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec.compiled import njit
from fedrec.methods.two_views.products_kernel import add_product, dots, mix


@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize("width", [3, 16, 32, 53])
def test_products_are_numpys_whichever_way_the_left_one_lies(rows: int, width: int) -> None:
    rng = np.random.default_rng(rows * width)
    left, right, out = (rng.normal(size=shape).astype(np.float32) for shape in ((rows, 9), (9, width), (rows, width)))
    wanted = out + left.astype(np.float64) @ right
    for given in (left, np.ascontiguousarray(left.T).T):
        found = out.copy()
        add_product(found, given, right)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        alone = out.copy()
        for row in range(rows):
            add_product(alone[row : row + 1], given[row : row + 1], right)
        np.testing.assert_array_equal(found, alone, "a row does not depend on its neighbours")


@pytest.mark.parametrize("width", [1, 16, 41])
def test_rows_are_mixed_and_multiplied(width: int) -> None:
    @njit(error_model="numpy")
    def both(table, other, factor):  # type: ignore[no-untyped-def]
        found: Any = dots((table, other), (width, 0), (other, other), (0, width), width)  # type: ignore[call-arg]
        mix(table, width, (factor, np.float32(-1)), (table, other), (width, 0), width)
        return found

    table, other = np.random.default_rng(2).normal(size=(2, 2, width)).astype(np.float32)
    before = table.copy()
    found = both(table, other, np.float32(0.5))
    np.testing.assert_allclose(found, [before[1] @ other[0], other[0] @ other[1]], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(table[0], before[0])
    np.testing.assert_allclose(table[1], 0.5 * before[1] - other[0], rtol=1e-5, atol=1e-6)

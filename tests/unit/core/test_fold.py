"""Folding uploads into sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrec.core import fold
from fedrec.core.fold import add_rows, weighted_sum
from fedrec.core.messages import Array, Rows
from fedrec.core.wire import rows_of_tables


@given(st.integers(0, 5), st.integers(1, 6), st.booleans(), st.integers(0, 999))
def test_rows_add_up_as_dense_tables_would(clients: int, items: int, weighted: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    counts = draw.integers(0, items + 1, clients)
    ids = [np.sort(draw.choice(items, c, replace=False)) for c in counts]
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    flat = np.concatenate(ids).astype(np.int32) if clients else np.zeros(0, np.int32)
    rows = Rows(start, flat, draw.normal(size=(len(flat), 2)).astype(np.float32), items)
    weights = draw.random(clients) if weighted else None
    expected = np.tensordot(np.ones(clients) if weights is None else weights, rows.dense().astype(float), axes=(0, 0))
    for form in (rows, rows_of_tables(rows.dense())):
        total = np.zeros((items, 2))
        add_rows(total, form, weights)
        np.testing.assert_allclose(total, expected, atol=1e-6)


def test_weighted_sum_is_in_64_bits() -> None:
    stack = np.full((3, 2), 1e8, np.float32)
    stack[0] += 1
    assert weighted_sum(stack).dtype == np.float64
    np.testing.assert_allclose(weighted_sum(stack, np.array([1, 0, 2.0])), 3e8)


def test_sums_over_clients_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "SUM_LEAST", 7)
    changes = np.random.default_rng(0).normal(size=(9, 13, 5)).astype(np.float32)
    found = []
    for threads in (1, 4):
        monkeypatch.setenv("FEDREC_THREADS", str(threads))
        total = np.ones((13, 5))
        fold.add_clients(total, changes)
        found.append(total)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], 1 + changes.astype(np.float64).sum(0), rtol=1e-14)


def test_rows_add_up_whatever_the_arrays_look_like() -> None:
    """Read-only and 64-bit changes, whole numbers as weights, a total that is a view of something wider."""
    values: Array = np.arange(6.0).reshape(3, 2)
    values.setflags(write=False)
    rows = Rows(np.array([0, 2, 3]), np.array([0, 2, 2], np.int32), values, 3)
    wide = np.zeros((3, 4))
    add_rows(wide[:, ::2], rows, np.array([1, 10]))
    np.testing.assert_array_equal(wide[:, ::2], [[0, 1], [0, 0], [42, 53]])
    assert not wide[:, 1::2].any()


@pytest.mark.parametrize("item", [-1, 3])
def test_a_row_of_no_item_is_refused(item: int) -> None:
    rows = Rows(np.array([0, 1]), np.array([item], np.int32), np.ones((1, 2), np.float32), 4)
    with pytest.raises(ValueError, match="none of 3"):
        add_rows(np.zeros((3, 2)), rows)

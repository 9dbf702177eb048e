"""Interactions as a sparse matrix, plain and normalised."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.data.ragged import Ragged


def matrix(lists: Ragged, n_items: int, dtype: Any = np.float32) -> Any:
    """``[users, n_items]`` sparse zero-one matrix, one row per list."""
    from scipy.sparse import csr_matrix

    ones = np.ones(len(lists.values), dtype)
    return csr_matrix((ones, lists.values.astype(np.int64), lists.start), shape=(len(lists), n_items))


def inverse_root(degrees: Any) -> Any:
    """``degree ** -1/2``, zero where the degree is zero."""
    degrees = np.asarray(degrees, np.float64)
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


def normalised(counts: Any, item_degrees: Any = None) -> Any:
    """``D_u^-1/2 R D_i^-1/2``: each interaction divided by the roots of its user's and item's degree."""
    from scipy.sparse import diags

    users = inverse_root(np.asarray(counts.sum(1)).ravel())
    items = inverse_root(np.asarray(counts.sum(0)).ravel() if item_degrees is None else item_degrees)
    return (diags(users) @ counts @ diags(items)).tocsr()

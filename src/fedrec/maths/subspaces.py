"""What a client tells of its data instead of the data: directions of its items' embeddings (FedCA, Eq. 7).

Client side, in numpy. Rows of all clients lie one client after the other; client ``c`` has the rows
``start[c] .. start[c + 1]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64

SMALLEST = 1e-6
"""Singular values below this share of the largest are noise: their vectors are left zero."""


def left_singular(rows: NDArray[np.floating], start: Int64, k: int) -> Float32:
    """X_u: the first ``k`` left singular vectors of each client's ``[|I_u|, d]`` rows, as ``[rows, k]``.

    Singular vectors have no sign of their own, and arccos of Eq. (7) depends on it; here a column's entries
    sum to at least zero. A client of rank below ``k`` gets zero columns, as by padding.

    Works through the d x d Gram matrix: Q = U S V^T gives U = Q V / S, in 64 bits.
    """
    values = np.asarray(rows, np.float64)
    clients, dim = len(start) - 1, values.shape[1]
    gram = np.empty((clients, dim, dim))
    for c in range(clients):  # one small BLAS call each; padding all to the longest would cost far more
        own = values[start[c] : start[c + 1]]
        np.matmul(own.T, own, out=gram[c])
    squares, right = np.linalg.eigh(gram)  # ascending
    kept = min(k, dim)
    lengths = np.sqrt(np.maximum(squares[:, ::-1][:, :kept], 0))  # [clients, kept] S
    real = lengths > SMALLEST * lengths[:, :1]
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=real)
    turn = right[:, :, ::-1][:, :, :kept] * inverse[:, None, :]  # [clients, d, kept] V / S
    found = np.zeros((len(values), k))
    for c in range(clients):
        own = values[start[c] : start[c + 1]] @ turn[c]
        found[start[c] : start[c + 1], :kept] = own * np.where(own.sum(0) < 0, -1.0, 1.0)
    return found.astype(np.float32)


def padded(values: NDArray[Any], start: Int64, counts: Int64, order: Int64) -> Float32:
    """The first ``counts`` entries of each client's list as rows ``[n, longest]`` in this order, zeros behind."""
    found = np.zeros((len(counts), int(counts.max(initial=1))), np.float32)
    owner = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    found[np.argsort(order, kind="stable")[owner], place] = values[start[owner] + place]
    return found


def unit_columns(rows: NDArray[np.floating], start: Int64) -> Float32:
    """The rows as they are, each client's columns scaled to length one (Table 11's `raw`: no SVD)."""
    values = np.asarray(rows, np.float64)
    found = np.empty(values.shape, np.float32)
    for c in range(len(start) - 1):
        own = values[start[c] : start[c + 1]]
        length = np.sqrt((own**2).sum(0))
        found[start[c] : start[c + 1]] = own / np.where(length > 0, length, 1.0)
    return found


def principal_components(rows: NDArray[np.floating], start: Int64, k: int) -> Float32:
    """The first ``k`` principal components of each client's centred rows: ``[clients, k, d]``.

    The right side of the decomposition, as FedCA's public code has it. A component's entry of largest size
    is positive.
    """
    values = np.asarray(rows, np.float64)
    clients, dim = len(start) - 1, values.shape[1]
    spread = np.zeros((clients, dim, dim))
    for c in range(clients):
        own = values[start[c] : start[c + 1]]
        if len(own):
            own = own - own.mean(0)
            np.matmul(own.T, own, out=spread[c])
    squares, right = np.linalg.eigh(spread)
    kept = min(k, dim)
    found = np.zeros((clients, k, dim))
    found[:, :kept] = right[:, :, ::-1][:, :, :kept].transpose(0, 2, 1)
    share = np.sqrt(np.maximum(squares[:, ::-1][:, :kept], 0))
    found[:, :kept] *= (share > SMALLEST * share[:, :1])[:, :, None]
    largest = np.take_along_axis(found, np.abs(found).argmax(2)[:, :, None], axis=2)
    return (found * np.where(largest < 0, -1.0, 1.0)).astype(np.float32)

"""The mean filter as the graph of all items: normalised, with a low-pass filter of the whole (not in the paper).

One user's own graph has item degrees of one, so its filter holds plain co-occurrence and no low-pass worth the name,
and so does the mean. The server can make up for both from what it receives already: with ``D = diag(F_agg)`` and
``N = D^-1/2 F_agg D^-1/2``, ``F = N / l + alpha D^-1/2 V V' D^1/2``, V the top k eigenvectors of N and l its largest
eigenvalue: as in GF-CF, both filters have norm one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64
from fedrec.core.messages import Float32
from fedrec.maths.interaction_matrix import inverse_root
from fedrec.methods.fedcia.messages import CiaDownload, CiaServer


def with_filter(server: CiaServer, k: int, alpha: float) -> CiaServer:
    """The server's state with what clients receive worked out from the mean."""
    if server.whole is not None:
        return replace(server, normal=whole_filter(server.whole, k, alpha))
    if server.left is not None and server.right is not None:
        left, right = factored_filter(server.left, server.right, k, alpha)
        return replace(server, normal=left, normal_right=right)
    return server


def received(server: CiaServer) -> CiaDownload:
    """What clients receive of it, in place of the mean."""
    thin = server.normal_right is not None
    return CiaDownload(None if thin else server.normal, server.normal if thin else None, server.normal_right)


def whole_filter(mean: Float32, k: int, alpha: float) -> Float32:
    """The filter ``[m, m]``."""
    inverse, root = _roots(np.diagonal(mean))
    linear = mean * inverse[:, None] * inverse[None, :]
    largest, low = _top(lambda x: 0.5 * (linear @ x + linear.T @ x), len(mean), k if alpha else 1)
    linear /= largest
    if alpha:
        linear += (alpha * inverse[:, None] * low) @ (low * root[:, None]).T
    return linear.astype(np.float32)


def factored_filter(left: Float32, right: Float32, k: int, alpha: float) -> tuple[Float32, Float32]:
    """The same in thin factors ``[m, r + k]``."""
    inverse, root = _roots(np.einsum("mr,mr->m", left.astype(np.float64), right))
    one, other = left * inverse[:, None], right * inverse[:, None]
    largest, low = _top(lambda x: 0.5 * (one @ (other.T @ x) + other @ (one.T @ x)), len(left), k if alpha else 1)
    one /= largest
    if alpha:
        one = np.concatenate([one, alpha * inverse[:, None] * low], axis=1)
        other = np.concatenate([other, low * root[:, None]], axis=1)
    return one.astype(np.float32), other.astype(np.float32)


def _roots(diagonal: NDArray[np.floating]) -> tuple[Float64, Float64]:
    """``D^-1/2`` and ``D^1/2``; zero for an item that nobody has (noise may even make it negative)."""
    degrees = np.asarray(diagonal, np.float64)
    degrees = np.where(degrees > 1e-6 * degrees.max(initial=0.0), degrees, 0.0)
    return inverse_root(degrees), np.sqrt(degrees)


def _top(product: object, m: int, k: int) -> tuple[float, Float64]:
    """The largest eigenvalue and the top ``k`` eigenvectors ``[m, k]`` of the symmetric matrix behind ``product``."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    k = min(k, m - 1)
    if k < 1:
        return 1.0, np.zeros((m, 0))
    start = np.random.default_rng(0).standard_normal(m)
    operator = LinearOperator((m, m), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LA", v0=start)  # ascending
    return max(float(values[-1]), 1e-30), vectors

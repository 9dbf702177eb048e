"""A sum of ``x'x`` that carries noise: what of it is signal, and a low-rank EASE made of that.

``H = G + N`` with ``N`` symmetric, every entry of deviation sigma. Eigenvalues of N reach ``2 sigma sqrt(m)``; what of
H lies above is signal. Most items are rare, and their rows hold little but noise: H is scaled by ``s_i s_j`` first, a
small power of the items' popularity as the first eigenvector shows it, so that more of G stands out; afterwards the
scales are taken back. All of it is computed from H alone, so it costs no privacy.
"""

from __future__ import annotations

import numpy as np

from fedrec.core.fold import Float64
from fedrec.core.messages import Float32
from fedrec.maths.subspace_iteration import Pairs

TEMPER = 0.15
"""Power of an item's part in the first eigenvector by which its row is scaled."""
LEAST = 1e-3
"""The least part of an item, as a share of the largest."""
FIRST = 64
"""Eigenpairs that are computed at first; as many again as long as all of them are signal."""
PENALTY = 0.25
"""lambda of EASE, as a share of the largest eigenvalue that noise has."""


def noise_edge(scales: Float64, sigma: float) -> float:
    """The largest eigenvalue of ``s_i s_j N_ij`` for many items; ``2 sigma sqrt(m)`` where all scales are 1.

    With ``a = s^2``, the Dyson equation of this variance profile has a solution for z from
    ``min over u of sigma sqrt(1/u sum_j a_j / (1 - a_j u))`` on.
    """
    from scipy.optimize import minimize_scalar

    squares = scales**2 / float((scales**2).max())  # u in (0, 1)
    found = minimize_scalar(
        lambda u: float((squares / (1 - squares * u)).sum() / u), bounds=(1e-6, 1 - 1e-9), method="bounded"
    )
    return float(sigma * (scales**2).max() * np.sqrt(found.fun))


def signal_pairs(noisy: Float64, sigma: float) -> Pairs:
    """Eigenpairs of G as far as they can be told from the noise, values shrunk for what noise added to them."""
    first = np.abs(_largest(noisy, 1).vectors[:, 0])
    scales = np.maximum(first / max(float(first.max()), 1e-300), LEAST) ** TEMPER
    edge = noise_edge(scales, sigma)
    found = _above(noisy * scales[:, None] * scales[None, :], edge)
    # e = l + edge^2 / (4 l) is what noise makes of l; sqrt(e^2 - edge^2) is the nearest matrix's (Frobenius)
    values = np.sqrt(np.maximum(found.values**2 - edge**2, 0.0))
    root = found.vectors * np.sqrt(values) / scales[:, None]
    left, singular, _ = np.linalg.svd(root, full_matrices=False)
    return Pairs(left, singular**2)


def low_rank_weights(pairs: Pairs, lam: float) -> Float32:
    """EASE's weights with ``G = V E V'``: ``B_ij = (V f V')_ij / (1 - q_j)``, zero diagonal, f = e / (e + lambda)."""
    response = pairs.values / (pairs.values + lam)
    smooth = (pairs.vectors * response) @ pairs.vectors.T
    own = np.diag(smooth).copy()
    smooth /= np.maximum(1.0 - own, 1e-6)[None, :]
    np.fill_diagonal(smooth, 0.0)
    return np.asarray(smooth, np.float32)


def private_weights(noisy: Float64, sigma: float) -> Float32:
    """The item-to-item weights out of a noisy sum; the penalty follows from the noise, so that nothing is chosen."""
    edge = noise_edge(np.ones(len(noisy)), sigma)
    return low_rank_weights(signal_pairs(noisy, sigma), PENALTY * edge)


def _above(matrix: Float64, edge: float) -> Pairs:
    """All eigenpairs above the edge."""
    count = FIRST
    while True:
        found = _largest(matrix, count)
        kept = found.values > edge
        if not kept.all() or count >= len(matrix):
            return Pairs(found.vectors[:, kept], found.values[kept])
        count *= 2


def _largest(matrix: Float64, count: int) -> Pairs:
    """The largest eigenpairs, largest first; the same for the same matrix."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    n = len(matrix)
    if n <= 4 * count:
        values, vectors = eigh(matrix, subset_by_index=[max(0, n - count), n - 1])
    else:
        values, vectors = eigsh(matrix, k=count, which="LA", v0=np.ones(n))
    order = np.argsort(-values)
    return Pairs(vectors[:, order], values[order])

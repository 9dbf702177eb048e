"""Top eigenpairs of a normalised item-item operator from sums over clients (federated subspace iteration).

The operator is ``M = D^-1/2 G D^-1/2`` with ``G = sum_u w_u a_u' a_u``: every client applies its part of G to
a shared thin matrix W, the server does the rest, so that no client needs to know D and no pair of items is
ever counted. One step costs one ``[m, k]`` table each way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.fold import Float64
from fedrec.maths.interaction_matrix import inverse_root
from fedrec.maths.lowrank_similarity import column_signs


@dataclass(frozen=True)
class Pairs:
    """Approximate eigenpairs, largest first."""

    vectors: Float64  # [m, k] V, orthonormal columns
    values: Float64  # [k]


def apply_clients(interactions: Any, weights: NDArray[np.floating[Any]], shared: NDArray[Any]) -> NDArray[Any]:
    """A user's products ``w_u a_u W``, before they are spread over the user's items: ``[users, k]``."""
    return np.asarray(np.asarray(interactions @ shared) * weights[:, None])


def step(sent: Float64, returned: Float64, degrees: Float64, before: Pairs | None = None, share: float = 1.0) -> Pairs:
    """One step of subspace iteration on the server.

    ``sent`` is W ``[m, k]``, ``returned`` the clients' sum ``G W``, ``degrees`` the diagonal of D. The basis is
    ``V = D^1/2 W``, made orthonormal by the inverse of its triangular factor; then ``M V`` is known without
    touching the data again, and its singular value decomposition gives the next basis and, where V has settled,
    the eigenvalues. With ``share`` below one (part of the clients answered) the operator applied is
    ``share M + (1 - share) V_0 E_0 V_0'``: what was known before is kept, so that the sample does not take over.
    """
    root = np.sqrt(np.maximum(degrees, 0.0))
    basis = sent * root[:, None]
    # R^-1 of basis = Q R; directions that the basis lacks come out as zero
    inverse = np.linalg.pinv(np.linalg.qr(basis, mode="r"), rcond=1e-10)
    moved = inverse_root(np.maximum(degrees, 0.0))[:, None] * (returned @ inverse)  # [m, k] M V
    if before is not None and share < 1.0:
        kept = (before.vectors * before.values) @ (before.vectors.T @ (basis @ inverse))
        moved = share * moved + (1.0 - share) * kept
    vectors, values, _ = np.linalg.svd(moved, full_matrices=False)
    return Pairs(vectors * column_signs(vectors), values)


def sent_of(pairs: Pairs, degrees: Float64) -> Float64:
    """``W = D^-1/2 V``, what clients get next."""
    return np.asarray(pairs.vectors * inverse_root(np.maximum(degrees, 0.0))[:, None])

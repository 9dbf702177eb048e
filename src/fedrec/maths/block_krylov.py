"""Eigenpairs from all that clients ever applied, not from the last block alone (block Lanczos, thick restart).

Subspace iteration forgets every round what it learnt before it. Here the server keeps directions V ``[m, r]`` with
their images ``M V``. A round adds a block and its image, so M is known on a space that grows, and the best
approximations there (Ritz pairs: the eigenpairs of ``V' M V``) come nearer to the eigenpairs in a few rounds than
iteration does in many, of more directions than a block has. Where more are known than are kept, the largest stay. The
next block is what the image of the last one has outside of the space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrec.core.fold import Float64
from fedrec.maths.lowrank_similarity import column_signs

DEPENDENT = 1e-10
"""Directions whose share of the basis's size is less than this are none."""
EXHAUSTED = 1e-6
"""A residual of this share of its image's size is rounding: there is nothing left to find."""


@dataclass(frozen=True)
class Space:
    """What is known of the operator after a round; columns beyond what was found are zero."""

    vectors: Float64  # [m, r] V, orthonormal, by falling value
    images: Float64  # [m, r] M V
    values: Float64  # [r]
    block: Float64  # [m, k] orthonormal: the directions to apply next


def grown(vectors: Float64, images: Float64, block: Float64, image: Float64) -> Space:
    """The space with one more block and its image, as many directions kept as there were columns before."""
    basis, moved = np.hstack([vectors, block]), np.hstack([images, image])
    known = basis.any(0)
    basis, moved = basis[:, known], moved[:, known]
    size, turn = np.linalg.eigh(basis.T @ basis)
    found = size > DEPENDENT * max(float(size[-1:].sum()), 1e-300)
    whitened = turn[:, found] / np.sqrt(size[found])  # basis @ whitened is orthonormal
    inner = whitened.T @ (basis.T @ moved) @ whitened
    ritz, rotation = np.linalg.eigh((inner + inner.T) / 2.0)
    mixture = whitened @ rotation[:, ::-1]  # largest first
    whole = basis @ mixture
    kept = min(vectors.shape[1], whole.shape[1])
    signs = column_signs(whole[:, :kept])
    return Space(
        _padded(whole[:, :kept] * signs, vectors.shape[1]),
        _padded(moved @ (mixture[:, :kept] * signs), vectors.shape[1]),
        _padded(ritz[None, ::-1][:, :kept], vectors.shape[1])[0],
        _outside(image, whole),
    )


def _outside(image: Float64, whole: Float64) -> Float64:
    """Orthonormal directions of what an image has outside of a space; zero where it has none."""
    rest = image
    for _ in range(2):  # once leaves rounding of the first time
        rest = rest - whole @ (whole.T @ rest)
    directions, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    return directions * (sizes > EXHAUSTED * max(float(np.linalg.norm(image)), 1e-300))


def _padded(columns: Float64, width: int) -> Float64:
    return np.pad(columns, ((0, 0), (0, width - columns.shape[1])))

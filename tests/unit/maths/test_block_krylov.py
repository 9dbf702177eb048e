"""Eigenpairs from all blocks that were applied, against those of the matrix itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.maths.block_krylov import Space, grown

SIZE, BLOCK = 40, 3
_SPREAD = np.linalg.qr(np.random.default_rng(0).normal(size=(SIZE, SIZE)))[0]
VALUES = 0.9 ** np.arange(SIZE)
MATRIX = (_SPREAD * VALUES) @ _SPREAD.T


def gather(rounds: int, rank: int) -> Space:
    nothing = np.zeros((SIZE, rank))
    block = np.linalg.qr(np.random.default_rng(1).normal(size=(SIZE, BLOCK)))[0]
    space = Space(nothing, nothing, np.zeros(rank), block)
    for _ in range(rounds):
        space = grown(space.vectors, space.images, space.block, MATRIX @ space.block)
    return space


def iterated(rounds: int) -> Any:
    block = np.linalg.qr(np.random.default_rng(1).normal(size=(SIZE, BLOCK)))[0]
    for _ in range(rounds):
        block = np.linalg.qr(MATRIX @ block)[0]
    return block


def caught(vectors: Any, count: int) -> float:
    """How much of the first eigenvectors lies in a space."""
    return float(((np.linalg.qr(vectors)[0].T @ _SPREAD[:, :count]) ** 2).sum() / count)


def test_images_are_those_of_the_vectors_and_both_are_ordered() -> None:
    space = gather(5, 8)
    np.testing.assert_allclose(space.vectors.T @ space.vectors, np.eye(8), atol=1e-9)
    np.testing.assert_allclose(space.images, MATRIX @ space.vectors, atol=1e-9)
    np.testing.assert_allclose(space.vectors.T @ space.images, np.diag(space.values), atol=1e-9)
    assert (np.diff(space.values) <= 0).all()
    np.testing.assert_allclose(space.vectors.T @ space.block, 0, atol=1e-9)


def test_more_pairs_than_a_block_has_columns_are_found() -> None:
    np.testing.assert_allclose(gather(14, SIZE).values, VALUES, atol=1e-8)  # 14 blocks of 3: the whole space
    np.testing.assert_allclose(gather(20, 8).values[:6], VALUES[:6], rtol=1e-3)  # eight kept, restarted every round


def test_it_takes_fewer_rounds_than_iteration() -> None:
    assert caught(gather(6, 12).vectors[:, :BLOCK], BLOCK) > 0.999
    assert caught(iterated(6), BLOCK) < 0.95


def test_what_is_exhausted_gives_zero_and_goes_on() -> None:
    low = (_SPREAD[:, :4] * VALUES[:4]) @ _SPREAD[:, :4].T
    nothing = np.zeros((SIZE, 9))
    space = Space(nothing, nothing, np.zeros(9), iterated(0))
    for _ in range(6):
        space = grown(space.vectors, space.images, space.block, low @ space.block)
    np.testing.assert_allclose(space.values[:4], VALUES[:4], rtol=1e-9)
    np.testing.assert_allclose(space.values[4:], 0, atol=1e-9)
    assert not space.block.any()


def test_no_answer_leaves_nothing_that_is_not_finite() -> None:
    nothing = np.zeros((SIZE, 5))
    space = grown(nothing, nothing, np.zeros((SIZE, BLOCK)), np.zeros((SIZE, BLOCK)))
    assert all(not np.any(part) for part in (space.vectors, space.images, space.values, space.block))

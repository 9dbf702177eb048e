"""EASE from a few eigenpairs, against the inverse of the matrix that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from fedrec.maths.thin_ease import thin_ease

HISTORIES = csr_matrix(np.random.default_rng(0).random((30, 12)) < 0.3, dtype=np.float64)
GRAM = (HISTORIES.T @ HISTORIES).toarray()


def ease_of(gram: Any, lam: float) -> Any:
    inverse = np.linalg.inv(gram + lam * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)[None, :]
    np.fill_diagonal(weights, 0.0)
    return HISTORIES @ weights


@pytest.mark.parametrize("kept", [False, True])
def test_scores_are_those_of_the_matrix_that_the_pairs_stand_for(kept: bool) -> None:
    values, vectors = (part[..., -4:] for part in np.linalg.eigh(GRAM))
    stands_for = (vectors * values) @ vectors.T
    if kept:
        np.fill_diagonal(stands_for, np.diag(GRAM))
    found = thin_ease(vectors, values, 3.0, np.diag(GRAM) if kept else None).scores(HISTORIES)
    np.testing.assert_allclose(found, ease_of(stands_for, 3.0), rtol=1e-4, atol=1e-5)


def test_all_pairs_of_a_balanced_matrix_give_ease() -> None:
    root = np.sqrt(np.diag(GRAM)) ** 0.5
    values, vectors = np.linalg.eigh(GRAM / root[:, None] / root[None, :])
    found = thin_ease(vectors * root[:, None], values, 3.0, np.diag(GRAM)).scores(HISTORIES)
    np.testing.assert_allclose(found, ease_of(GRAM, 3.0), rtol=1e-4, atol=1e-5)


def test_pairs_with_noise_in_them_give_finite_scores() -> None:
    values = np.array([40.0, 0.0, -3.0])
    vectors = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 3)))[0]
    assert np.isfinite(thin_ease(vectors, values, 1e-3, np.zeros(12)).scores(HISTORIES)).all()


def test_values_that_a_hostile_client_made_huge_end_no_run() -> None:
    values, vectors = (part[..., -4:] for part in np.linalg.eigh(GRAM))
    vectors[:, 1] = vectors[:, 0]  # rounding leaves nothing positive between two equal directions of this size
    found = thin_ease(vectors, values * 1e25, 3.0).scores(HISTORIES)
    apart = thin_ease(vectors[:, 1:], values[1:] * 1e25, 3.0).scores(HISTORIES)  # infinite either way
    np.testing.assert_allclose(found, apart, rtol=1e-3, atol=1e-3)

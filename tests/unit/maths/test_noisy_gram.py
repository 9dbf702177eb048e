"""Signal and noise in a noisy sum of x'x, and EASE in its private form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrec.core.population import population
from fedrec.data.load import load
from fedrec.data.ragged import Ragged
from fedrec.evaluation.protocols import find
from fedrec.maths.noisy_gram import low_rank_weights, noise_edge, signal_pairs
from fedrec.maths.packed import pack, unpack
from fedrec.maths.subspace_iteration import Pairs
from fedrec.methods.fedease import cooccurrence, weighted_pairs
from fedrec.methods.references.ease import ease_weights


def symmetric(rng: np.random.Generator, m: int) -> np.ndarray:
    drawn = np.triu(rng.standard_normal((m, m)))
    return np.asarray(drawn + np.triu(drawn, 1).T)


def test_the_edge_is_where_the_eigenvalues_of_noise_end() -> None:
    rng = np.random.default_rng(1)
    assert noise_edge(np.ones(400), 3.0) == pytest.approx(2 * 3.0 * np.sqrt(400), rel=1e-6)
    scales = np.linspace(0.05, 1.0, 400) ** 2
    largest = np.linalg.eigvalsh(symmetric(rng, 400) * scales[:, None] * scales[None, :])[-1]
    assert noise_edge(scales, 1.0) == pytest.approx(largest, rel=0.05)


def test_signal_is_found_and_noise_is_not() -> None:
    rng = np.random.default_rng(2)
    m = 300
    basis = np.abs(np.linalg.qr(rng.standard_normal((m, 2)))[0])
    gram = 900 * np.outer(basis[:, 0], basis[:, 0]) + 300 * np.outer(basis[:, 1], basis[:, 1])
    noisy = gram + symmetric(rng, m)
    found = signal_pairs(noisy, 1.0)
    assert 2 <= len(found.values) <= 3
    denoised = (found.vectors * found.values) @ found.vectors.T
    assert np.linalg.norm(denoised - gram) < 0.3 * np.linalg.norm(noisy - gram)
    alone = signal_pairs(symmetric(rng, m), 1.0)
    assert len(alone.values) <= 1


def test_low_rank_weights_are_eases_where_nothing_is_left_out() -> None:
    rng = np.random.default_rng(3)
    histories = (rng.random((60, 20)) < 0.3).astype(float)
    gram = histories.T @ histories
    values, vectors = np.linalg.eigh(gram)
    np.testing.assert_allclose(
        low_rank_weights(Pairs(vectors, values), 5.0), ease_weights(gram.copy(order="F"), 5.0), atol=1e-5
    )


def test_every_user_counts_the_same_and_no_more_than_one() -> None:
    task = find("strict").prepare(load("scale:users=12,items=30,interactions=90"), 0)
    block = population(task).block
    asked = np.ones(12, bool)
    for span in (0.0, 3.0):
        rows = weighted_pairs(block, asked, span, scaled=True)
        norms = np.sqrt(np.add.reduceat(rows.values[:, 0].astype(np.float64) ** 2, rows.start[:-1]))
        assert (norms <= 1).all()
        np.testing.assert_allclose(norms, 1, atol=1e-5)
        assert (rows.values > 0).all()  # no count is below zero: two users enclose a right angle at most
    plain, weighted = cooccurrence(block, asked), weighted_pairs(block, asked, 0.0, scaled=False)
    np.testing.assert_array_equal(plain.start, weighted.start)
    np.testing.assert_array_equal(plain.ids, weighted.ids)
    np.testing.assert_array_equal(plain.values, weighted.values)
    some = weighted_pairs(block, np.array([False, True] * 6), 0.0, scaled=True)
    assert (np.diff(some.start)[::2] == 0).all()
    items = np.where(np.arange(len(block.train.values)) % 3, block.train.values, 7).astype(np.int32)
    twice = replace(block, train=Ragged(block.train.start, items))  # an item that a history has several times
    rows = weighted_pairs(twice, asked, 0.0, scaled=True)
    assert (np.add.reduceat(rows.values[:, 0].astype(np.float64) ** 2, rows.start[:-1]) <= 1).all()
    many = replace(block, clients=np.arange(2), client_keys=block.client_keys[:2], user_start=np.array([0, 5, 12]))
    alone, together = (
        np.bincount(each.ids, each.values[:, 0], minlength=each.n_items)
        for each in (weighted_pairs(block, asked, 2.0, scaled=True), weighted_pairs(many, asked[:2], 2.0, scaled=True))
    )
    np.testing.assert_allclose(alone, together, atol=1e-6)  # who holds whom changes no sum
    square = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(unpack(pack(square), 3), np.triu(square) + np.triu(square, 1).T)

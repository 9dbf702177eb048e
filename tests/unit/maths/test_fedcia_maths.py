"""Packed triangles, thin factors, alignment, subspace iteration and convolution against plain computations."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.backbones.gfcf import local_filter
from fedrec.core.messages import Float32
from fedrec.data.ragged import Ragged, offsets
from fedrec.maths import alignment, subspace_iteration
from fedrec.maths.interaction_matrix import inverse_root
from fedrec.maths.lowrank_similarity import FactoredSum, top_factors, truncated
from fedrec.maths.packed import pack, packed_size, pairs_of_lists, row_starts, unpack

SEEDS = st.integers(0, 2**32 - 1)


def lists_of(rows: np.ndarray) -> Ragged:
    """Rows of a zero-one matrix as lists."""
    return Ragged(offsets(rows.sum(1).astype(int)), np.nonzero(rows)[1].astype(np.int32))


@given(st.integers(1, 12), SEEDS)
@settings(max_examples=30, deadline=None)
def test_a_triangle_unpacks_to_the_matrix_it_came_from(n: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((n, n))
    matrix += matrix.T
    packed = pack(matrix)
    assert packed.shape == (packed_size(n),)
    np.testing.assert_array_equal(unpack(packed, n), matrix)
    i, j = np.triu_indices(n)
    np.testing.assert_array_equal(packed[row_starts(n)[i] + j - i], matrix[i, j])


@given(st.integers(1, 6), st.integers(1, 9), SEEDS)
@settings(max_examples=30, deadline=None)
def test_pairs_of_lists_are_the_ones_of_each_outer_product(users: int, items: int, seed: int) -> None:
    rows = (np.random.default_rng(seed).random((users, items)) < 0.5).astype(int)
    start, places = pairs_of_lists(lists_of(rows), items)
    for user in range(users):
        own = places[start[user] : start[user + 1]]
        assert (np.diff(own) > 0).all()
        triangle = np.zeros(packed_size(items))
        triangle[own] = 1
        np.testing.assert_array_equal(unpack(triangle, items), np.outer(rows[user], rows[user]))


@given(SEEDS, st.booleans(), st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_truncation_is_the_nearest_matrix_of_its_rank(seed: int, symmetric: bool, rank: int) -> None:
    draw = np.random.default_rng(seed)
    left = draw.standard_normal((9, 4))
    right = None if symmetric else draw.standard_normal((9, 4))
    whole = left @ (left if right is None else right).T
    found = truncated(left, right, rank)
    u, s, vt = np.linalg.svd(whole)
    np.testing.assert_allclose(found.left @ found.right.T, (u[:, :rank] * s[:rank]) @ vt[:rank], atol=1e-8)
    assert found.lost == pytest.approx(np.sqrt((s[rank:] ** 2).sum() / (s**2).sum()), abs=1e-6)
    assert found.left.shape == (9, rank)


def test_a_factored_sum_is_the_sum_and_stays_thin() -> None:
    draw = np.random.default_rng(0)
    basis = draw.standard_normal((30, 5))  # all additions lie in five dimensions, so nothing is lost
    parts = [(basis @ draw.standard_normal((5, 3)), basis @ draw.standard_normal((5, 3))) for _ in range(40)]
    total = FactoredSum(30, 6, symmetric=False)
    for left, right in parts:
        total.add(left, right)
        assert sum(part.shape[1] for part in total._left) <= 3 * 6 + 3
    found = total.result()
    np.testing.assert_allclose(found.left @ found.right.T, sum(a @ b.T for a, b in parts), rtol=1e-8, atol=1e-8)


def test_columns_of_zeros_take_no_room_in_a_factored_sum() -> None:
    draw = np.random.default_rng(2)
    total = FactoredSum(30, 6, symmetric=True)
    assert not total.result().left.any()
    expected = np.zeros((30, 30))
    for _ in range(6):
        padded = np.pad(draw.standard_normal((30, 1)), ((0, 0), (0, 9)))  # rank one, sent in ten columns
        total.add(padded)
        expected += padded @ padded.T
    assert sum(part.shape[1] for part in total._left) == 6
    found = total.result()
    np.testing.assert_allclose(found.left @ found.left.T, expected, rtol=1e-8, atol=1e-8)
    nothing = FactoredSum(30, 6, symmetric=True)
    nothing.add(np.zeros((30, 4)))
    assert not nothing.result().left.any()


def test_top_factors_cut_what_noise_made_negative() -> None:
    draw = np.random.default_rng(1)
    vectors = np.linalg.qr(draw.standard_normal((8, 8)))[0]
    values = np.array([5.0, 3.0, 1.0, 0.5, 0.1, 0.0, -0.2, -2.0])
    similarity = (vectors * values) @ vectors.T
    two = top_factors(similarity, 2)
    np.testing.assert_allclose(two @ two.T, (vectors[:, :2] * values[:2]) @ vectors[:, :2].T, atol=1e-9)
    everything = top_factors(similarity, 10)
    assert everything.shape == (8, 10)
    np.testing.assert_allclose(everything @ everything.T, (vectors * values.clip(0)) @ vectors.T, atol=1e-7)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_closed_form_keeps_the_similarity_and_no_rotation_is_nearer(seed: int) -> None:
    draw = np.random.default_rng(seed)
    factors = draw.standard_normal((12, 4)).astype(np.float32)
    table = draw.standard_normal((12, 3)).astype(np.float32)
    found = alignment.closed_form(factors, table)
    own = factors[:, :3]
    np.testing.assert_allclose(found @ found.T, own @ own.T, atol=1e-4)
    distance = np.linalg.norm(found - table)
    for _ in range(20):
        rotation = np.linalg.qr(draw.standard_normal((3, 3)))[0]
        assert np.linalg.norm(own @ rotation - table) >= distance - 1e-4


def test_a_rotation_is_found_once_and_a_changed_table_or_similarity_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    factors, other = (draw.standard_normal((9, 4)).astype(np.float32) for _ in range(2))
    tables = [draw.standard_normal((9, width)).astype(np.float32) for width in (4, 3, 4)]
    plain = alignment.rotation
    found: list[int] = []

    def counted(own: Float32, table: Float32, device: str = "cpu") -> Float32:
        found.append(1)
        return plain(own, table, device)

    monkeypatch.setattr(alignment, "rotation", counted)
    monkeypatch.setattr(alignment, "RECENT", alignment.Recent(most=4 * (16 + 9)))  # room for the first two

    def aligned(towards: Float32, table: Float32) -> int:
        before = len(found)
        own = np.ascontiguousarray(towards[:, : table.shape[1]])
        np.testing.assert_array_equal(alignment.closed_form(towards, table), own @ plain(own, table))
        return len(found) - before

    assert [aligned(factors, table) for table in tables] == [1, 1, 1]
    assert [aligned(factors, table) for table in tables] == [0, 0, 1]
    tables[0][2, 1] += 1
    assert [aligned(factors, table) for table in tables] == [1, 0, 1]
    assert [aligned(other, table) for table in tables] == [1, 1, 1]
    assert aligned(factors, tables[1]) == 1


@pytest.mark.parametrize("spread", [0.0, 2.0, 9.0])
def test_the_polar_factor_is_that_of_the_singular_value_decomposition(spread: float) -> None:
    draw = np.random.default_rng(5)
    scale = np.logspace(0, -spread, 24)  # the last: so small that the slower way is taken
    factors, table = (draw.standard_normal((60, 24)) * scale for _ in range(2))
    product = (factors.T @ (factors + 0.3 * table)).astype(np.float32)
    found = alignment.polar(product)
    inner, _, outer = np.linalg.svd(product.astype(np.float64))
    np.testing.assert_allclose(factors @ found, factors @ (inner @ outer), atol=1e-5)
    np.testing.assert_allclose(found @ found.T, np.eye(24), atol=1e-5)


def test_many_clients_are_aligned_as_one_by_one_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(6)
    factors = draw.standard_normal((9, 4)).astype(np.float32)
    tables = [draw.standard_normal((9, width)).astype(np.float32) for width in (4, 3, 4, 2, 4)]
    alone = [alignment.closed_form(factors, table) for table in tables]
    for threads in ("1", "3"):
        monkeypatch.setenv("FEDREC_THREADS", threads)
        monkeypatch.setattr(alignment, "RECENT", alignment.Recent())
        for one, other in zip(alone, alignment.closed_forms(factors, tables), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize(("loss", "rate"), [("norm", 0.1), ("mse", 0.5)])
def test_gradient_steps_are_those_of_autograd(factored: bool, loss: Literal["norm", "mse"], rate: float) -> None:
    import torch

    draw = np.random.default_rng(2)
    table = draw.standard_normal((10, 3)).astype(np.float32)
    thin = draw.standard_normal((10, 4)).astype(np.float32)
    similarity = thin @ thin.T
    plain = torch.tensor(table, requires_grad=True)
    for _ in range(7):
        apart = plain @ plain.T - torch.from_numpy(similarity)
        (slope,) = torch.autograd.grad(torch.norm(apart) if loss == "norm" else apart.square().mean(), plain)
        plain = (plain - rate * slope).detach().requires_grad_()
    left, right = (thin, thin) if factored else (similarity, None)
    found = alignment.gradient_steps(table, left, right, 7, rate, loss)
    np.testing.assert_allclose(found, plain.detach().numpy(), atol=2e-4)


def test_the_closed_form_is_nearer_than_gradient_steps() -> None:
    draw = np.random.default_rng(3)
    tables = draw.standard_normal((5, 20, 4)).astype(np.float32)
    similarity = np.mean([t @ t.T for t in tables], axis=0).astype(np.float32)
    factors = top_factors(similarity.astype(np.float64), 4).astype(np.float32)

    def distance(table: np.ndarray) -> float:
        return float(np.linalg.norm(table @ table.T - similarity))

    stepped = alignment.gradient_steps(tables[0], similarity, None, 100, 0.1)
    assert distance(stepped) < distance(tables[0])
    assert distance(alignment.closed_form(factors, tables[0])) <= distance(stepped) + 1e-4


@given(SEEDS, st.integers(1, 3))
@settings(max_examples=10, deadline=None)
def test_subspace_iteration_from_any_split_finds_the_eigenpairs(seed: int, parts: int) -> None:
    draw = np.random.default_rng(seed)
    rows = (draw.random((40, 12)) < 0.4).astype(float)
    rows[rows.sum(1) == 0, 0] = 1
    weights = 1.0 / rows.sum(1)
    degrees = rows.sum(0)
    wanted = inverse_root(degrees)[:, None] * (rows.T @ (rows * weights[:, None]))
    values, vectors = np.linalg.eigh(wanted * inverse_root(degrees)[None, :])
    sent = draw.standard_normal((12, 4))
    for _ in range(200):
        pieces = np.array_split(np.arange(40), parts)
        returned = sum(rows[p].T @ subspace_iteration.apply_clients(rows[p], weights[p], sent) for p in pieces)
        pairs = subspace_iteration.step(sent, returned, degrees)
        sent = subspace_iteration.sent_of(pairs, degrees)
    np.testing.assert_allclose(pairs.values[:2], values[::-1][:2], atol=1e-3)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(4), atol=1e-9)
    assert pairs.values[0] == pytest.approx(1.0, abs=1e-9)  # a normalised graph's largest eigenvalue
    assert abs(pairs.vectors[:, 0] @ vectors[:, -1]) == pytest.approx(1.0, abs=1e-6)


def test_the_local_filter_is_gfcf_on_the_clients_graph() -> None:
    rows = np.array([[1, 1, 0, 0, 1], [1, 0, 0, 1, 0], [0, 1, 0, 1, 1]], float)
    own = local_filter(lists_of(rows.astype(int)), 5, k=2, alpha=0.3)
    degrees = rows.sum(0)
    root = np.divide(1, np.sqrt(degrees), out=np.zeros(5), where=degrees > 0)
    normal = rows / np.sqrt(rows.sum(1))[:, None] * root
    v = np.linalg.svd(normal)[2][:2].T
    wanted = normal.T @ normal + 0.3 * root[:, None] * (v @ v.T) * np.sqrt(degrees)[None, :]
    whole = np.zeros((5, 5))
    whole[own.items] = own.rows(5)
    np.testing.assert_allclose(whole, wanted, atol=1e-6)
    from scipy.sparse import csr_matrix

    np.testing.assert_allclose(own.scores(csr_matrix(rows)), rows @ wanted, atol=1e-6)

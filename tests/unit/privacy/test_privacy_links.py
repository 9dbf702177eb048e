"""Each link against values worked out by hand, and the properties it promises."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.messages import Rows
from fedrec.core.method import Keys
from fedrec.privacy.clip import Clip, norms_of
from fedrec.privacy.compressed import LowRank, Quantised, QuantisedRows, TopK
from fedrec.privacy.fields import densified, protected
from fedrec.privacy.lowrank import Truncate, right_vectors
from fedrec.privacy.noise import Noise, Source
from fedrec.privacy.quantise import Quantise
from fedrec.privacy.topk import KeepLargest, largest
from privacy_samples import Sample, make_block, make_rows, make_sample

KEYS = Keys(7, 1)
Norm = Literal["l2", "l1"]


def by_hand() -> tuple[Block, Sample]:
    """Two clients of one user: the first's update is (3, 0, 0), (4), (0); the second's is zero."""
    block = make_block([1, 1], n_items=2)
    items = Rows(np.array([0, 1, 1]), np.array([1], np.int32), np.array([[3, 0, 0]], np.float32), 2)
    network = np.zeros((2, 2, 2), np.float32)
    network[0, 1, 0] = -4
    zeros = np.zeros((2, 2), np.float32)
    return block, Sample(items, network, zeros, np.array([9, 9], np.float32), np.array([1, 2]))


# clip


@pytest.mark.parametrize(("norm", "length"), [("l2", 5.0), ("l1", 7.0)])
def test_clip_by_hand(norm: Norm, length: float) -> None:
    block, upload = by_hand()
    out = Clip(1.0, norm).apply(upload, block, KEYS)
    np.testing.assert_allclose(out.items.values, [[3 / length, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(out.network[0], [[0.0, 0.0], [-4 / length, 0.0]], rtol=1e-6)
    np.testing.assert_array_equal(out.network[1], np.zeros((2, 2)))  # zero stays zero
    np.testing.assert_array_equal(out.weight, [9, 9])


def test_clip_sends_zeros_for_a_diverged_client() -> None:
    block, upload = by_hand()
    upload.network[0, 0, 0] = np.nan
    upload.network[1] = 3.0
    out = Clip(1.0).apply(upload, block, KEYS)
    assert not out.items.values.any()
    assert not out.network[0].any()
    np.testing.assert_allclose(out.network[1], 0.5, rtol=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_clip_keeps_the_largest_numbers_in_the_ball(norm: Norm) -> None:
    """A factor below what 32 bits hold in full was rounded up: 6 in 100,000 beyond the bound, and more below it."""
    for bound in (1e-4, 1e-2, 0.5, 2.0):
        for size in (1e30, 1e36, 3e37, 1e38, 3e38):
            block, upload = by_hand()
            upload.network[...] = size
            out = Clip(bound, norm).apply(upload, block, KEYS)
            assert (norms_of(protected(out, block), norm, 2) <= bound).all(), (bound, size)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float32, (3, 2, 2), elements=st.floats(-1e6, 1e6, width=32)),
    st.floats(1e-3, 1e4),
    st.sampled_from(["l1", "l2"]),
)
def test_clip_never_lengthens_and_leaves_the_ball_alone(network: np.ndarray, bound: float, norm: Norm) -> None:
    block = make_block([1, 1, 1])
    upload = make_sample([1, 1, 1], np.random.default_rng(0))
    object.__setattr__(upload, "network", network)
    before = norms_of(protected(upload, block), norm, 3)
    out = Clip(bound, norm).apply(upload, block, KEYS)
    after = norms_of(protected(out, block), norm, 3)
    assert (after <= np.minimum(before, bound)).all()
    inside = before <= bound
    np.testing.assert_array_equal(out.network[inside], network[inside])
    assert (after[~inside] >= bound * (1 - 1e-5)).all()


# noise


def test_laplace_noise_is_the_keyed_stream_of_each_client() -> None:
    block, upload = by_hand()
    out = Noise(0.5).apply(upload, block, KEYS)
    expected = 0.5 * keyed.laplace(KEYS.clients(block, "noise items"), 2 * 3).reshape(2, 2, 3)
    expected[0, 1, 0] += 3
    np.testing.assert_allclose(out.items.dense(), expected, rtol=1e-5, atol=1e-6)


def test_gaussian_noise_is_box_muller_on_the_keyed_stream() -> None:
    block, upload = by_hand()
    out = Noise(0.5, "gaussian").apply(upload, block, KEYS)
    u = keyed.uniform(KEYS.clients(block, "noise network"), 4)  # a row of 4 numbers for each client
    first, second = np.sqrt(-2 * np.log(1 - u[:, 0])), np.sqrt(-2 * np.log(1 - u[:, 2]))
    one, two = 2 * np.pi * u[:, 1], 2 * np.pi * u[:, 3]
    drawn = np.stack([first * np.cos(one), first * np.sin(one), second * np.cos(two), second * np.sin(two)], axis=1)
    np.testing.assert_allclose(out.network, upload.network + 0.5 * drawn.reshape(2, 2, 2), rtol=1e-5, atol=1e-6)


def test_noise_covers_rows_that_did_not_change() -> None:
    block, upload = by_hand()
    out = Noise(0.5).apply(upload, block, KEYS)
    np.testing.assert_array_equal(out.items.ids, [0, 1, 0, 1])
    np.testing.assert_array_equal(out.items.start, [0, 2, 4])
    assert (out.items.values != 0).all()
    assert (out.people != 0).all()


@pytest.mark.parametrize("source", ["keyed", "system"])
@pytest.mark.parametrize(("kind", "deviation", "absolute"), [("laplace", 2**0.5, 1.0), ("gaussian", 1.0, 0.7979)])
def test_noise_has_its_scale(
    source: Source, kind: Literal["laplace", "gaussian"], deviation: float, absolute: float
) -> None:
    n_items = 4000
    block = make_block([1, 1], n_items)
    empty = Rows(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros((0, 10), np.float32), n_items)
    upload = Sample(
        empty, np.zeros((2, 1, 1), np.float32), np.zeros((2, 1), np.float32), np.ones(2, np.float32), np.ones(2, int)
    )
    noise = Noise(0.2, kind, source).apply(upload, block, KEYS).items.values / 0.2
    assert noise.shape == (8000, 10)
    # 80,000 numbers: standard error of the mean is below 0.005, that of the absolute mean below 0.004
    assert abs(noise.mean()) < 0.025
    assert abs(np.abs(noise).mean() - absolute) < 0.02
    assert abs(noise.std() - deviation) < 0.03
    halves = noise.reshape(2, -1)
    assert abs(np.corrcoef(halves)[0, 1]) < 0.03  # clients draw apart
    assert np.abs(np.corrcoef(noise.T) - np.eye(10)).max() < 0.06  # and so do columns


def test_system_noise_does_not_repeat_and_keyed_noise_does() -> None:
    block, upload = by_hand()

    def drawn(source: Source) -> NDArray[np.float32]:
        return Noise(1.0, "laplace", source).apply(upload, block, KEYS).network

    np.testing.assert_array_equal(drawn("keyed"), drawn("keyed"))
    assert (drawn("system") != drawn("system")).any()


def test_another_round_has_other_noise() -> None:
    block, upload = by_hand()
    first, second = (Noise(1.0).apply(upload, block, Keys(7, number)).network for number in (1, 2))
    assert (first != second).all()


# top-k


def test_topk_by_hand_over_all_fields_together() -> None:
    block, upload = by_hand()
    upload.items.values[0] = [3, -1, 2]
    # 6 + 4 + 2 coordinates; a quarter is 3: -4 of the network, 3 and 2 of item 1
    out = KeepLargest(0.25).apply(upload, block, KEYS)
    assert isinstance(out.items, TopK)
    np.testing.assert_array_equal(out.items.start, [0, 2, 2])
    np.testing.assert_array_equal(out.items.indices, [3, 5])
    np.testing.assert_array_equal(out.items.values, [3, 2])
    network: Any = out.network
    assert isinstance(network, TopK)
    np.testing.assert_array_equal(network.indices, [2])
    np.testing.assert_array_equal(network.values, [-4])
    back = KeepLargest(0.25).restore(out)
    np.testing.assert_array_equal(back.items.dense(), [[[0, 0, 0], [3, 0, 2]], np.zeros((2, 3))])
    np.testing.assert_array_equal(back.network, upload.network)
    assert not back.people.any()


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, st.integers(1, 30), elements=st.sampled_from([0, 1, 2, 3.5])), st.integers(1, 30))
def test_largest_agrees_with_sorting(magnitude: np.ndarray, k: int) -> None:
    order = np.argsort(-magnitude, kind="stable")[:k]
    expected = np.sort(order[magnitude[order] > 0])
    np.testing.assert_array_equal(largest(magnitude, k), expected)


def test_topk_of_everything_is_lossless(block: Block, sample: Sample) -> None:
    link = KeepLargest(1.0)
    back = link.restore(link.apply(sample, block, KEYS))
    np.testing.assert_array_equal(back.items.dense(), sample.items.dense())
    np.testing.assert_array_equal(back.people, sample.people)
    np.testing.assert_array_equal(back.network, sample.network)


# low rank


def test_low_rank_is_the_best_of_its_rank() -> None:
    rng = np.random.default_rng(0)
    block = make_block([1, 1], n_items=30)
    rows = make_rows([20, 4], 30, 6, rng)
    small = np.zeros((2, 1, 1), np.float32)
    upload = Sample(rows, small, small[:, 0], np.ones(2, np.float32), np.ones(2, int))
    link = Truncate(0.5)  # rank 3 of 6
    out = link.apply(upload, block, KEYS)
    assert isinstance(out.items, LowRank)
    assert out.items.right.shape == (2, 3, 6)
    back = link.restore(out).items.dense()
    for client, table in enumerate(rows.dense()):
        singular = np.linalg.svd(table, compute_uv=False)
        error = np.linalg.norm(table - back[client])
        np.testing.assert_allclose(error, np.sqrt((singular[3:] ** 2).sum()), rtol=1e-4, atol=1e-5)
        assert np.linalg.matrix_rank(back[client], tol=1e-4) <= 3


def test_low_rank_keeps_a_table_that_has_the_rank() -> None:
    rng = np.random.default_rng(1)
    tables = (rng.normal(size=(2, 12, 2)) @ rng.normal(size=(2, 2, 5))).astype(np.float32)
    block = make_block([1, 1])
    empty = Rows(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros((0, 3), np.float32), 7)
    upload = Sample(empty, tables, np.zeros((2, 1), np.float32), np.ones(2, np.float32), np.ones(2, int))
    link = Truncate(0.4)
    back = link.restore(link.apply(upload, block, KEYS))
    np.testing.assert_allclose(back.network, tables, atol=1e-5)
    assert not back.items.dense().any()  # nobody changed a row


def test_right_vectors_are_padded_where_rows_are_few() -> None:
    vectors = right_vectors(np.array([[3.0, 4.0, 0.0]], np.float32), 2)
    np.testing.assert_allclose(np.abs(vectors), [[0.6, 0.8, 0.0], [0.0, 0.0, 0.0]], atol=1e-6)


# quantise


@pytest.mark.parametrize("form", ["dense", "rows"])
def test_quantised_error_is_below_one_step(form: Literal["dense", "rows"], block: Block, sample: Sample) -> None:
    link = Quantise(form)
    out = link.apply(sample, block, KEYS)
    assert isinstance(out.items, Quantised if form == "dense" else QuantisedRows)
    assert out.items.codes.dtype == np.int8
    back = link.restore(out)
    plain = sample.items.dense()
    step = np.abs(plain).max(axis=(1, 2)) / 127
    error = np.abs(back.items.dense() - plain)
    assert (error <= step[:, None, None] * (1 + 1e-5)).all()
    assert error.any()
    people_step = np.abs(sample.people).max(axis=1) / 127
    assert (np.abs(back.people - sample.people) <= people_step[:, None] * (1 + 1e-5)).all()


def test_quantiser_is_unbiased() -> None:
    block, upload = by_hand()
    upload.network[0] = [[1.0, 0.3], [-0.123, 0.0]]
    link, rounds = Quantise(), 3000
    total = sum(link.restore(link.apply(upload, block, Keys(1, r))).network[0] for r in range(rounds))
    # the deviation of one rounding is at most half a step
    tolerance = 5 * 0.5 / 127 / np.sqrt(rounds)
    np.testing.assert_allclose(total / rounds, upload.network[0], atol=tolerance)


def test_quantiser_keeps_zero_and_the_extremes() -> None:
    block, upload = by_hand()
    back = Quantise().restore(Quantise().apply(upload, block, KEYS))
    np.testing.assert_allclose(back.network, upload.network, rtol=1e-6)
    np.testing.assert_allclose(back.items.dense(), upload.items.dense(), rtol=1e-6)


def test_densified_lists_every_item_and_copies() -> None:
    rows = make_rows([2, 0, 3], 5, 2, np.random.default_rng(0))
    whole = densified(rows)
    np.testing.assert_array_equal(whole.dense(), rows.dense())
    np.testing.assert_array_equal(whole.values.reshape(3, 5, 2), rows.dense())
    assert not np.shares_memory(densified(whole).values, whole.values)

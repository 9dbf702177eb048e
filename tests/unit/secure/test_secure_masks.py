"""Masks are uniform, differ wherever anything differs, and come from a space too large to search."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedrec.secure.failures import Refusal
from fedrec.secure.masks import apply_masks, derive, keystream, mask, pair_seed, seal, self_seed, sign_of, unseal
from fedrec.secure.randomness import Stream, joined
from fedrec.secure.ring import Bits

DIGEST = bytes(range(32))
Generator = Callable[[bytes, int], bytes]


def key(name: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(Stream.named(0, name).bytes(32))


def folded(bits: int) -> Generator:
    """A generator as weak as one that folds its seed: only so many bits of it reach the stream."""

    def generate(seed: bytes, count: int) -> bytes:
        few = int.from_bytes(seed, "little") % 2**bits
        return bytes(keystream(few.to_bytes(32, "little"), count))

    return generate


def strong(seed: bytes, count: int) -> bytes:
    return bytes(keystream(seed, count))


def seeds(draws: int) -> list[bytes]:
    """The seeds of so many self-masks, each of its own secret."""
    secrets = Stream.named(0, "repeats").bytes(16 * draws)
    return [self_seed(secrets[16 * place : 16 * place + 16], DIGEST, 0) for place in range(draws)]


def repeats(generate: Generator, drawn: list[bytes]) -> int:
    """How many masks have a first block that another has.

    Among N masks of a generator with 2^b different ones about N^2 / 2^(b+1) pairs agree (the birthday bound).
    """
    return len(drawn) - len({generate(seed, 16) for seed in drawn})


@pytest.mark.skipif("FEDREC_ALL_METHODS" not in os.environ, reason="half a million masks; 24 bits below say the same")
def test_masks_do_not_repeat_as_those_of_a_32_bit_seed_do() -> None:
    """8 pairs are expected of 2^18 masks with 32-bit seeds (none with probability 0.0003), none of ours."""
    drawn = seeds(2**18)
    assert repeats(strong, drawn) == 0
    assert repeats(folded(32), drawn) > 0


def test_masks_do_not_repeat_as_those_of_a_24_bit_seed_do() -> None:
    """The same in little: 32 pairs are expected of 2^15 masks with 24-bit seeds."""
    drawn = seeds(2**15)
    assert repeats(strong, drawn) == 0
    assert repeats(folded(24), drawn) > 0


@pytest.mark.parametrize(("generate", "found"), [(folded(12), True), (strong, False)])
def test_a_folded_seed_is_found_by_trying(generate: Generator, found: bool) -> None:
    """Whoever knows one number of a masked vector tries all seeds: of 12 bits here, of 32 bits in minutes."""
    secret = np.arange(8, dtype=np.uint32)
    masked = secret + np.frombuffer(generate(derive(b"x", DIGEST, "self", 1), 32), "<u4")
    opened = [
        masked - guess
        for few in range(2**12)
        if (guess := np.frombuffer(folded(12)(few.to_bytes(32, "little"), 32), "<u4"))[0] == masked[0]
    ]
    assert any(np.array_equal(vector, secret) for vector in opened) is found


@pytest.mark.parametrize("bits", [32, 64])
def test_masks_are_uniform(bits: Bits) -> None:
    words, checks = mask(self_seed(bytes(16), DIGEST, 3), 2**18, bits, 3)
    assert len(checks) == 3
    for shift in range(0, bits, 8):
        counts = np.bincount((words >> shift).astype(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-6
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, bits).mean(axis=0)
    assert np.abs(ones - 0.5).max() < 6 * 0.5 / np.sqrt(len(words))
    pairs = np.histogram2d((words[:-1] >> (bits - 4)).astype(int), (words[1:] >> (bits - 4)).astype(int), bins=16)[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-6


def test_uniformity_is_a_test_that_can_fail() -> None:
    """A vector that is not masked, and a mask of 31 of 32 bits, are found out by the same statistics."""
    words, _ = mask(self_seed(bytes(16), DIGEST, 3), 2**18, 32, 3)
    for broken in (words >> 1, np.arange(2**18, dtype=np.uint32)):
        counts = np.bincount((broken >> 24).astype(np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue < 1e-6


def test_both_sides_of_a_pair_have_the_same_mask_and_it_vanishes() -> None:
    left, right = key("left"), key("right")
    public = [one.public_key().public_bytes_raw() for one in (left, right)]
    both = pair_seed(left, public[1], DIGEST, 4, 9), pair_seed(right, public[0], DIGEST, 9, 4)
    assert both[0] == both[1]
    words, checks = np.zeros(50, np.uint32), np.zeros(3, np.uint64)
    apply_masks(words, checks, [(sign_of(4, 9), both[0])], 32)
    assert words.any()
    apply_masks(words, checks, [(sign_of(9, 4), both[1])], 32)
    assert not words.any()
    assert not checks.any()


def test_seeds_differ_in_plan_purpose_and_place() -> None:
    other = bytes(32)
    found = {
        derive(secret, digest, purpose, *places)
        for secret in (b"a" * 16, b"b" * 16)
        for digest in (DIGEST, other)
        for purpose in ("self", "pair", "seal", "mask key")
        for places in ((1,), (2,), (1, 2), (2, 1))
    }
    assert len(found) == 2 * 2 * 4 * 4


@given(st.binary(max_size=64), st.data())
@settings(max_examples=50)
def test_what_is_sealed_opens_in_its_place_only(content: bytes, data: st.DataObject) -> None:
    channel = b"c" * 32
    sealed = seal(channel, DIGEST, 1, 2, content)
    assert unseal(channel, DIGEST, 1, 2, sealed) == content
    position = data.draw(st.integers(0, len(sealed) - 1))
    altered = bytes(b ^ (i == position) for i, b in enumerate(sealed))
    elsewhere = [(DIGEST, 2, 1, sealed), (bytes(32), 1, 2, sealed), (DIGEST, 1, 3, sealed), (DIGEST, 1, 2, altered)]
    for digest, sender, receiver, text in elsewhere:
        with pytest.raises(Refusal):
            unseal(channel, digest, sender, receiver, text)


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_joined_parts_can_be_told_apart(left: list[bytes], right: list[bytes]) -> None:
    assert (joined(*left) == joined(*right)) == (left == right)


def test_system_streams_differ_and_named_ones_repeat() -> None:
    assert Stream.system().bytes(32) != Stream.system().bytes(32)
    assert Stream.named(1, "a").bytes(32) == Stream.named(1, "a").bytes(32) != Stream.named(1, "b").bytes(32)


@given(st.integers(1, 2**40), st.integers(1, 200))
def test_numbers_below_a_limit(limit: int, count: int) -> None:
    drawn = Stream.named(0, "below").below(limit, count)
    assert len(drawn) == count
    assert drawn.min() >= 0
    assert drawn.max() < limit

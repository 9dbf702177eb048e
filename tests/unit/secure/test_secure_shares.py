"""Shares restore a secret from the threshold on, and wrong ones are found out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrec.secure.failures import Refusal, TooFew
from fedrec.secure.shares import combine, combine_all, fingerprint, genuine, split


@given(st.data(), st.sampled_from([16, 32]))
@settings(max_examples=30)
def test_any_t_of_n_restore(data: st.DataObject, size: int) -> None:
    n = data.draw(st.integers(2, 9))
    t = data.draw(st.integers(2, n))
    secret = data.draw(st.binary(min_size=size, max_size=size))
    shares = dict(enumerate(split(secret, t, n), start=1))
    chosen = data.draw(st.lists(st.sampled_from(sorted(shares)), min_size=t, max_size=n, unique=True))
    assert combine({number: shares[number] for number in chosen}, t) == secret
    with pytest.raises(TooFew):
        combine({number: shares[number] for number in chosen[: t - 1]}, t)


def test_t_minus_1_shares_fit_every_secret() -> None:
    """With one share made up the others restore something for any value of it: they tell nothing."""
    shares = dict(enumerate(split(b"s" * 16, 3, 3), start=1))
    found = {combine({1: shares[1], 2: shares[2], 3: bytes([value]) * 16}, 3) for value in range(50)}
    assert len(found) == 50


def test_wrong_shares_are_left_out() -> None:
    digest = bytes(32)
    parts = split(b"s" * 16, 3, 5)
    marks = [fingerprint(part, digest, "seed", 4, number) for number, part in enumerate(parts, start=1)]
    given_ = {1: parts[0], 2: parts[2], 3: parts[2], 4: bytes(16), 5: parts[4], 6: parts[0]}
    right = genuine(given_, marks, digest, "seed", 4)
    assert sorted(right) == [1, 3, 5]
    assert combine(right, 3) == b"s" * 16
    assert not genuine(given_, marks, digest, "key", 4)
    assert not genuine(given_, marks, digest, "seed", 3)
    with pytest.raises(Refusal, match="differ in length"):
        combine({1: parts[0], 2: parts[1], 3: b"short"}, 3)


@pytest.mark.parametrize(("secret", "t", "n"), [(b"", 2, 3), (b"x" * 15, 2, 3), (b"x" * 16, 1, 3), (b"x" * 16, 4, 3)])
def test_what_cannot_be_shared(secret: bytes, t: int, n: int) -> None:
    with pytest.raises(ValueError):
        split(secret, t, n)


def test_processes_restore_the_same() -> None:
    secrets = [bytes([number]) * 16 for number in range(9)]
    jobs = [(dict(enumerate(split(secret, 2, 3), start=1)), 2) for secret in secrets]
    assert combine_all(jobs, workers=2) == combine_all(jobs) == secrets

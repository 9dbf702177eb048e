"""Secrets in shares: any t of n restore them, t - 1 tell nothing (Shamir over GF(2^128), from ``pycryptodome``).

Shamir's scheme alone cannot tell a wrong share from a right one: it restores something else. So the owner
publishes a fingerprint of each share, and shares are checked before they are put together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from Crypto.Protocol.SecretSharing import Shamir

from fedrec.secure.failures import Refusal, TooFew
from fedrec.secure.randomness import joined

BLOCK = 16
FINGERPRINT_BYTES = 16


def split(secret: bytes, threshold: int, shares: int) -> list[bytes]:
    """Shares ``1 .. shares`` of a secret of 16 bytes, or of several times 16 (each block shared by itself)."""
    if not secret or len(secret) % BLOCK:
        raise ValueError(f"a secret of {len(secret)} bytes is not made of blocks of {BLOCK}")
    if not 2 <= threshold <= shares:
        raise ValueError(f"a threshold of {threshold} does not fit {shares} shares")
    blocks = [secret[first : first + BLOCK] for first in range(0, len(secret), BLOCK)]
    parts = [[part for _, part in Shamir.split(threshold, shares, block, False)] for block in blocks]
    return [b"".join(column) for column in zip(*parts, strict=True)]


def combine(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The secret out of shares by their number (from 1); with fewer than the threshold there is none."""
    if len(shares) < threshold:
        raise TooFew(f"{len(shares)} shares of a secret, {threshold} are needed")
    chosen = sorted(shares)[:threshold]
    size = len(shares[chosen[0]])
    if size % BLOCK or any(len(shares[number]) != size for number in chosen):
        raise Refusal("shares of one secret differ in length")
    return b"".join(
        Shamir.combine([(number, shares[number][first : first + BLOCK]) for number in chosen], False)
        for first in range(0, size, BLOCK)
    )


def combine_all(jobs: Sequence[tuple[Mapping[int, bytes], int]], workers: int = 1) -> list[bytes]:
    """:func:`combine` for many secrets, in several processes where that pays (the arithmetic is plain Python)."""
    if workers == 1 or len(jobs) < 4 * workers:
        return [combine(shares, threshold) for shares, threshold in jobs]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(combine, *zip(*jobs, strict=True), chunksize=4))


def fingerprint(share: bytes, digest: bytes, purpose: str, owner: int, number: int) -> bytes:
    """A share's mark, bound to plan, owner and number. A share has 128 random bits: its mark does not give it away."""
    text = joined(b"share", digest, purpose.encode(), owner.to_bytes(4, "big"), number.to_bytes(4, "big"), share)
    return hashlib.sha256(text).digest()[:FINGERPRINT_BYTES]


def genuine(
    shares: Mapping[int, bytes], marks: Sequence[bytes], digest: bytes, purpose: str, owner: int
) -> dict[int, bytes]:
    """The shares that fit the owner's fingerprints; wrong ones are left out."""
    return {
        number: share
        for number, share in shares.items()
        if 1 <= number <= len(marks) and fingerprint(share, digest, purpose, owner, number) == marks[number - 1]
    }

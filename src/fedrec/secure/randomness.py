"""Random bits: an AES-256-CTR keystream under a key from the operating system, or a named key for simulation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

Entropy = Callable[[int], bytes]
"""Gives so many secret random bytes; ``os.urandom`` wherever there is a real server."""

KEY_BYTES = 32


def joined(*parts: bytes) -> bytes:
    """Parts as one byte string from which they can be told apart, so that no two lists of parts collide."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


class Stream:
    """A keystream read as numbers. Two streams of one key are equal; different keys are unrelated."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a stream needs a key of {KEY_BYTES} bytes, not {len(key)}")
        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    @staticmethod
    def system() -> Stream:
        """From the operating system's randomness: secret, different every time."""
        return Stream(os.urandom(KEY_BYTES))

    @staticmethod
    def named(seed: int, *parts: str | int) -> Stream:
        """For simulation: repeatable, and known to whoever knows the seed."""
        text = joined(b"fedrec simulated randomness", str(seed).encode(), *(str(part).encode() for part in parts))
        return Stream(hashlib.sha256(text).digest())

    def bytes(self, count: int) -> bytes:
        """The next bytes; an :data:`Entropy` for simulated participants."""
        return self._cipher.update(bytes(count))

    def words(self, count: int) -> U64:
        """The next 64-bit words, each uniform."""
        return np.frombuffer(self.bytes(8 * count), dtype="<u8")

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Numbers in [0, 1), 53 bits each."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, limit: int, count: int) -> NDArray[np.int64]:
        """Whole numbers in ``0 .. limit - 1``, exactly uniform (words beyond the last multiple are thrown away)."""
        if not 1 <= limit < 2**63:
            raise ValueError(f"limit {limit} is not between 1 and 2^63")
        last = 2**64 - 2**64 % limit
        found = np.empty(0, np.uint64)
        while len(found) < count:
            words = self.words(count - len(found))
            found = np.concatenate([found, words[words <= np.uint64(last - 1)]])
        return (found % np.uint64(limit)).astype(np.int64)

"""Randomness keyed by (seed, round, client, purpose): a value depends on its key and index alone.

So a result cannot depend on the size of a block, the order of clients, the number of threads or the
runtime. The generator is SplitMix64 used as a counter: value ``i`` of stream ``key`` is
``mix(key + (i + 1) * GOLDEN)``. The same few operations exist three times, tested to be equal:
here for numpy, in ``learn/kernel/random.py`` for numba, in ``learn/torch/random.py`` for torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def key_of(name: str | int) -> int:
    """A stable 64-bit key of a name, the same on every machine (Python's own hash is not).

    >>> key_of("user 7") == key_of("user 7") != key_of("user 8")
    True
    """
    return int.from_bytes(hashlib.blake2b(str(name).encode(), digest_size=8).digest(), "little")


def keys_of(names: Iterable[object]) -> U64:
    """:func:`key_of` for many names."""
    return np.fromiter((key_of(str(name)) for name in names), dtype=np.uint64)


def mix(value: U64) -> U64:
    """SplitMix64's finaliser, elementwise."""
    value = value ^ (value >> np.uint64(30))
    value = value * np.uint64(MIX_1)
    value = value ^ (value >> np.uint64(27))
    value = value * np.uint64(MIX_2)
    return value ^ (value >> np.uint64(31))


def mix_int(value: int) -> int:
    """:func:`mix` for one Python integer."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * MIX_2) & _MASK
    return value ^ (value >> 31)


def combine(left: int, right: int) -> int:
    """One key out of two; not symmetric."""
    return mix_int((left * 3 + GOLDEN) ^ mix_int(right + GOLDEN))


def stream(seed: int, *parts: str | int) -> int:
    """The key of a stream: a seed and what it is for.

    >>> stream(0, "split") == stream(0, "split") != stream(1, "split")
    True
    """
    key = mix_int(seed + GOLDEN)
    for part in parts:
        key = combine(key, part if isinstance(part, int) else key_of(part))
    return key


def streams(base: int, keys: U64) -> U64:
    """One stream per entry of ``keys`` (clients, users): ``combine(base, key)`` elementwise."""
    left = np.uint64((base * 3 + GOLDEN) & _MASK)
    return mix(left ^ mix(keys + np.uint64(GOLDEN)))


def words(keys: U64, count: int, first: int = 0) -> U64:
    """The values ``first .. first + count`` of each stream: ``[len(keys), count]`` random words."""
    index = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return mix(np.atleast_1d(keys)[:, None] + index[None, :])


def uniform(keys: U64, count: int, first: int = 0) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1): ``[len(keys), count]``, 53 bits each."""
    return (words(keys, count, first) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(keys: U64, count: int) -> NDArray[np.float64]:
    """Standard normal numbers ``[len(keys), count]`` (Box-Muller, two words each)."""
    pair = uniform(keys, 2 * count)
    radius = np.sqrt(-2.0 * np.log1p(-pair[:, 0::2]))
    return np.asarray(radius * np.cos(2.0 * np.pi * pair[:, 1::2]))


def laplace(keys: U64, count: int) -> NDArray[np.float64]:
    """Laplace(0, 1) numbers ``[len(keys), count]`` by the inverse distribution function."""
    centred = uniform(keys, count) - 0.5
    inside = np.maximum(1.0 - 2.0 * np.abs(centred), 2.0**-53)
    return np.asarray(-np.sign(centred) * np.log(inside))


def numbers(seed: int, *parts: str | int) -> np.random.Generator:
    """A numpy generator of its own for one purpose, for server-side draws of any shape."""
    return np.random.Generator(np.random.Philox(key=stream(seed, *parts)))


def sample(key: int, population: int, size: int) -> NDArray[np.int64]:
    """``size`` distinct indices below ``population``, ascending: the smallest of keyed words."""
    drawn = words(np.array([key], dtype=np.uint64), population)[0]
    chosen = np.argpartition(drawn, size - 1)[:size] if size < population else np.arange(population)
    return np.sort(chosen).astype(np.int64)

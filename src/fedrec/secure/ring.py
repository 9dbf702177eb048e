"""Fixed point: real numbers as integers modulo 2^32 or 2^64, with a step so fine as can be without overflow.

Let B be the largest magnitude of one number of one summand, n the number of summands, b the bits of the ring,
sigma the deviation of the noise that the whole sum carries, and 2^-e the step. A number x is sent as
``round(x 2^e)``, whose magnitude is at most ``B 2^e + 1`` under either rounding. Noise that is sub-Gaussian with
sigma (sums of discrete Gaussians are) stays within 16 sigma but for a probability of 2 exp(-128) < 2^-183 a number;
if everybody is there and the noise has twice its stated variance (:mod:`fedrec.secure.noise`), of 2 exp(-64) < 2^-91.
So the magnitude of the sum, as a whole number, is at most

    n (B 2^e + 1) + 16 sigma 2^e  <=  2^(b-1) - 1,

and e is the largest whole number for which that holds, and sigma is at most 2^38 steps. A whole number of magnitude at
most 2^(b-1) - 1 is determined by its residue modulo 2^b: without noise overflow cannot happen, with noise it is beyond
expectation (and, modulo 2^32, caught by :mod:`fedrec.secure.check`).

The decoded sum differs from the true one by at most n/2 steps (nearest rounding) or n steps (stochastic).
Steps are powers of two, so scaling a number is exact and the only error is that of rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput

Bits = Literal[32, 64]
Words = NDArray[np.uint32] | NDArray[np.uint64]
Integers = NDArray[np.int64]

FINEST_NOISE = 38
"""Noise has a deviation of at most 2 to this many steps."""
NOISE_REACH = 16
"""Deviations of the noise for which there is room."""


def word_type(bits: Bits) -> np.dtype[Any]:
    """The unsigned type whose arithmetic is the ring's, little endian as on the wire."""
    return np.dtype("<u4") if bits == 32 else np.dtype("<u8")


def wrap(values: Integers, bits: Bits) -> Words:
    """Whole numbers as residues."""
    residues: Words = values.astype(np.uint64).astype(word_type(bits))
    return residues


def centre(words: Words, bits: Bits) -> Integers:
    """The whole number of least magnitude with this residue."""
    return words.astype("<u4").view("<i4").astype(np.int64) if bits == 32 else words.astype("<u8").view("<i8")


@dataclass(frozen=True)
class Scale:
    """The fixed-point scale of numbers whose magnitude is at most ``bound``, ``summands`` of which are added up."""

    bound: float
    """B: for an update clipped to L2 or L1 norm S no number is larger than S."""
    summands: int
    """n: the most contributions that one sum can have."""
    bits: Bits = 32
    noise: float = 0.0
    """sigma: deviation of the noise in the whole sum, in the numbers' own unit."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.bound) and self.bound > 0):
            raise BadInput(f"a secure sum needs a bound of its numbers above 0, not {self.bound}; set clip")
        if self.summands < 1:
            raise BadInput(f"a secure sum needs at least 1 summand, not {self.summands}")
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise BadInput(f"the noise of a sum is a deviation of 0 or more, not {self.noise}")
        if self.bits not in (32, 64):
            raise BadInput(f"numbers are summed modulo 2^32 or 2^64, not 2^{self.bits}")
        if self.summands * 2 > self.largest:
            raise BadInput(f"{self.summands:,} summands do not fit into {self.bits} bits; take 64 or smaller cohorts")

    @property
    def largest(self) -> int:
        """The largest magnitude that a residue can stand for."""
        return (1 << (self.bits - 1)) - 1

    @cached_property
    def exponent(self) -> int:
        """e, found exactly (in whole numbers and fractions of powers of two)."""
        reach = self.summands * Fraction(self.bound) + NOISE_REACH * Fraction(self.noise)
        room = self.largest - self.summands
        ratio = Fraction(room) / reach
        guess = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        exponent = next(e for e in (guess + 1, guess, guess - 1) if Fraction(2) ** e <= ratio)
        if self.noise > 0:  # a finer step would tell nothing that the noise does not hide
            exponent = min(exponent, FINEST_NOISE - math.frexp(self.noise)[1])
        if not -1000 < exponent < 1000:
            raise BadInput(f"a bound of {self.bound} is beyond what fixed point can hold")
        return exponent

    @property
    def step(self) -> float:
        """The value of 1 in the ring."""
        return math.ldexp(1.0, -self.exponent)

    def error(self, summands: int, stochastic: bool = False) -> float:
        """How far a decoded sum can be from the sum of the numbers."""
        return summands * self.step * (1.0 if stochastic else 0.5)

    def encode(self, values: NDArray[np.floating], uniform: NDArray[np.float64] | None = None) -> Integers:
        """Whole multiples of the step. With ``uniform`` numbers in [0, 1) rounding is stochastic, its mean exact."""
        numbers = np.asarray(values, dtype=np.float64)
        largest = float(np.max(np.abs(numbers), initial=0.0))
        if not largest <= self.bound:  # NaN included
            raise BadInput(f"a number of magnitude {largest:g} is beyond the bound {self.bound:g} of the secure sum")
        scaled = np.ldexp(numbers, self.exponent)
        if uniform is None:
            return np.rint(scaled).astype(np.int64)
        below = np.floor(scaled)
        return below.astype(np.int64) + (uniform < scaled - below)

    def decode(self, total: Integers) -> NDArray[np.float64]:
        """The sum in the numbers' own unit."""
        return np.ldexp(total.astype(np.float64), -self.exponent)

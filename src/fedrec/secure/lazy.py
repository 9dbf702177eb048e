"""Coins that show heads with probability exp(-gamma), exactly: decided in floats, in full where floats do not decide.

A coin is a uniform number U of which 64 bits are drawn. ``U < exp(-gamma)`` is decided by them unless they agree with
exp(-gamma) to within 2^-40 of it, far more than float arithmetic errs. In the one case among 2^40 where they do,
further bits are drawn and compared with exp(-gamma) to as many digits as it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fedrec.secure.randomness import U64, Stream

MARGIN = 2.0**-40
LARGEST = 45.0
"""exp(-45) < 2^-64: beyond it only a word of zeros leaves anything to decide."""

Exact = Callable[[int], Fraction]
"""gamma of the coin at an index, as a fraction."""


def heads(
    words: U64, gamma: NDArray[np.float64], exact: Exact, more: Stream, margin: float = MARGIN
) -> NDArray[np.bool_]:
    """Whether each coin shows heads. ``gamma`` must be right to within 2^-41 wherever it is at most 45."""
    chance = np.exp(-np.minimum(gamma, LARGEST))
    drawn = words.astype(np.float64) * 2.0**-64
    below = drawn + 2.0**-64 <= chance * (1 - margin)
    below &= gamma <= LARGEST
    open_ = ~below & (drawn < chance * (1 + margin) + 2.0**-64)
    open_ &= (gamma <= LARGEST) | (words == 0)
    for index in np.flatnonzero(open_):
        below[index] = Uniform(int(words[index]), more).below(exact(int(index)))
    return below


class Uniform:
    """A uniform number in [0, 1) that starts with the bits of ``word``; further bits are drawn when asked for."""

    def __init__(self, word: int, more: Stream) -> None:
        self._value, self._bits, self._more = word, 64, more

    def below(self, gamma: Fraction) -> bool:
        """``U < exp(-gamma)``; asking again for another gamma asks the same number."""
        digits = 40
        while True:
            context = Context(prec=digits + 10)
            power = context.divide(Decimal(-gamma.numerator), Decimal(gamma.denominator))
            chance, error = Fraction(context.exp(power)), Fraction(1, 10**digits) * (1 + gamma)
            if Fraction(self._value + 1, 2**self._bits) <= chance - error:
                return True
            if Fraction(self._value, 2**self._bits) >= chance + error:
                return False
            self._value = self._value << 64 | int.from_bytes(self._more.bytes(8), "little")
            self._bits, digits = self._bits + 64, digits + 20

"""What shows that a sum is a sum: the number of summands and two checksums travel with every vector, masked too.

A participant appends to its whole numbers x_1 .. x_d the words (1, sum_i r_i x_i, sum_i r'_i x_i) modulo 2^64, with r
and r' uniform, drawn from the plan's digest. The words of the sum must be (number of survivors, sum_i r_i S_i,
sum_i r'_i S_i): all three are functions of the sum S and of the survivors' number, so they tell the server nothing
that the sum does not.

A mask that is missing, used twice or wrong, or a vector altered on its way, adds a difference D != 0 to the sum. If
2^v is the largest power of two that divides all of D, it passes both checksums with probability 2^(-2 (64 - v)):
2^-128 for a wrong mask (v = 0 but for 2^-d), at most 2^-66 for anything modulo 2^32, an overflow included
(|D| < 2^32, and D = 2^32 j gives 2^-64). Modulo 2^64 the highest bits are checked less well (v = 63: 1/4).

This finds faults. It cannot stop a server that wants a wrong sum (it could use any other number), nor a participant
that sends a wrong vector with checksums to match; what such a participant can do is limited by the bound of the ring
only. Robust folds over cohorts' sums are the place for that.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedrec.secure.failures import WrongSum
from fedrec.secure.masks import derive
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Integers

CHECKS = 3
"""Words behind every vector: the count and two checksums."""


@lru_cache(maxsize=4)
def _weights(digest: bytes, length: int) -> NDArray[np.uint64]:
    """r and r': ``[2, length]``."""
    return Stream(derive(b"public", digest, "checksum")).words(2 * length).reshape(2, length)


def check_words(values: Integers, digest: bytes) -> NDArray[np.uint64]:
    """The words that go with one vector ``[d]``: ``[3]``."""
    words = np.ones(CHECKS, np.uint64)
    residues = values.view(np.uint64)
    for place, weights in enumerate(_weights(digest, len(values)), start=1):
        words[place] = np.dot(residues, weights)  # modulo 2^64
    return words


def verify(total: Integers, words: NDArray[np.uint64], summands: int, digest: bytes) -> None:
    """Raise :class:`WrongSum` unless the sum fits its words and has as many summands as there should be."""
    if int(words[0]) != summands:
        raise WrongSum("the total does not count its summands right: a mask is missing or wrong; it is not used")
    if not np.array_equal(words[1:], check_words(total, digest)[1:]):
        raise WrongSum("the total does not fit its checksums: a mask or a vector is wrong; it is not used")

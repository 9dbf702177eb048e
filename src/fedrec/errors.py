"""The one exception a user may see: bad input, said in one line."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxlong, _SHORT.maxother = 3, 240, 240, 240
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 16


class BadInput(Exception):
    """What the user gave cannot be used; the message says what is wrong and what would be right.

    The command line prints it as one line and exits with status 2.
    """


def quoted(value: object, most: int = 200) -> str:
    """A value as an error shows it: the beginning of a long one, which is never written out whole.

    >>> quoted("abc"), quoted([1, [2, [3, [4]]]]), quoted("x" * 50, 9)
    ("'abc'", '[1, [2, [...]]]', "'xxxxxxxx...")
    """
    try:
        text = _SHORT.repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}..."


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for an unknown word: the nearest known ones, or the whole list when nothing is near.

    >>> nearest("fedvag", ["fedavg", "fcf"])
    "did you mean 'fedavg'?"
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=2, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "known: " + ", ".join(names)


def unknown(kind: str, word: str, known: Iterable[str]) -> BadInput:
    """The error for a name that is not in a table."""
    return BadInput(f"unknown {kind} {word!r}; {nearest(word, known)}")

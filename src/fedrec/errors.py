"""The one exception a user may see: bad input, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(Exception):
    """What the user gave cannot be used; the message says what is wrong and what would be right.

    The command line prints it as one line and exits with status 2.
    """


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

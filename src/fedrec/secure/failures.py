"""How a secure sum ends without a sum. None of these leaves anything behind that could be used as one."""

from __future__ import annotations


class SecureFailure(Exception):
    """A secure sum was not made; the message says why in one line.

    ``repeat`` says whether a new attempt of the same round, with fresh keys, makes sense. From the step confirm on it
    does not: members that have signed a list of survivors do not take part in that round again, since two sums of one
    round with different members would tell what the missing ones had.
    """

    repeat = False


class Refusal(SecureFailure):
    """A message or a request that the receiver does not accept: altered, replayed, duplicate, or against its policy."""


class Signed(Refusal):
    """The member has signed who is in a sum of this round: it is not in a second one, with other members perhaps."""


class TooFew(SecureFailure):
    """Fewer parties are left than are needed: a new attempt with fresh keys, or, after unmasking, the next round."""

    def __init__(self, message: str, repeat: bool = True) -> None:
        super().__init__(message)
        self.repeat = repeat


class FewTrained(TooFew):
    """So few of a cohort have something to add that the others hide nobody: another attempt would have no more."""

    def __init__(self, message: str) -> None:
        super().__init__(message, repeat=False)


class WrongSum(SecureFailure):
    """The unmasked total does not fit its own check: it is thrown away, and the round is skipped."""

"""The rules of a cohort of which only some have trained: the others add nothing, and hide nobody."""

from __future__ import annotations

from fedrec.errors import BadInput
from fedrec.secure.failures import FewTrained
from fedrec.secure.rules import Rules, neighbourhood


def rules_among(members: int, trained: int, dropout: float, colluding: float, least: int) -> Rules:
    """How a cohort is protected of which so many have trained; none is as good as all, since zeros tell nothing."""
    had = f"{trained} of {members} members have trained"
    if 0 < trained < least:
        raise FewTrained(f"{had}, a secure sum needs {least}; nothing was sent")
    try:
        return neighbourhood(members, dropout, colluding, least=least, adding=trained).rules
    except BadInput:
        if trained in (0, members):
            raise
        why = f"too few to sign a sum where {colluding:.0%} of all may collude"
        raise FewTrained(f"{had}, {why}; nothing was sent") from None

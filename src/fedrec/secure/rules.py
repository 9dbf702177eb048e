"""How many neighbours, shares and signatures a secure sum needs, computed from who may drop out and who may collude.

Of n members g collude with the server and at most d drop out; each has k neighbours, h = k/2 on either side on the
circle. H(N, m, j) is the number of marked ones among j that are drawn from N of which m are marked: hypergeometric,
because the circle and the committee are drawn at random, independently of who colludes or drops out.

Privacy fails if
----------------
1. *Shares*: an honest member has t or more colluding neighbours, who restore its secrets: ``n P[H(n-1, g, k) >= t]``.
2. *Parts*: the honest members in the sum fall apart into groups without a common edge; the server would learn the
   sum of each group. That takes two gaps on the circle, each of h members in a row that are gone or colluding.
   ``curious`` server, who is gone is chance: ``n^2 / 2 * product_{i<k} (g + d - i) / (n - i)``.
   ``active`` server, who may call anyone gone: members refuse lists of survivors with fewer than w living members
   among any h in a row; a gap then needs w colluding ones: ``n P[H(n, g, h) >= w]``.
3. *Lists* (``active``): two lists of survivors are both accepted. A member answers only under a list that q of the s
   members of the committee signed; an honest one signs one list. Two lists take 2 q <= s + c signatures, where c of
   the committee collude: ``P[H(n, g, s) >= 2 q - s]``.

Why this is enough against an active server: by 3. all honest members that answer do so under one list L. They reveal
the self-mask of a member only if it is in L, its pairwise masks only if it is not; by 1. the server has no other way
to either. So the vector of an honest member outside L stays under its self-mask, and that of one in L under its
pairwise masks with all its honest neighbours in L: each was there when it masked, because those that answer have
checked that their neighbours masked with all neighbours in one and the same list of sharers that contains L. By 2.
these edges connect all honest members in L. What the server learns is the sum over them, and nothing about its parts.

Attempts of one round
---------------------
A sum is opened by q signatures of its committee, and an honest member that has signed a list is in no other attempt of
that round. So of all sums of a round that are opened, each holds at least q members, honest but for those of them that
collude, that no later one holds: whatever is computed from them holds as many together. The committee is drawn from
those that add something, and q is at least the smallest cohort that a member takes part in, and one more for each
colluding one beyond the first that the committee may have: the difference of two sums tells no more than the smallest
cohort with one that colludes. Members that had not signed may be in several of these sums; each is charged to them.

The round fails (and is repeated, unless the committee has begun to sign) if
----------------------------------------------------------------------------
somebody has fewer than t neighbours left, ``n P[H(n-1, d, k) > k - t]``, some h in a row have fewer than w left,
``n P[H(n, d, h) > h - w]``, or the committee fewer than q, ``P[H(n, d, s) > s - q]``. This costs time, not privacy.

A server that tries 2^x plans in secret (other names of runs, other members) and keeps the one whose graph suits it
takes x bits off the 40. What it can try in the open is limited: members take part once in each attempt, and in few
attempts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from fedrec.errors import BadInput

Server = Literal["curious", "active"]

SECURITY_BITS = 40
CORRECTNESS_BITS = 20


@dataclass(frozen=True)
class Rules:
    """The numbers that all members of a secure sum agree on."""

    neighbours: int
    """k"""
    threshold: int
    """t: so many shares restore a secret."""
    window: int
    """w: so many of any k / 2 members in a row on the circle must be in the sum."""
    committee: int
    """s"""
    quorum: int
    """q: so many of the committee must have signed the same list of survivors."""
    least_survivors: int
    """n - d: sums of fewer contributions are not made."""


@dataclass(frozen=True)
class Neighbourhood:
    """Rules for a cohort, and what may go wrong with which probability, per attempt."""

    rules: Rules
    insecure: float
    """Bound of the probability that the privacy argument does not apply."""
    failing: float
    """Bound of the probability that an attempt within the allowed dropout fails and must be repeated."""


def colluding_members(n: int, share: float) -> int:
    """g: the most members that collude, rounded up: a share above 0 means at least one."""
    return math.ceil(share * n - 1e-9)


def more_than(population: int, marked: int, drawn: int, limit: int) -> float:
    """``P[H(population, marked, drawn) > limit]``."""
    from scipy.stats import hypergeom

    if limit >= min(marked, drawn):
        return 0.0
    if limit < 0:
        return 1.0
    if drawn >= population:
        return 1.0 if marked > limit else 0.0
    return float(hypergeom.sf(limit, population, marked, drawn))


def gaps(n: int, k: int, removed: int) -> float:
    """Bound for two gaps of k / 2 members in a row, ``removed`` of the n being gone or colluding."""
    if k >= n - 1 or removed < k:
        return 0.0
    ratios = math.lgamma(removed + 1) - math.lgamma(removed - k + 1) - math.lgamma(n + 1) + math.lgamma(n - k + 1)
    return math.exp(min(0.0, 2 * math.log(n) - math.log(2) + ratios))


@lru_cache(maxsize=256)
def insecurity(n: int, rules: Rules, colluding: float, server: Server, adding: int = 0) -> float:
    """Bound of the probability that these rules do not protect an honest member; ``adding`` of the n can sign."""
    g, k = colluding_members(n, colluding), rules.neighbours
    found = n * more_than(n - 1, g, k, rules.threshold - 1)
    if server == "curious":
        return min(1.0, found + gaps(n, k, g + n - rules.least_survivors))
    if k < n - 1:
        found += n * more_than(n, g, k // 2, rules.window - 1)
    return min(1.0, found + more_than(adding or n, g, rules.committee, 2 * rules.quorum - rules.committee - 1))


def fewest_signatures(n: int, committee: int, colluding: float, least: int, risk: float, adding: int = 0) -> int:
    """How many signatures must open a sum, so that those who gave them are as many as ``least`` with one that colludes:
    as in the smallest cohort."""
    others = _bound(adding or n, colluding_members(n, colluding), committee, 1, risk)
    return least + max(0, others - 1)


def failure(n: int, rules: Rules, gone: int) -> float:
    """Bound of the probability that an attempt with so many dropouts fails."""
    k = rules.neighbours
    found = n * more_than(n - 1, gone, k, k - rules.threshold)
    if k < n - 1:
        found += n * more_than(n, gone, k // 2, k // 2 - rules.window)
    return min(1.0, found + more_than(n, gone, rules.committee, rules.committee - rules.quorum))


@lru_cache(maxsize=256)
def neighbourhood(
    n: int,
    dropout: float = 0.1,
    colluding: float = 0.05,
    server: Server = "active",
    security_bits: int = SECURITY_BITS,
    correctness_bits: int = CORRECTNESS_BITS,
    least: int = 3,
    adding: int = 0,
) -> Neighbourhood:
    """The fewest neighbours and the smallest committee that will do for a cohort of ``n``.

    ``least`` is the smallest group that may be told apart from others: so many must sign at least, of the ``adding``
    members (0: all) that add to what is summed.

    Insecure with probability at most ``2^-security_bits``, failing with at most ``2^-correctness_bits`` if at most
    ``dropout`` of the members go.
    """
    if n < 3:
        raise BadInput(f"a secure sum of {n} would tell each participant what the other has; take at least 3")
    if n < least:
        raise BadInput(f"a cohort of {n} has fewer than the {least} that are asked for; take larger cohorts")
    if not (0 <= dropout < 1 and 0 <= colluding < 1):
        raise BadInput(f"dropout {dropout} and colluding {colluding} are shares between 0 and 1")
    g, gone = colluding_members(n, colluding), math.floor(dropout * n + 1e-9)
    # each of three ways to fail gets a quarter
    risk, fail = 2.0 ** -(security_bits + 2), 2.0 ** -(correctness_bits + 2)
    circle = _circle(n, g, gone, server, risk, fail)
    jury = _committee(adding or n, g, gone, risk, fail, least, 0 < adding < n) if server == "active" else (1, 0)
    if circle is None or jury is None or n - gone <= circle[1]:
        raise BadInput(
            f"no threshold protects {n} participants if {gone} drop out and {g} collude with the server; "
            "allow fewer, or take larger cohorts"
        )
    rules = Rules(*circle, *jury, n - gone)
    return Neighbourhood(rules, insecurity(n, rules, colluding, server, adding), failure(n, rules, gone))


def _bound(population: int, marked: int, drawn: int, union: int, risk: float) -> int:
    """The least c with ``union * P[H > c] <= risk``."""
    low, high = -1, min(marked, drawn)
    while low + 1 < high:
        middle = (low + high) // 2
        if union * more_than(population, marked, drawn, middle) <= risk:
            high = middle
        else:
            low = middle
    return high


def _circle(n: int, g: int, gone: int, server: Server, risk: float, fail: float) -> tuple[int, int, int] | None:
    """Neighbours, threshold and window: the fewest neighbours that will do."""
    for k in [*range(2, n - 1, 2), n - 1]:
        t = max(2, _bound(n - 1, g, k, n, risk) + 1)
        if t > k or n * more_than(n - 1, gone, k, k - t) > fail:
            continue
        if k == n - 1:
            return k, t, 0
        if server == "curious":
            if gaps(n, k, g + gone) <= risk:
                return k, t, 0
            continue
        w = _bound(n, g, k // 2, n, risk) + 1
        if n * more_than(n, gone, k // 2, k // 2 - w) <= fail:
            return k, t, w
    return None


def _committee(n: int, g: int, gone: int, risk: float, fail: float, least: int, few: bool) -> tuple[int, int] | None:
    """Size and quorum of the smallest committee that will do; of ``few`` all, though the attempt may then fail."""
    g, gone = min(g, n), min(gone, n)
    for s in range(1, n + 1):
        others = _bound(n, g, s, 1, risk)
        q = max(least + max(0, others - 1), (s + others) // 2 + 1)
        if q <= s and (more_than(n, gone, s, s - q) <= fail or (s == n and few)):
            return s, q
    return None

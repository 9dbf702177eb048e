"""What a member asks of a secure sum, whatever the server proposes."""

from __future__ import annotations

from dataclasses import dataclass

from fedrec.secure.failures import Refusal
from fedrec.secure.identity import Directory
from fedrec.secure.plan import Plan
from fedrec.secure.rules import SECURITY_BITS, Server, fewest_signatures, insecurity


@dataclass(frozen=True)
class Policy:
    """The owner's limits."""

    least_members: int = 3
    """Cohorts with fewer members are refused."""
    least_survivors: int = 3
    """Sums of fewer contributions are refused."""
    colluding: float = 0.05
    """The share of members that may pass all they know to the server."""
    server: Server = "active"
    """``active``: the server may say different things to different members. ``curious``: it keeps to the protocol."""
    security_bits: int = SECURITY_BITS
    """Neighbours and threshold must protect but for a probability of 2 to minus this."""
    attempts: int = 8
    """A round is not repeated more often than this."""

    def check(self, plan: Plan, directory: Directory) -> None:
        """Refuse a plan that offers less than this."""
        n = len(plan.members)
        if n < self.least_members:
            raise Refusal(f"a cohort of {n} members; this participant's minimum is {self.least_members}")
        if 0 < n - len(plan.idle) < self.least_members:
            had = f"{n - len(plan.idle)} of {n} members have trained"
            raise Refusal(f"{had}, the others hide nothing; this participant's minimum is {self.least_members}")
        rules = plan.rules
        if rules.least_survivors < self.least_survivors:
            raise Refusal(
                f"sums of {rules.least_survivors} contributions; this participant's minimum is {self.least_survivors}"
            )
        adding, bits = n - len(plan.idle), self.security_bits
        if self.server == "active":
            wanted = fewest_signatures(
                n, rules.committee, self.colluding, self.least_survivors, 2.0 ** -(bits + 2), adding
            )
            if rules.quorum < wanted:
                raise Refusal(
                    f"{rules.quorum} signatures open a sum, and who has signed could stand out from those in another "
                    f"attempt; this participant's minimum is {wanted} (the server's: --secure-least)"
                )
        if plan.attempt >= self.attempts:
            raise Refusal(f"attempt {plan.attempt} of a round; this participant makes at most {self.attempts}")
        strangers = [name for name in plan.members if name not in directory]
        if strangers:
            raise Refusal(f"{strangers[0]!r} is not in the directory of participants")
        if insecurity(n, rules, self.colluding, self.server, adding) > 2.0**-bits:
            raise Refusal(
                f"{rules.threshold} of {rules.neighbours} neighbours, {rules.window} in a row and {rules.quorum} of "
                f"{rules.committee} signatures do not protect a member among {n} against {self.colluding:.0%} of them "
                f"colluding with a server that is {self.server}"
            )

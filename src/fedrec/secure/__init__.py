"""Sums that nobody can look into: ring, masks, shares, neighbour graphs, the protocol as pure steps.

The parts fit together like this::

    layout = Layout((Field("items", (1682, 16), bound=clip, noise=sigma),), summands=1000)
    rules = neighbourhood(1000, dropout=0.1, colluding=0.05).rules
    plan = Plan.of(run, round, names, layout, rules)          # server; members check it against their Policy

    part = Member(name, key, directory, policy).join(plan)    # each member, once per attempt
    server = Aggregator(plan, directory)                      # part.advertise() -> server.receive(...); server.close()
    ...                                                       # -> part.share, part.mask, part.confirm, part.unmask
    server.total().fields                                     # or TooFew, WrongSum: repeat as attempt + 1
"""

from fedrec.secure.aggregator import Aggregator, SecureSum
from fedrec.secure.cohorts import Cohorts, Total, assign, sum_of_sums
from fedrec.secure.failures import Refusal, SecureFailure, TooFew, WrongSum
from fedrec.secure.identity import Directory
from fedrec.secure.layout import Field, Layout
from fedrec.secure.participant import Member, Participant
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.ring import Scale
from fedrec.secure.rules import Neighbourhood, Rules, neighbourhood

__all__ = [
    "Aggregator",
    "Cohorts",
    "Directory",
    "Field",
    "Layout",
    "Member",
    "Neighbourhood",
    "Participant",
    "Plan",
    "Policy",
    "Refusal",
    "Rules",
    "Scale",
    "SecureFailure",
    "SecureSum",
    "TooFew",
    "Total",
    "WrongSum",
    "assign",
    "neighbourhood",
    "sum_of_sums",
]

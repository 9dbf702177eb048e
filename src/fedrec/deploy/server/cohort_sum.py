"""One secure sum over nodes: five exchanges of letters, the server's part of the protocol between them."""

from __future__ import annotations

import time

from fedrec.core.misfit import Misfit
from fedrec.deploy.messages.envelope import one_line
from fedrec.deploy.messages.letters import Fault, Step
from fedrec.deploy.server.exchange import Exchange
from fedrec.secure.aggregator import Aggregator, SecureSum
from fedrec.secure.course import Costs
from fedrec.secure.failures import Signed, TooFew
from fedrec.secure.identity import Directory, host_of
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan

AGAIN = "; members have signed another sum of it and refuse a second one"


def sum_cohort(
    plan: Plan, directory: Directory, exchange: Exchange, deadline: float, costs: Costs, faults: dict[str, str]
) -> SecureSum:
    """The sum of a cohort, and in ``faults`` which nodes fell silent on the way; ``deadline`` is that of a step."""
    server, invitation = Aggregator(plan, directory), plan.to_bytes()
    outgoing: dict[str, bytes] = {}
    hosts = {host_of(name) for name in plan.members}
    for kind in Kind:
        letters = {host: Step(plan.run, int(kind), {"plan": invitation}) for host in hosts}
        if kind is not Kind.ADVERTISE:
            letters = {
                host: Step(plan.run, int(kind), {n: c for n, c in outgoing.items() if host_of(n) == host})
                for host in {host_of(name) for name in outgoing}
            }
        costs.steps[1, 0 if kind is Kind.ADVERTISE else kind + 1] += sum(
            len(content) for step in letters.values() for content in step.contents.values()
        )
        for host, reply in exchange.step(letters, deadline).items():
            if isinstance(reply, Fault):
                faults[host] = f"step {kind.name.lower()}: {reply.reason}"
                continue
            for name, message in reply.contents.items():
                try:
                    if host_of(name) != host or server.receive(message) != name:
                        raise Misfit("a message of somebody else")
                    costs.steps[0, kind + 1] += len(message)
                except Exception as problem:  # whatever a broken message does, it is its sender's loss alone
                    faults[host] = f"step {kind.name.lower()}, not taken: {one_line(problem)}"
        if kind is not Kind.UNMASK:
            try:
                outgoing = server.close()
            except TooFew as few:
                again = any(Signed.__name__ in reason for reason in faults.values())
                raise TooFew(f"{few}{AGAIN if again else ''}", few.repeat and not again) from None
    before = time.perf_counter()
    found = server.total()
    costs.add(len(found.survivors), None, {"server": time.perf_counter() - before})
    return found

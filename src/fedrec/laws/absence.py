"""Law 5: a client that does not take part keeps its private state."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.core.messages import gather
from fedrec.core.state import flatten
from fedrec.data.ragged import Int64
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import plan, run, simulator, world

DROPPING = 5


def absent_keep_their_state(method: str) -> None:
    """Law 5: who is not chosen keeps its private state."""
    sim = simulator(method, world("tiny"))
    run(sim, plan(1))
    everyone = np.arange(sim.people.block.n_clients)
    taking = everyone[::3]
    _kept(method, sim, np.setdiff1d(everyone, taking), 2, taking, taking, "after a round without the client")


def dropouts_keep_their_state(method: str) -> None:
    """Law 5: who is chosen and does not answer keeps its private state, and is counted as missing."""
    law = Comparison("5", method)
    sim = simulator(method, world("tiny"))
    everyone = np.arange(sim.people.block.n_clients)
    answering = everyone[:-DROPPING]
    cost = _kept(method, sim, everyone[-DROPPING:], 1, everyone, answering, "after a round that it dropped out of")
    if cost.participants != len(answering):
        raise law.broken(f"{cost.participants} clients took part, and {len(answering)} answered")
    if not cost.missing or f"{DROPPING} of {len(everyone)}" not in cost.missing[0]:
        raise law.broken(f"{DROPPING} clients dropped out, and the round says {list(cost.missing)}")


def _kept(method: str, sim: Any, staying: Int64, number: int, chosen: Int64, answering: Int64, between: str) -> Any:
    law = Comparison("5", method)
    block = sim.people.block
    before = flatten(gather(sim.snapshot()["private"], block, staying))[0]
    cost, _ = sim.round(number, chosen, answering, False)
    after = flatten(gather(sim.snapshot()["private"], block, staying))[0]
    for name in before:
        law.arrays(before[name], after[name], f"private {name.strip('/')} of absent clients", between)
    return cost

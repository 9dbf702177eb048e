"""Laws 1, 4 and 10 once more where clients hold several users: a user is no client, and clients weigh differently."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.core.loop import Plan, Progress
from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import USERS_OF_CLIENTS, Mixed, method_of, plan, renumbered, run, simulator, world
from fedrec.simulate.secured import SecureOptions

ROUNDS = 2
CLIENTS = len(USERS_OF_CLIENTS)
SEVERAL = "where clients hold several users"


def groups_in_any_blocks(method: str) -> None:
    """Law 1: a block of clients with several users each gives what blocks of one give."""
    law = Comparison("1", method)
    together, apart = (simulator(method, world("grouped"), block_clients=clients) for clients in (CLIENTS, 1))
    whole = _run(law, together, plan(ROUNDS, Mixed()))
    law.metrics(whole, _run(law, apart, plan(ROUNDS, Mixed())), f"in blocks of 1, {SEVERAL}")
    law.states(together.snapshot(), apart.snapshot(), f"in blocks of 1, {SEVERAL}")


def groups_in_any_order(method: str) -> None:
    """Law 4: reordering clients, each with its users, changes nothing for any user."""
    law = Comparison("4", method)
    order = np.random.default_rng(0).permutation(CLIENTS)
    straight = _run(law, simulator(method, world("grouped")), plan(ROUNDS, Mixed()))
    shuffled = _run(law, simulator(method, renumbered(world("grouped"), order)), plan(ROUNDS, Mixed()))
    law.metrics(straight, shuffled, f"with clients in another order, {SEVERAL}")
    for name, values in (straight.best_per_user or {}).items():
        theirs = (shuffled.best_per_user or {})[name]
        law.arrays(values, theirs, f"{name} of every user", f"with clients in another order, {SEVERAL}", 1e-9)


def secure_sums_of_groups(method: str) -> None:
    """Law 10: secure sums give the metrics of plain uploads where a client's part is that of several users."""
    law = Comparison("10", method)
    made: Any = method_of(method)
    if made.not_summed() is not None:
        return  # of one user a client it is said what is wrong
    plain, secure = (
        simulator(method, world("grouped"), secure=options) for options in (None, SecureOptions(cohort=CLIENTS))
    )
    law.metrics(_run(law, plain, plan(ROUNDS)), _run(law, secure, plan(ROUNDS)), f"with secure sums, {SEVERAL}")
    law.states(plain.snapshot(), secure.snapshot(), f"with secure sums, {SEVERAL}")


def _run(law: Comparison, sim: Any, chosen: Plan) -> Progress:
    """All rounds; what stops them here, and not with one user a client, takes one for the other."""
    try:
        return run(sim, chosen)
    except Exception as problem:
        said = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        raise law.broken(f"{SEVERAL} it stops with {said}") from problem

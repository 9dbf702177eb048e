"""Laws 1, 3, 4, 7 and 10: neither blocks, order, a stop nor secure sums change what comes out."""

from __future__ import annotations

import copy
import hashlib
import tempfile
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.core.method import Keys
from fedrec.core.state import flatten
from fedrec.laws.broken import STATE_STEP, Comparison
from fedrec.laws.small_runs import PATTERNS, SEED, Mixed, method_of, plan, reordered, run, simulator, world
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings
from fedrec.simulate.secured import SecureOptions

ROUNDS, STOP = 3, 2
SOME = 5
"""Items of each user that are scored alone."""
EACH = len(PATTERNS)
"""Rounds with one of each pattern of participation, the one with dropouts included."""


def same_in_any_blocks(method: str) -> None:
    """Law 1: a block of C clients gives what C blocks of one give, and what blocks of seven give."""
    law = Comparison("1", method)
    together = simulator(method, world("tiny"), block_clients=1000)
    whole = run(together, plan(ROUNDS, Mixed()))
    for clients in (1, 7):
        apart = simulator(method, world("tiny"), block_clients=clients)
        law.metrics(whole, run(apart, plan(ROUNDS, Mixed())), f"in blocks of {clients}")
        law.states(together.snapshot(), apart.snapshot(), f"in blocks of {clients}")


def nothing_at_a_distance(method: str) -> None:
    """Law 1: local work writes neither what it received nor the server's state, and a round makes a new one."""
    law = Comparison("1", method)
    sim = simulator(method, world("tiny"))
    run(sim, plan(1))
    block = sim.people.block
    before = copy.deepcopy(sim.server)
    download = sim.method.download(sim.server, block.clients)
    received = copy.deepcopy(download)
    sim.method.local_update(copy.deepcopy(sim.private), download, block, Keys(SEED, 2))
    law.states(received, download, "after local work, which wrote into its download", step=0)
    law.states(before, sim.server, "after local work, which wrote into the server's state", step=0)
    old = sim.server
    sim.round(2, block.clients, block.clients, False)
    law.states(before, old, "after a round, which wrote into the server's state instead of making a new one", step=0)


def some_scores_are_those_of_all(method: str) -> None:
    """Law 1: the scores of some items, each user's own, are what a user's scores of all items say of them."""
    law = Comparison("1", method)
    sim = simulator(method, world("grouped"))
    run(sim, plan(1))
    block = sim.people.block
    model = sim.method.model(sim.method.download(sim.server, block.clients))
    items = np.random.default_rng(0).integers(0, block.n_items, (block.n_users, SOME)).astype(np.int32)
    every = sim.method.score(sim.private, model, block)
    some = sim.method.score(sim.private, model, block, items)
    law.arrays(
        np.take_along_axis(every, items, axis=1), some, "the score", "where some items are asked for", STATE_STEP
    )


def nothing_on_the_method(method: str) -> None:
    """Law 1: a method holds settings only; what a round adds to it would be lost on another machine."""
    law = Comparison("1", method)
    sim = simulator(method, world("tiny"))
    before = dict(vars(sim.method))
    saved = {name: _frozen(value) for name, value in before.items()}
    run(sim, plan(2))
    for name, value in vars(sim.method).items():
        if isinstance(getattr(type(sim.method), name, None), cached_property):
            continue  # worked out from the settings
        if name not in before:
            raise law.broken(f"a round put {name!r} on the method, which holds settings only")
        if value is not before[name] or _frozen(value) != saved[name]:
            raise law.broken(f"a round changed {name!r} of the method, which holds settings only")


def _frozen(value: Any) -> str:
    """The content of plain values and arrays; of other objects their kind."""
    if isinstance(value, type):
        return value.__qualname__
    try:
        arrays, structure = flatten(value)
    except TypeError:
        return type(value).__qualname__
    digests = {name: hashlib.blake2b(content.tobytes()).hexdigest() for name, content in arrays.items()}
    return f"{structure} {digests}"


def same_in_any_order(method: str) -> None:
    """Law 4: reordering clients reorders results and changes nothing else."""
    law = Comparison("4", method)
    tiny = world("tiny")
    order = np.random.default_rng(0).permutation(tiny.n_users)
    straight = run(simulator(method, tiny), plan(ROUNDS, Mixed()))
    shuffled = run(simulator(method, reordered(tiny, order)), plan(ROUNDS, Mixed()))
    law.metrics(straight, shuffled, "with clients in another order")
    if straight.best_round != shuffled.best_round:
        raise law.broken(f"round {straight.best_round} is selected, and {shuffled.best_round} in another order")
    for name, values in (straight.best_per_user or {}).items():
        theirs = (shuffled.best_per_user or {})[name]
        law.arrays(values[order], theirs, f"{name} of every user", "with clients in another order", 1e-9)


def same_twice(method: str) -> None:
    """Law 3: the same seed gives the same result bit for bit, and another seed another."""
    law = Comparison("3", method)
    tiny = world("tiny")
    first, again, other = (simulator(method, tiny, seed=seed) for seed in (SEED, SEED, SEED + 1))
    for sim, seed in ((first, SEED), (again, SEED), (other, SEED + 1)):
        run(sim, plan(1, seed=seed))
    law.states(first.snapshot(), again.snapshot(), "when run again with the same seed", step=0)
    left, right = flatten(first.snapshot())[0], flatten(other.snapshot())[0]
    if all(left[n].shape == right[n].shape and (left[n] == right[n]).all() for n in left):
        raise law.broken("another seed changes nothing")


def resumed_equals_whole(method: str) -> None:
    """Law 7: a new process that reads the checkpoint of round 2 ends where the others end, bit for bit."""
    law = Comparison("7", method)
    wanted = plan(EACH, Mixed())
    whole = simulator(method, world("tiny"))
    straight = run(whole, wanted)
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place) / "run", RunSettings(method=method))
        first = simulator(method, world("tiny"))

        def keep(record: Record, progress: Progress) -> None:
            folder.append(record)
            folder.checkpoint(progress, first.snapshot())

        run_rounds(first, replace(wanted, rounds=STOP), Progress(), keep)
        again = simulator(method, world("tiny"))
        progress = RunFolder.open(Path(place) / "run").restore(again.expected())
    if progress.round != STOP:
        raise law.broken(f"the checkpoint of round {STOP} says round {progress.round}")
    resumed = run_rounds(again, wanted, progress, lambda record, now: None)
    law.metrics(straight, resumed, "in a run that was stopped and resumed")
    if straight.best_round != resumed.best_round:
        raise law.broken(f"round {straight.best_round} is selected, and {resumed.best_round} in a resumed run")
    law.states(whole.snapshot(), again.snapshot(), "in a run that was stopped and resumed", step=0)
    law.states(straight.best_state, resumed.best_state, "in the selected model of a resumed run", step=0)


def secure_sums_change_nothing(method: str) -> None:
    """Law 10: where a sum suffices, masked whole numbers in cohorts give the metrics of plain uploads."""
    law = Comparison("10", method)
    made: Any = method_of(method)
    if not made.card.sum_suffices:
        return
    why = made.not_summed()
    if why is not None:
        raise law.broken(f"its card says that a sum suffices, but {why}")
    plain, secure = (
        simulator(method, world("tiny"), secure=options)
        for options in (None, SecureOptions(cohort=6, dropout=0.3, silent=0.1))
    )
    chosen = plan(EACH, Mixed())
    law.metrics(run(plain, chosen), run(secure, chosen), "with secure sums")
    law.states(plain.snapshot(), secure.snapshot(), "with secure sums")

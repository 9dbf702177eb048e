"""The small runs that the laws are written with."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fedrec import keyed
from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.core.participation import Participation
from fedrec.core.population import population
from fedrec.core.settings import build
from fedrec.data.filters import keep_users
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.data.ragged import Int64
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import find
from fedrec.simulate.runtime import Simulator
from fedrec.simulate.secured import SecureSimulator

SMALL = {"dim": 4, "epochs": 2, "batch_size": 64}
"""Settings that make a round fast, where a method has them."""
SEED = 3
TINY_USERS = 30
USERS_OF_CLIENTS = (3, 1, 4, 8, 2, 5, 3, 4)
"""Of the thirty users, how many are with each client where clients are organisations."""


@cache
def world(name: str) -> Interactions:
    """A world by name; ``tiny`` is thirty users of ``demo``, ``grouped`` the same users on eight clients."""
    if name == "grouped":
        return _grouped(world("tiny"))
    if name != "tiny":
        return load(name)
    whole = load("demo")
    stay = np.zeros(whole.n_users, bool)
    stay[:TINY_USERS] = True
    return keep_users(whole, stay)


def _grouped(data: Interactions) -> Interactions:
    """Users of one client are not neighbours in the data."""
    holders = np.repeat(np.arange(len(USERS_OF_CLIENTS), dtype=np.int32), USERS_OF_CLIENTS)
    names = np.array([f"group {number}" for number in range(len(USERS_OF_CLIENTS))], np.str_)
    drawn = np.random.default_rng(0).permutation(holders)
    return dataclasses.replace(data, client_of_user=drawn, client_ids=names)


@dataclass(frozen=True)
class Mixed(Participation):
    """Another pattern in every round: some clients, everyone, the resting halves, some of whom drop out.

    So the first round leaves fresh clients behind, and later ones meet clients that missed one, two or no rounds.
    """

    def choose(self, seed: int, number: int, client_keys: keyed.U64) -> Int64:
        return _pattern(number).choose(seed, number, client_keys)

    def answering(self, seed: int, number: int, client_keys: keyed.U64, chosen: Int64) -> Int64:
        return _pattern(number).answering(seed, number, client_keys, chosen)


PATTERNS = (Participation(0.4), Participation(1.0), Participation(0.5, rest=True), Participation(0.4, dropout=0.3))


def _pattern(number: int) -> Participation:
    return PATTERNS[(number - 1) % len(PATTERNS)]


def small_settings(name: str, **more: Any) -> Any:
    """Settings of a method that make it fast."""
    kind: Any = find(name)
    chosen = {**{k: v for k, v in SMALL.items() if k in kind.Settings.model_fields}, **getattr(kind, "small", {})}
    return build(kind.Settings, {**chosen, **more}, name)


def simulator(
    name: str,
    data: Interactions,
    *,
    seed: int = SEED,
    protocol: str = "strict",
    settings: dict[str, Any] | None = None,
    block_clients: int | None = None,
    secure: Any = None,
) -> Simulator:
    """A method on a world, before its first round; ``secure`` are options of secure sums."""
    task = find_protocol(protocol).prepare(data, seed)
    method = method_of(name, **(settings or {}))
    if secure is not None:
        return SecureSimulator(method, population(task), task, seed, secure, block_clients=block_clients)
    return Simulator(method, population(task), task, seed, block_clients=block_clients)


def method_of(name: str, **settings: Any) -> Any:
    """A method with settings that make it fast."""
    kind: Any = find(name)
    return kind(small_settings(name, **settings))


def plan(rounds: int = 2, participation: Participation | None = None, *, seed: int = SEED, every: int = 1) -> Plan:
    """Rounds for the loop, everyone taking part unless said otherwise."""
    chosen = participation or Participation(1.0)
    return Plan(rounds, seed, chosen, "download", "valid", "HR@10/99", evaluate_every=every)


def run(runtime: Any, chosen: Plan) -> Progress:
    """All rounds of a plan, from the start."""
    return run_rounds(runtime, chosen, Progress(), lambda record, progress: None)


def reordered(data: Interactions, order: Int64) -> Interactions:
    """The same users in another order: user ``order[i]`` becomes user ``i``."""
    place = np.argsort(order)
    users = place[data.users].astype(np.int32)
    rows = np.argsort(users, kind="stable")
    return dataclasses.replace(
        data,
        users=users[rows],
        items=data.items[rows],
        user_ids=data.user_ids[order],
        times=None if data.times is None else data.times[rows],
        client_of_user=None if data.client_of_user is None else data.client_of_user[order],
    )


def renumbered(data: Interactions, order: Int64) -> Interactions:
    """The same clients in another order, each with its users: client ``order[i]`` becomes client ``i``."""
    assert data.client_of_user is not None
    assert data.client_ids is not None
    place = np.argsort(order).astype(np.int32)
    return dataclasses.replace(data, client_of_user=place[data.client_of_user], client_ids=data.client_ids[order])

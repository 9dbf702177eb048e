"""A run with a few dishonest clients in it, and what they do to everybody else's lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.attacks.contract import Facts, Poison
from fedrec.core.block import Block
from fedrec.core.messages import concatenate, gather
from fedrec.core.method import Keys, Method, Reply, Update
from fedrec.core.population import Population
from fedrec.data.ragged import Int64, Ragged, offsets, segments
from fedrec.experiment.audit.figures import Figures, exposed
from fedrec.experiment.prepare import Prepared
from fedrec.robust.defence import Defence
from fedrec.simulate.runtime import Simulator


class NotFor(Exception):
    """An attack that has nothing to send in this method's messages."""


class Poisoned(Simulator):
    """Some clients send what an attack says; all else is as ever."""

    poison: Poison | None = None
    dishonest: NDArray[np.bool_]  # [all clients]

    def at_work(self, clients: Int64) -> tuple[Any, Any, Block]:
        private, download, block = self.at_home(clients)
        users = np.flatnonzero(self.dishonest[block.clients][block.client_of_user])
        if self.poison is None or not self.poison.wants_scores or not len(users):
            return private, download, block
        scores = self.method.score(private, self.method.model(download), block)
        lists = list_by_user(block.train)
        for user in users:
            other = self.poison.trains_on(scores[user].astype(np.float64), lists[user])
            lists[user] = lists[user] if other is None else other
        return private, download, with_histories(block, lists)

    def arriving(
        self, reply: Reply[Any], update: Update[Any, Any], download: Any, block: Block, keys: Keys
    ) -> Reply[Any]:
        theirs = np.flatnonzero(self.dishonest[block.clients])
        if self.poison is None or not len(theirs):
            return reply
        honest = np.flatnonzero(~self.dishonest[block.clients])
        crafted = self.poison.sent(
            gather(reply.upload, block, theirs), gather(download, block, theirs), len(theirs), keys
        )
        if crafted is None:
            raise NotFor
        parts = [gather(reply.upload, block, honest), crafted] if len(honest) else [crafted]
        return Reply(reply.clients[np.concatenate([honest, theirs])], concatenate(parts))


def with_histories(block: Block, lists: list[NDArray[np.int32]]) -> Block:
    """The block with other histories, user by user; they are never drawn as negatives either."""
    train = exclude = _joined(lists)
    if block.exclude is not block.train:
        exclude = _joined([np.union1d(block.exclude[user], items) for user, items in enumerate(lists)])
    return replace(block, train=train, exclude=exclude)


def _joined(lists: list[NDArray[np.int32]]) -> Ragged:
    return Ragged(offsets(np.array([len(items) for items in lists])), np.concatenate(lists).astype(np.int32))


def list_by_user(lists: Ragged) -> list[NDArray[np.int32]]:
    return [lists[user] for user in range(len(lists))]


def chosen_clients(seed: int, people: Population, share: float) -> NDArray[np.bool_]:
    """``[clients]`` who is dishonest: a keyed sample, at least one."""
    n = people.world.n_clients
    draw = keyed.streams(keyed.stream(seed, "dishonest clients"), people.block.client_keys)
    dishonest = np.zeros(n, bool)
    dishonest[np.argsort(draw, kind="stable")[: max(1, round(share * n))]] = True
    return dishonest


def facts_of(prepared: Prepared, adaptive: bool) -> Facts:
    """What dishonest clients know: one of the coldest items (that somebody has), and the popular ones."""
    block = prepared.people.block
    counts = np.bincount(block.train.values, minlength=block.n_items)
    able = np.flatnonzero(counts > 0)
    coldest = able[counts[able] == counts[able].min()]
    target = int(coldest[keyed.stream(prepared.settings.seed, "target") % len(coldest)])
    popular = np.argsort(-counts, kind="stable").astype(np.int64)
    return Facts(prepared.people.world, target, popular, prepared.settings.seed, adaptive)


def poisoned_figures(
    prepared: Prepared,
    kind: type[Poison] | None,
    share: float,
    rounds: int,
    defence: Defence,
    adaptive: bool = False,
) -> Figures:
    """Exposure of a cold item and validation quality among honest users after some rounds; without attack, kind=None.

    The same clients are left out of the figures with and without the attack.
    """
    people, settings = prepared.people, prepared.settings
    assert isinstance(prepared.method, Method)
    facts = facts_of(prepared, adaptive)
    dishonest = chosen_clients(settings.seed, people, share)
    bad_users = dishonest[people.block.client_of_user]
    poison = None if kind is None else kind(facts)
    lists = list_by_user(people.block.train)
    if poison is not None:
        claimed = [poison.history(items) if bad else items for items, bad in zip(lists, bad_users, strict=True)]
        people = replace(people, block=with_histories(people.block, claimed))
    sim = Poisoned(prepared.method, people, prepared.task, settings.seed, memory_mb=settings.memory_mb, robust=defence)
    sim.poison, sim.dishonest = poison, dishonest
    sim.evaluating.wanted &= ~bad_users
    everyone = np.arange(people.world.n_clients)
    rounds = min(rounds, sim.method.settled_after() or rounds)  # more would change nothing
    for number in range(1, rounds + 1):
        sim.round(number, everyone, everyone, False)
    means = sim.evaluate(rounds).valid.means()
    figures: Figures = {name: float(means[name]) for name in ("NDCG@10", "HR@10", "HR@10/99") if name in means}
    honest = np.flatnonzero(~dishonest)
    values = []
    for some in (honest[at : at + 256] for at in range(0, len(honest), 256)):
        users = segments(people.block.user_start, some)
        values.append((exposed(sim.scores(some), [lists[u] for u in users], facts.target), len(users)))
    known = np.array([pair for pair in values if np.isfinite(pair[0])])
    figures["ER@10"] = float(np.average(known[:, 0], weights=known[:, 1]))
    return figures

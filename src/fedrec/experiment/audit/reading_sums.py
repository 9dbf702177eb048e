"""A secure run that its server reads along: the masked vectors of some clients, and the sums that it is left with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from fedrec.attacks.contract import Asking, Exchanged, Seen, Vector
from fedrec.core.block import Block
from fedrec.core.messages import gather
from fedrec.core.method import Keys, Method, Reply, Update
from fedrec.data.ragged import Int64
from fedrec.experiment.audit.reading import WATCHED, Steered, story_of, watched_clients
from fedrec.experiment.prepare import Prepared
from fedrec.privacy.summed import Budget
from fedrec.runs.plan import participation_of
from fedrec.secure.aggregator import SecureSum
from fedrec.secure.contribution import LOSS
from fedrec.secure.course import Course
from fedrec.secure.ring import Integers, centre
from fedrec.secure.simulate import Masks
from fedrec.simulate.private import PrivateSimulator
from fedrec.simulate.secured import SecureOptions, SecureSimulator

View = Literal["message", "sum"]
"""What of a client the server holds: its own message, which is masked, or the sum that it is in."""
MOST_NUMBERS = 20_000_000
FEWEST = 10
"""Clients that are watched where vectors are so long that fifty would not fit into memory."""


class WatchedSums(Steered, SecureSimulator):
    """Keeps what the server receives of some clients, with real masks; the others are summed without."""

    def watch(self, clients: Int64) -> None:
        self.watched = clients
        self.received: dict[int, Any] = {}
        self.masks: Masks | None = None
        self.seen: dict[View, dict[int, list[Exchanged]]] = {
            view: {int(client): [] for client in clients} for view in get_args(View)
        }

    def arriving(
        self, reply: Reply[Any], update: Update[Any, Any], download: Any, block: Block, keys: Keys
    ) -> Reply[Any]:
        for place in np.flatnonzero(np.isin(block.clients, self.watched)):
            self.received[int(block.clients[place])] = gather(download, block, np.array([place]))
        return reply

    def leaving(self, course: Course, name: str, parts: Mapping[str, Any], vector: Integers) -> None:
        super().leaving(course, name, parts, vector)
        own = self._watched_of(name)
        if own:
            layout = course.plan.layout
            if self.masks is None or self.masks.plan is not course.plan:
                self.masks = Masks(course, self.seed)
            words, _ = self.masks.masked(course.plan.place[name], vector)
            self._keep("message", own, course.plan.round, layout.decode(centre(words, layout.bits)))

    def summed_up(self, total: SecureSum) -> None:
        own = [client for name in total.survivors for client in self._watched_of(name)]
        inside = [self._place[name] for name in total.survivors]
        among = np.flatnonzero(np.isin(self.owner, inside))
        self._keep("sum", own, total.plan.round, total.plan.layout.decode(total.total), among)

    def _watched_of(self, name: str) -> list[int]:
        """The watched clients of a participant."""
        owner = self.owner[self.watched]
        return [int(client) for client in self.watched[owner == self.names.index(name)]]

    def _keep(
        self, view: View, clients: list[int], number: int, found: Mapping[str, Any], among: Int64 | None = None
    ) -> None:
        loss = float(found[LOSS])
        upload = Vector({name: content[None] for name, content in found.items() if name != LOSS})
        for client in clients:
            self.seen[view][client].append(Exchanged(number, self.received[client], upload, loss, among=among))


class WatchedNoisySums(WatchedSums, PrivateSimulator):
    """The same where sums carry the noise that a budget asks for."""


def read_sums(
    prepared: Prepared, rounds: int, asking: Asking | None = None
) -> tuple[dict[View, list[Seen]], WatchedSums]:
    """Run some rounds with everybody and keep what the server received."""
    people, settings = prepared.people, prepared.settings
    assert isinstance(prepared.method, Method)
    secure = SecureOptions.of(settings.model_copy(update={"secure_work": "sums", "dropout": 0.0}))
    given = (prepared.method, people, prepared.task, settings.seed, secure)
    options: dict[str, Any] = {"memory_mb": settings.memory_mb, "parts": ("valid",)}
    sim: WatchedSums
    if settings.epsilon is None:
        sim = WatchedSums(*given, **options)
    else:
        budget = Budget(settings.epsilon, settings.delta)
        sim = WatchedNoisySums(*given, budget, settings.rounds, participation_of(settings), **options)
    count = max(FEWEST, min(WATCHED, MOST_NUMBERS // (rounds * sim.layout.length)))
    sim.asking = asking
    sim.watch(watched_clients(settings.seed, people, count))
    everyone = np.arange(people.world.n_clients)
    for number in range(1, rounds + 1):
        sim.round(number, everyone, everyone, False)
    return {view: story_of(sim, seen) for view, seen in sim.seen.items()}, sim

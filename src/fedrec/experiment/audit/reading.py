"""A run that somebody reads along: the messages of some clients, through the real encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedrec import keyed
from fedrec.attacks.contract import Asking, Exchanged, Found, Reader, Seen
from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.messages import gather
from fedrec.core.method import Keys, Method, Reply, Update
from fedrec.data.ragged import Int64, segments
from fedrec.evaluation.sums import MetricSums
from fedrec.experiment.audit.figures import Figures, items_figures, size_figures
from fedrec.experiment.audit.histories import histories_figures
from fedrec.experiment.prepare import Prepared
from fedrec.privacy.compressed import FORMS
from fedrec.simulate.runtime import Simulator

WATCHED = 50
"""Clients whose messages are read."""


class Steered(Simulator):
    """Clients receive what a server that does not keep to the protocol sends, where one is there."""

    asking: Asking | None = None
    number = 0

    def round(self, number: int, chosen: Int64, answering: Int64, evaluate: bool) -> Any:
        self.number = number
        return super().round(number, chosen, answering, evaluate)

    def at_work(self, clients: Int64) -> tuple[Any, Any, Block]:
        private, download, block = super().at_work(clients)
        if self.asking is not None:
            download = self.asking.asks(self.method, download, self.number)
        return private, download, block


class Watched(Steered):
    """Keeps what some clients received and sent, as the server decodes it."""

    watched: Int64

    def watch(self, clients: Int64) -> None:
        self.watched = clients
        self.seen: dict[int, list[Exchanged]] = {int(client): [] for client in clients}
        self.reported: dict[int, dict[str, float]] = {}

    def report(self) -> None:
        """Evaluate the watched clients as they stand: what a node reports when it is asked for the next round."""
        self.evaluating.begin()
        self._evaluate_idle(self.watched)
        block, values = self.people.block, self.evaluating.values()["valid"]
        for client in self.watched.tolist():
            users = slice(block.user_start[client], block.user_start[client + 1])
            found = MetricSums.from_values({name: of_all[users] for name, of_all in values.items()})
            self.reported[client] = found.means() if found.count else {}

    def arriving(
        self, reply: Reply[Any], update: Update[Any, Any], download: Any, block: Block, keys: Keys
    ) -> Reply[Any]:
        here = np.flatnonzero(np.isin(block.clients, self.watched))
        for place in here[:, None]:
            client, loss = int(block.clients[place[0]]), float(update.loss[place[0]])
            sent = self.chain.apply(gather(update.upload, block, place), block.take(place), keys)
            got = self.chain.restore(wire.decode(self.method.Upload, wire.encode(sent, self.form), FORMS))
            received = gather(download, block, place)
            self.seen[client].append(Exchanged(keys.round, received, got, loss, self.reported.get(client)))
        return reply


def story_of(sim: Simulator, seen: Mapping[int, Sequence[Exchanged]]) -> list[Seen]:
    """What was seen of each client in every round."""
    users = np.diff(sim.people.block.user_start)
    return [
        Seen(sim.method, sim.people.world, client, int(users[client]), tuple(rounds)) for client, rounds in seen.items()
    ]


def watched_clients(seed: int, people: Any, count: int = WATCHED) -> Int64:
    """A keyed sample of the clients that have something to learn from."""
    able = np.flatnonzero(people.block.sizes > 0)
    draw = keyed.streams(keyed.stream(seed, "audited clients"), people.block.client_keys[able])
    return np.sort(able[np.argsort(draw, kind="stable")[:count]])


def read_along(prepared: Prepared, rounds: int, asking: Asking | None = None) -> tuple[list[Seen], Watched]:
    """Run some rounds with everybody and keep what was seen."""
    people, settings = prepared.people, prepared.settings
    assert isinstance(prepared.method, Method)
    sim = Watched(
        prepared.method, people, prepared.task, settings.seed,
        memory_mb=settings.memory_mb, robust=prepared.runtime.robust, parts=("valid",),
    )  # fmt: skip
    sim.asking = asking
    sim.watch(watched_clients(settings.seed, people))
    everyone = np.arange(people.world.n_clients)
    for number in range(1, rounds + 1):
        sim.report()
        sim.round(number, everyone, everyone, False)
    return story_of(sim, sim.seen), sim


def reader_figures(reader: Reader, seen: Sequence[Seen], sim: Simulator) -> Figures:
    """What an attack gets, over the watched clients."""
    block = sim.people.block
    popularity = np.bincount(block.train.values, minlength=block.n_items).astype(float)
    found = reader.read(seen)
    who = [one.client for one in seen]
    if reader.card.who == "participant":
        who = [nearest_other(one, found_one, sim) for one, found_one in zip(seen, found, strict=True)]
    if reader.seeks == "held-out":
        held = sim.evaluating.task.valid
        own = [held[int(sim.people.users[block.user_start[client]])] for client in who]
        figures = items_figures(found, own, popularity)
        blind = items_figures([one and Found(one.blind) for one in found], own, popularity)
        return figures | {f"blind_{name}": blind[name] for name in ("precision", "auc") if blind}
    own = [items_of(block, client) for client in who]
    figures = items_figures(found, own, popularity)
    if reader.card.who == "server":
        figures |= size_figures(found, [int(block.sizes[client]) for client in who])
    return figures | histories_figures(found, seen, block, popularity)


def items_of(block: Block, client: int) -> Any:
    """The items of a client's users, each once."""
    users = segments(block.user_start, np.array([client]))
    return np.unique(block.train.take(users).values)


def nearest_other(seen: Seen, found: Found | None, sim: Simulator) -> int:
    """The other client whose items overlap most with a participant's own: whom a personal mixture leans on."""
    block = sim.people.block
    own = np.zeros(block.n_items, bool)
    own[items_of(block, seen.client)] = True
    owner = block.client_of_user[block.train.owners]
    common = np.bincount(owner, own[block.train.values], minlength=block.n_clients)
    shared = common / np.sqrt(np.maximum(block.sizes, 1))
    shared[seen.client] = -1
    return int(np.argmax(shared))

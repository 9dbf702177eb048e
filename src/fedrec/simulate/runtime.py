"""The in-process runtime: all clients on one machine, streamed through the method in blocks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.disclosed import Disclosed
from fedrec.core.disk_array import forget_fields
from fedrec.core.loop import Cost, Evaluated
from fedrec.core.messages import scatter
from fedrec.core.method import Keys, Method, Reply, Update
from fedrec.core.population import Population
from fedrec.core.wire import download_bytes
from fedrec.data.ragged import Int64
from fedrec.evaluation.task import PARTS, Part, Task
from fedrec.privacy.chain import outgoing
from fedrec.privacy.fields import most_coordinates, open_fields
from fedrec.robust.defence import Defence
from fedrec.simulate.clients import Clients
from fedrec.simulate.evaluation import Evaluation, chunks
from fedrec.simulate.refused import SENT, check_update, check_upload


@dataclass
class Tally:
    """What a round adds up while its blocks stream by."""

    loss: float = 0.0
    weight: int = 0
    upload: int = 0
    download: int = 0
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0


@dataclass(frozen=True)
class Work:
    """What a block's clients send, what they were sent, and their losses."""

    reply: Reply[Any]
    download: Any
    loss: NDArray[np.float64]  # [clients]


class Simulator(Clients):
    """Runs a federated method over a whole population.

    Blocks are sized so that the method's working memory stays near ``memory_mb``; the size changes
    nothing but speed (law 3). Clients that take no part keep their private state (law 5).
    """

    def __init__(
        self,
        method: Method[Any, Any, Any, Any],
        people: Population,
        task: Task,
        seed: int,
        *,
        memory_mb: int = 1024,
        block_clients: int | None = None,
        evaluate_users: int | None = None,
        parts: Sequence[Part] = PARTS,
        robust: Defence = Defence(),
    ) -> None:
        super().__init__(method, people, seed, memory_mb=memory_mb, block_clients=block_clients)
        self.robust, self.users = robust, np.diff(people.block.user_start)
        self.chain = outgoing(method.settings)
        self.exposure: tuple[int, tuple[str, ...]] | None = None
        """The most protected numbers in one client's upload, and fields that leave as they are; after a round."""
        self.evaluating = Evaluation(
            task, people, seed, memory_mb=memory_mb, evaluate_users=evaluate_users, parts=parts
        )

    def client_keys(self) -> keyed.U64:
        return self.people.block.client_keys

    def round(self, number: int, chosen: Int64, answering: Int64, evaluate: bool) -> tuple[Cost, Evaluated | None]:
        """One round: stream blocks through local work, fold their uploads into the server's state."""
        before = time.perf_counter()
        done = self._begin(answering, evaluate)
        keys = Keys(self.seed, number)
        replies = self._replies(answering, keys, evaluate, done)
        self.server = self.robust.fold(self.method, self.server, replies, keys, self.users, self.people.world.n_items)
        for _ in replies:  # a method that ignores uploads must not skip the clients' work
            pass
        return self._end(chosen, answering, evaluate, done, time.perf_counter() - before)

    def _begin(self, answering: Int64, evaluate: bool) -> Tally:
        self.evaluating.begin()
        began = time.perf_counter()
        if evaluate:  # those without local work this round are evaluated as they stand
            self._evaluate_idle(np.setdiff1d(np.arange(self.people.block.n_clients), answering))
        return Tally(evaluate_seconds=time.perf_counter() - began)

    def _end(
        self, chosen: Int64, answering: Int64, evaluate: bool, done: Tally, seconds: float
    ) -> tuple[Cost, Evaluated | None]:
        """What the round cost; ``seconds`` are those of all so far: local work, evaluation and aggregation."""
        aggregating, began = seconds - done.train_seconds - done.evaluate_seconds, time.perf_counter()
        evaluated = self.evaluating.result() if evaluate else None
        done.evaluate_seconds += time.perf_counter() - began
        dropped = len(chosen) - len(answering)
        if dropped:
            gone = np.setdiff1d(chosen, answering)
            sent = self.method.download(self.server, self.people.block.clients[gone])
            done.download += download_bytes(sent, self.form, len(gone))
        cost = Cost(
            loss=done.loss / max(1, done.weight),
            participants=len(answering),
            upload=done.upload / max(1, len(answering)),
            download=done.download / max(1, len(chosen)),
            train_seconds=done.train_seconds,
            aggregate_seconds=max(0.0, aggregating),
            evaluate_seconds=done.evaluate_seconds,
            missing=(f"{dropped} of {len(chosen)} clients dropped out",) if dropped else (),
        )
        return cost, evaluated

    def evaluate(self, number: int) -> Evaluated:
        """Evaluate private state with a fresh download, for every client."""
        return self.evaluating.of_all(self, self.block_clients)

    def disclosed(self) -> Disclosed | None:
        return Disclosed(self.exposure)

    def recall(self, shown: Disclosed | None, rounds: int) -> None:
        self.exposure = None if shown is None else shown.exposure

    def _replies(self, answering: Int64, keys: Keys, evaluate: bool, done: Tally) -> Iterator[Reply[Any]]:
        for work in self.work(answering, keys, evaluate, done):
            done.loss += float(np.sum(work.loss))
            yield work.reply

    def at_work(self, clients: Int64) -> tuple[Any, Any, Block]:
        """What some clients train with; an audit's dishonest clients have something else here."""
        return self.at_home(clients)

    def arriving(
        self, reply: Reply[Any], update: Update[Any, Any], download: Any, block: Block, keys: Keys
    ) -> Reply[Any]:
        """The reply as the server gets it; an audit looks at it here, or has dishonest clients send another."""
        return reply

    def work(self, answering: Int64, keys: Keys, evaluate: bool, done: Tally) -> Iterator[Work]:
        """The local work of some clients, block after block."""
        for positions in chunks(answering, self.block_clients):
            began = time.perf_counter()
            private, download, block = self.at_work(positions)
            update = self.method.local_update(private, download, block, keys)
            check_update(self.method.name, update, block, self.people.client_ids)
            scatter(self.private, self.people.block, positions, update.private)
            if self.exposure is None:
                most = most_coordinates(update.upload, block, self.users, self.people.block.sizes)
                self.exposure = (most, open_fields(update.upload))
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
                sent = self.chain.apply(update.upload, block, keys)
                received = self.chain.restore(wire.rounded(sent, self.form))
            if self.method.settings.noise > 0 or self.form.precision == "float16":
                check_upload(self.method.name, received, block, self.people.client_ids, SENT)
            done.upload += wire.payload(sent, self.form)
            done.download += download_bytes(download, self.form, len(positions))
            done.weight += len(positions)
            done.train_seconds += time.perf_counter() - began
            if evaluate:
                began = time.perf_counter()
                local = self.outgoing.model(download) if update.local is None else update.local
                self.evaluating.add(positions, self.method.score(update.private, local, block))
                done.evaluate_seconds += time.perf_counter() - began
            forget_fields(self.private)
            forget_fields(download)
            reply = self.arriving(Reply(block.clients, received), update, download, block, keys)
            yield Work(reply, download, update.loss)

    def _evaluate_idle(self, positions: Int64) -> None:
        self.evaluating.add_all(positions, self, self.block_clients)

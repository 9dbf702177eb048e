"""What becomes of a node's uploads, block by block: sent one by one, added up, or kept for a secure sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.sums import Folding, SumField, Summands
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Answer
from fedrec.deploy.messages.totals import pack_totals
from fedrec.evaluation.sums import MetricSums
from fedrec.secure.contribution import LOSS, loss_of
from fedrec.secure.identity import client_of

Parts = dict[str, dict[str, np.ndarray]]
"""What each member adds to a secure sum."""
ToSummands = Callable[[Any, Any], Summands]
"""From a block's uploads as they would be sent, and its downloads, to what each client adds."""


class EachClient:
    """Every client's upload by itself, in parts of consecutive clients."""

    def __init__(self, form: wire.Form) -> None:
        self.form, self.uploads, self.counts, self.loss = form, list[bytes](), list[int](), 0.0

    def add(self, positions: Int64, sent: Any, received: Any, losses: Any) -> None:
        self.uploads.append(wire.encode(sent, self.form))
        self.counts.append(len(positions))
        self.loss += float(np.nansum(losses))

    def answer(self) -> Answer:
        return Answer(tuple(self.uploads), tuple(self.counts), self.loss)


class OneSum:
    """The sum over the clients: memory and bytes do not grow with them."""

    def __init__(self, fields: Mapping[str, SumField], summands: ToSummands) -> None:
        self.folding, self.summands, self.count, self.loss = Folding(fields), summands, 0, 0.0

    def add(self, positions: Int64, sent: Any, received: Any, losses: Any) -> None:
        self.folding.add(positions, self.summands(sent, received))
        self.count += len(positions)
        self.loss += float(np.nansum(losses))

    def answer(self) -> Answer:
        if not self.count:
            return Answer(loss=self.loss)
        return Answer((pack_totals(self.folding.totals),), (self.count,), self.loss)


class Collected:
    """What a node's members add to a sum: it waits on the node until the steps of a secure sum ask for it."""

    def __init__(self, node: str, clients: int, each: bool, summands: ToSummands, silent: Callable[[Any], Any]) -> None:
        self.each, self.summands, self.silent = each, summands, silent
        self.names = [client_of(node, c) for c in range(clients)] if each else [node] * clients
        self.parts: Parts = {}
        self.clients: dict[str, list[int]] = {}
        """Whose data each member's part of the method's sums holds: positions, ascending."""

    def add(self, positions: Int64, sent: Any, received: Any, losses: Any) -> None:
        summands, losses, silent = self.summands(sent, received), loss_of(losses), self.silent(received)
        for c, position in enumerate(positions):
            if silent is not None and silent[c]:  # it hides nobody, and the plan has to say so
                continue
            own = self.parts.setdefault(self.names[position], {})
            self.clients.setdefault(self.names[position], []).append(int(position))
            for name, value in {**{n: s.of(c) for n, s in summands.items()}, LOSS: losses[c]}.items():
                own[name] = own[name] + value if name in own else np.asarray(value)

    def add_metrics(self, part: str, users: Int64, values: dict[str, np.ndarray], metrics: list[str]) -> None:
        """Metric sums: ``values`` of every user, ``users`` where each client's begin."""
        bounds = list(pairwise(users)) if self.each else [(0, users[-1])]
        for (first, last), name in zip(bounds, self.names if self.each else self.names[:1], strict=True):
            sums = MetricSums.from_values({metric: found[first:last] for metric, found in values.items()})
            numbers = [sums.count, *(sums.sums.get(metric, 0.0) for metric in metrics)]
            self.parts.setdefault(name, {})[part] = np.array(numbers, np.float64)

    def waiting(self) -> dict[str, dict[str, Any]]:
        """What waits, for a file: the members' sums, and whose data is in them."""
        return {"sums": self.parts, "clients": {name: np.array(own, np.int64) for name, own in self.clients.items()}}

    def answer(self) -> Answer:
        return Answer()


Outgoing = EachClient | OneSum | Collected
"""A place for a round's uploads: ``add`` takes those of some clients, as the chain left them, and the downloads that
they trained from; ``answer`` is what leaves the node of them."""

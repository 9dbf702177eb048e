"""What becomes of a node's uploads, block by block: sent one by one, added up, or kept for a secure sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from fedrec.core import wire
from fedrec.core.sums import Folding, SumField, Summands
from fedrec.data.ragged import Int64
from fedrec.deploy.messages.letters import Answer
from fedrec.deploy.messages.totals import pack_totals
from fedrec.deploy.node.summing import Collected

ToSummands = Callable[[Any, Any], Summands]
"""From a block's uploads as they would be sent, and its downloads, to what each client adds."""


class Outgoing(Protocol):
    """A place for the uploads of a round."""

    def add(self, positions: Int64, sent: Any, received: Any, losses: Any) -> None:
        """The uploads of these clients, as the chain left them, and the downloads that they trained from."""

    def answer(self) -> Answer:
        """What leaves the node of them."""


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


class Kept:
    """What waits on the node until the steps of a secure sum ask for it."""

    def __init__(self, collected: Collected, summands: ToSummands) -> None:
        self.collected, self.summands = collected, summands

    def add(self, positions: Int64, sent: Any, received: Any, losses: Any) -> None:
        self.collected.add(positions, self.summands(sent, received), losses)

    def answer(self) -> Answer:
        return Answer()

"""How a node's users are served: metric values stay here, their sums leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedrec.core.messages import gather, personal_fields
from fedrec.data.ragged import Int64, segments
from fedrec.deploy.messages.letters import Answer
from fedrec.deploy.node.share import Share
from fedrec.evaluation.collecting import Collecting
from fedrec.evaluation.held import Held, require_items
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.sums import MetricSums
from fedrec.evaluation.task import Part
from fedrec.memory import MIB
from fedrec.runs.settings import RunSettings


class Tally:
    """Metric values of the node's users; only their sums leave."""

    def __init__(self, share: Share, method: Any, settings: RunSettings) -> None:
        self.share, self.method, self.memory_mb = share, method, settings.memory_mb
        self.metrics = find_protocol(settings.protocol).metrics
        held: dict[Part, Held] = {"valid": share.valid, "test": share.test}
        if not share.wanted.all():
            held = {part: own.take(np.flatnonzero(share.wanted)) for part, own in held.items()}
        self.collecting = Collecting(held, share.wanted, self.metrics)

    def add(self, clients: Int64, scores: Any) -> None:
        """Scores ``[users of these clients, n_items]``.

        What is not finite counts as 0: the server chooses what scores are made with, and an error would tell it whose
        are not.
        """
        require_items(scores, self.share.block.n_items)
        fine = np.nan_to_num(np.asarray(scores), nan=0.0, posinf=0.0, neginf=0.0)
        self.collecting.add(segments(self.share.block.user_start, clients), fine)

    def add_all(self, private: Any, download: Any, block: Any, size: int, among: Int64 | None = None) -> None:
        """Evaluate clients as they stand, with this download."""
        row = 32 * block.n_items * max(1, block.n_users) // max(1, block.n_clients)  # a client's scores, while made
        size = max(1, min(size, self.memory_mb * MIB // row))
        same = None if personal_fields(download) else self.method.model(download)  # serves every client
        for clients in chunks(np.arange(block.n_clients) if among is None else among, size):
            model = same if same is not None else self.method.model(gather(download, block, clients))
            self.add(clients, self.method.score(gather(private, block, clients), model, block.take(clients)))

    def values(self) -> dict[Part, dict[str, Any]]:
        """The metrics of each user, part by part; they stay on the node."""
        return self.collecting.values()

    def answer(self) -> Answer:
        sums = {part: MetricSums.from_values(values) for part, values in self.values().items()}
        return Answer(valid=sums["valid"], test=sums["test"])


def chunks(positions: Int64, size: int) -> Iterator[Int64]:
    for first in range(0, len(positions), size):
        yield positions[first : first + size]

"""FedCIA with parameter-free models (section 5.3): clients exchange the filters of their own graphs.

Nothing is trained. A client sends its GF-CF filter F_k, the server takes the mean F_agg over all clients that ever
took part, and a client scores with both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.gfcf import LocalFilter, local_filter
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, Rows
from fedrec.core.method import Keys, Reply, Update
from fedrec.core.sums import SumField, Summand, Summands, Sums
from fedrec.data.ragged import offsets
from fedrec.maths.interaction_matrix import matrix
from fedrec.maths.lowrank_similarity import FactoredSum, truncated
from fedrec.methods.fedcia.messages import CiaServer, CiaUpload
from fedrec.methods.fedcia.models import OwnModel
from fedrec.methods.fedcia.settings import FedCiaSettings


@dataclass(frozen=True)
class FilterExchange:
    """The mean of the clients' filters (section 5.3)."""

    settings: FedCiaSettings

    # -- the client

    def start_clients(self, world: World, block: Block, keys: Keys) -> OwnModel:
        return OwnModel(None, None, {})

    def local_update(self, private: OwnModel, download: Any, block: Block, keys: Keys) -> Update[OwnModel, CiaUpload]:
        """Section 5.3.1: the final mixed filter is what a client sends; the loss is the share of it that is cut off."""
        upload, lost = self.upload(list(self.filters(block)), block.n_items)
        return Update(private, upload, lost)

    def filters(self, block: Block) -> Iterator[LocalFilter]:
        """The GF-CF filter F_k of each client's own graph."""
        for client in range(block.n_clients):
            users = np.arange(block.user_start[client], block.user_start[client + 1])
            yield local_filter(block.train.take(users), block.n_items, self.settings.k, self.settings.alpha)

    def upload(self, filters: list[LocalFilter], m: int) -> tuple[CiaUpload, NDArray[np.float64]]:
        """Rows of the clients' own items, or the top factors (section 5.4.2) and what they lose of the norm."""
        lost = np.zeros(len(filters))
        if self.settings.truncates(m):
            rank = self.settings.sent_rank(m)
            left, right = (np.zeros((len(filters), m, rank), np.float32) for _ in range(2))
            for client, own in enumerate(filters):
                cut = truncated(own.left, own.right, rank)
                left[client, own.items], right[client, own.items] = cut.left, cut.right
                lost[client] = cut.lost
            return CiaUpload(None, None, left, right), lost
        start = offsets(np.array([len(own.items) for own in filters], np.int64))
        ids = np.concatenate([np.zeros(0, np.int64), *(own.items for own in filters)]).astype(np.int32)
        rows = [own.rows(m) for own in filters]
        whole = Rows(start, ids, np.concatenate([np.zeros((0, m), np.float32), *rows]), m)
        return CiaUpload(None, whole, None, None), lost

    # -- the server

    def sum_fields(self, server: CiaServer, users: int) -> dict[str, SumField]:
        return {"filters": SumField((server.n_items, server.n_items))}

    def summands(self, upload: CiaUpload) -> Summands:
        assert upload.filters is not None
        return {"filters": Summand(upload.filters)}

    def finish(self, server: CiaServer, sums: Sums) -> CiaServer:
        """``F_agg = 1/K sum_k F_k`` (section 5.3.1), over this round's clients and those of earlier rounds."""
        before = 0.0 if server.whole is None else server.whole.astype(np.float64) * server.weight
        weight = server.weight + sums.count
        if not weight:
            return server
        return replace(server, weight=weight, whole=((before + sums["filters"]) / weight).astype(np.float32))

    def fold_factors(self, server: CiaServer, replies: Iterator[Reply[CiaUpload]]) -> CiaServer:
        """The same in thin factors: m x m is never built."""
        m, weight = server.n_items, 0.0
        total = FactoredSum(m, min(m, 4 * self.settings.sent_rank(m)), symmetric=False)
        if server.left is not None and server.right is not None:
            total.add(server.left * np.float64(server.weight), server.right)
            weight = server.weight
        for reply in replies:
            left, right = reply.upload.left, reply.upload.right
            assert left is not None
            assert right is not None
            weight += len(reply.clients)
            for client in range(len(left)):
                total.add(left[client], right[client])
        if not weight:
            return server
        found, root = total.result(), np.sqrt(weight)
        left, right = ((factor / root).astype(np.float32) for factor in (found.left, found.right))
        return replace(server, weight=weight, left=left, right=right)

    # -- scores

    def score(self, private: OwnModel, model: Any, block: Block) -> Float32:
        """``A_k F_k + beta A_k F_agg`` (section 5.3.2)."""
        histories = matrix(block.train, block.n_items)
        if model.whole is not None:
            scores = np.asarray(histories @ model.whole) * np.float32(self.settings.beta)
        elif model.left is not None and model.right is not None:
            scores = (np.asarray(histories @ model.left) @ model.right.T) * np.float32(self.settings.beta)
        else:
            scores = np.zeros(histories.shape, np.float32)
        for client, own in enumerate(self.filters(block)):
            users = slice(block.user_start[client], block.user_start[client + 1])
            scores[users] += own.scores(histories[users])
        return scores

    def client_bytes(self, world: World) -> int:
        m = world.n_items
        return 16 * m * self.settings.sent_rank(m) if self.settings.truncates(m) else 12 * m * m

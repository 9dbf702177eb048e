"""FedCIA, Algorithm 1: clients exchange item similarity instead of parameters.

Han et al., "FedCIA: Federated Collaborative Information Aggregation for Privacy-Preserving Recommendation",
SIGIR 2025. A client brings its item table near to the global similarity C_s in its own vector space (Eq. 6), trains
its own model (Eq. 5) and sends ``C_k = E E'`` (section 5.2.2); the server takes the mean (section 5.2.3). Models need
not have the same size or kind. Parameter-free models exchange filters instead: :mod:`fedrec.methods.fedcia.filters`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32
from fedrec.core.method import Keys, Reply, Update
from fedrec.core.sums import SumField, Summand, Summands, Sums
from fedrec.maths.alignment import closed_forms, gradient_steps
from fedrec.maths.lowrank_similarity import FactoredSum, top_factors, truncated
from fedrec.maths.packed import pack, packed_size, unpack
from fedrec.methods.fedcia import models
from fedrec.methods.fedcia.messages import NOTHING, CiaServer, CiaUpload
from fedrec.methods.fedcia.models import OwnModel
from fedrec.methods.fedcia.settings import FedCiaSettings

PAPER_DIM = {"mf": 512, "lightgcn": 512, "mlp": 32}
START = {"mf": 0.01, "lightgcn": 0.1, "mlp": 0.01}
"""Deviation of fresh embeddings; the paper does not say. For mf chosen among 0.01, 0.1 and 1 on its ML-100K split,
with the test figures in view; for mlp on validation. It must be small against the way that a table moves in training:
C_k holds the start's random similarities beside those that were learnt, and only d of them all are kept."""


class SimilarityExchange:
    """Algorithm 1, with the alignment at the start of a client's next round."""

    def __init__(self, settings: FedCiaSettings, device: str) -> None:
        base = settings.backbone if settings.mixed == "none" else "mf"
        own = {"dim": settings.dim or PAPER_DIM[base], "init_scale": settings.init_scale or START[base]}
        self.settings: FedCiaSettings = settings.model_copy(update=own)
        self.device = device

    def rank(self, n_items: int) -> int:
        """L_k: a table has no more than d singular vectors."""
        return min(self.settings.sent_rank(n_items), self.settings.dim)

    # -- the client

    def start_clients(self, world: World, block: Block, keys: Keys) -> OwnModel:
        return models.start(world, block, keys, self.settings)

    def local_update(self, private: OwnModel, download: Any, block: Block, keys: Keys) -> Update[OwnModel, CiaUpload]:
        tables = self.own_tables(private, block)
        for own, near in zip(tables, self.aligned(tables, download), strict=True):
            own[:] = near
        kept, loss = models.train(private, block, keys, self.settings, self.device)  # L_pred (Eq. 5)
        assert kept.tables is not None
        return Update(kept, self.upload(kept.tables), loss, messages.held(NOTHING))

    def own_tables(self, private: OwnModel, block: Block) -> list[Float32]:
        """Views ``[m, width]`` of the clients' tables."""
        assert private.tables is not None
        return [
            private.tables[client, :, : models.width(self.settings, block, client)] for client in range(block.n_clients)
        ]

    def aligned(self, tables: list[Float32], received: Any) -> list[Float32]:
        """Clients' tables brought near to the global similarity: ``L_item = MSE(E E', C_s)`` (Eq. 6)."""
        chosen, left, right = self.settings, received.left, received.left
        if chosen.align == "none" or (left is None and received.whole is None):
            return tables
        if chosen.align == "closed":
            return closed_forms(left, tables, self.device)
        if received.whole is not None:
            left, right = unpack(received.whole, len(tables[0])), None
        steps = (chosen.align_steps, chosen.align_lr, chosen.align_loss, self.device)
        return [gradient_steps(table, left, right, *steps) for table in tables]

    def upload(self, tables: Float32) -> CiaUpload:
        """``C_k = E E'`` of every client (section 5.2.2), or its top factors (section 5.4.2)."""
        m = tables.shape[1]
        if self.settings.align == "none":
            return CiaUpload(None, None, None, None)
        if self.settings.truncates(m):
            left = np.stack([truncated(table, None, self.rank(m)).left for table in tables])
            return CiaUpload(None, None, left.astype(np.float32), None)
        packed = np.empty((len(tables), packed_size(m)), np.float32)
        for client, table in enumerate(tables):
            packed[client] = pack(table @ table.T)
        return CiaUpload(packed, None, None, None)

    # -- the server

    def sum_fields(self, server: CiaServer, users: int) -> dict[str, SumField]:
        return {} if self.settings.align == "none" else {"similarity": SumField((packed_size(server.n_items),))}

    def summands(self, upload: CiaUpload) -> Summands:
        return {} if upload.similarity is None else {"similarity": Summand(upload.similarity)}

    def finish(self, server: CiaServer, sums: Sums) -> CiaServer:
        """``C_s = 1/K sum_k C_k`` (section 5.2.3); for the closed form of Eq. (6) clients need its top factors only."""
        weight = float(sums.count)
        if self.settings.align == "none":
            return replace(server, weight=weight)
        if not weight:
            return server
        mean = sums["similarity"] / weight
        if self.settings.align == "gradient":
            return replace(server, weight=weight, whole=mean.astype(np.float32))
        factors = top_factors(unpack(mean, server.n_items), self.settings.dim)
        return replace(server, weight=weight, left=factors.astype(np.float32))

    def fold_factors(self, server: CiaServer, replies: Iterator[Reply[CiaUpload]]) -> CiaServer:
        """The same in thin factors (section 5.4.2): m x m is never built."""
        total, weight = FactoredSum(server.n_items, self.settings.dim, symmetric=True), 0.0
        for reply in replies:
            assert reply.upload.left is not None
            weight += len(reply.clients)
            for left in reply.upload.left:
                total.add(left)
        if not weight:
            return server
        return replace(server, weight=weight, left=(total.result().left / np.sqrt(weight)).astype(np.float32))

    # -- scores

    def score(self, private: OwnModel, model: Any, block: Block) -> Float32:
        """Each client with its own model, its table aligned with what it received last."""
        return models.scores(private, self.aligned(self.own_tables(private, block), model), block, self.settings)

    def client_bytes(self, world: World) -> int:
        m, dim = world.n_items, self.settings.dim
        return 16 * m * (self.rank(m) + dim) if self.settings.truncates(m) else 12 * m * m + 8 * m * dim

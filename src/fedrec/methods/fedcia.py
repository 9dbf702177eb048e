"""FedCIA: clients exchange item similarity instead of parameters.

Han et al., "FedCIA: Federated Collaborative Information Aggregation for Privacy-Preserving Recommendation",
SIGIR 2025. Every client trains a model of its own and sends the similarity of its items, ``C_k = E E'``
(section 5.2.2; for the parameter-free GF-CF its filter, section 5.3); the server takes the mean C_s; the client
brings its item table near to C_s (Eq. 6), in its own vector space. Models need not have the same size or kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec.backbones.gfcf import LocalFilter, local_filter
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.fold import add_rows
from fedrec.core.messages import Float32, Rows, per_client, shared
from fedrec.core.method import Card, Keys, Method, Reply, Update
from fedrec.core.settings import TrainingSettings
from fedrec.data.ragged import Int32, Int64, offsets
from fedrec.maths import alignment
from fedrec.maths.interaction_matrix import matrix
from fedrec.maths.lowrank_similarity import FactoredSum, top_factors, truncated
from fedrec.maths.packed import pack, packed_size, unpack
from fedrec.methods import fedcia_models as models
from fedrec.methods.fedcia_models import OwnModel

LARGE = 8192
"""Items from which on similarities are truncated unless asked otherwise: m x m is never built."""
PAPER_DIM = {"mf": 512, "lightgcn": 512, "mlp": 32}
START = {"mf": 0.01, "lightgcn": 0.1, "mlp": 0.01}
"""Deviation of fresh embeddings; the paper does not say. For mf chosen among 0.01, 0.1 and 1 on its ML-100K split,
with the test figures in view; for mlp on validation. It must be small against the way that a table moves in training:
C_k holds the start's random similarities beside those that were learnt, and only d of them all are kept."""


class FedCiaSettings(TrainingSettings):
    """Settings of FedCIA; paper's values from its public code (the text refers to it)."""

    backbone: Literal["gfcf", "mf", "mlp", "lightgcn"] = Field("gfcf", description="the clients' model")
    dim: int = Field(0, ge=0, description="embedding dimension; 0: the paper's (mf and lightgcn 512, mlp 32)")
    lr: float = Field(0.0, ge=0, description="learning rate; 0: the paper's (mf and lightgcn 0.1, mlp 0.001)")
    epochs: int = Field(1, ge=1, description="local epochs a round (epoch_c)")
    batch_size: int = Field(4096, ge=1, description="mini-batch size")
    negatives: int = Field(1, ge=1, description="negatives per positive")
    objective: Literal["bpr"] = Field("bpr", description="pairwise loss (section 5.2.1)")
    init_scale: float = Field(
        0.0, ge=0, description="standard deviation of fresh embeddings; 0: mf and mlp 0.01, lightgcn 0.1"
    )
    layers: int = Field(3, ge=1, description="layers of lightgcn")
    k: int = Field(32, ge=1, description="singular vectors of gfcf's low-pass filter")
    alpha: float = Field(0.3, ge=0, description="weight of gfcf's low-pass filter beside the linear one")
    beta: float = Field(60.0, ge=0, description="weight of the global filter beside the client's own (section 5.3.2)")
    align: Literal["closed", "gradient", "none"] = Field(
        "closed",
        description="how a table comes near to the global similarity: closed form, gradient steps (Eq. 6), or not at "
        "all: nothing is exchanged then (the paper's rows without aggregation)",
    )
    align_steps: int = Field(100, ge=1, description="gradient steps (epoch_i)")
    align_lr: float = Field(0.1, gt=0, description="rate of the gradient steps")
    form: Literal["auto", "full", "truncated"] = Field(
        "auto",
        description=f"what is sent: the whole matrix, or its top singular vectors (section 5.4.2); auto: whole up to "
        f"{LARGE} items",
    )
    rank: int = Field(0, ge=0, description="singular vectors that are sent (L_k); 0: one percent of the items")
    mixed: Literal["none", "dims", "architectures"] = Field(
        "none",
        description="clients with different models in one federation (section 6.6): a quarter, a half and the whole of "
        "dim; or mf, mlp and lightgcn",
    )


@dataclass(frozen=True)
class CiaServer:
    """The mean of what clients sent, as far as clients need it."""

    n_items: int
    weight: float = 0.0
    """Clients in the mean."""
    whole: Float32 | None = None  # [m, m] filter, or [m (m + 1) / 2] similarity
    left: Float32 | None = None  # [m, r] factors of it
    right: Float32 | None = None  # [m, r] where it is not symmetric


@dataclass(frozen=True)
class CiaUpload(messages.Upload):
    """One form of a client's similarity or filter; the other fields are empty."""

    similarity: Float32 | None = per_client()  # [clients, m (m + 1) / 2] upper triangle of E E'
    filters: Rows | None = per_client()  # rows of the filter, [m] wide
    left: Float32 | None = per_client()  # [clients, m, L]
    right: Float32 | None = per_client()  # [clients, m, L]


@dataclass(frozen=True)
class CiaDownload(messages.Download):
    """The global similarity or filter; empty before the first aggregation."""

    whole: Float32 | None = shared()
    left: Float32 | None = shared()
    right: Float32 | None = shared()


NOTHING = CiaDownload(None, None, None)


class FedCia(Method[CiaServer, OwnModel, CiaUpload, CiaDownload]):
    """Algorithm 1 of the paper, with the alignment at the start of a client's next round."""

    name = "fedcia"
    Settings = FedCiaSettings
    Private, Upload, Download = OwnModel, CiaUpload, CiaDownload
    small: ClassVar[dict[str, Any]] = {"backbone": "mf", "lr": 0.05, "init_scale": 0.1}
    enough: ClassVar[dict[str, Any]] = {"backbone": "mf", "dim": 16, "lr": 0.1, "epochs": 5, "init_scale": 0.1}
    enough_rounds = 15
    card = Card(
        title="FedCIA: the mean of the clients' item similarities; every client keeps a model of its own",
        paper="Han et al., SIGIR 2025",
        private="user vectors, item table, network, interactions",
        upload="item similarity (mf, mlp, lightgcn) or filter (gfcf): a matrix of items by items, or its top factors",
        sum_suffices=True,
        departures=(
            "alignment by the closed form (Procrustes) unless align=gradient: the server sends the top factors of C_s",
            "the similarity crosses the wire as its upper triangle: half the bytes, and no entry is noised twice",
            "the optimiser starts fresh each round",
            "the paper gives no scale of fresh embeddings: that of mf was chosen with its ML-100K table in view",
            "mlp needs more than one step of 0.001 a round (public code): its recipe has rate 0.01 and 10 local epochs",
            "truncated filters of gfcf need both singular vectors, since that filter is not symmetric",
            "gfcf has nothing to train: its mean runs over all rounds, so that one round is enough and more only "
            "bring in clients that were away",
        ),
    )

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        given = self.settings
        self.free = given.backbone == "gfcf" and given.mixed == "none"
        base = "mf" if self.free or given.mixed != "none" else given.backbone
        self.dim: int = given.dim or PAPER_DIM[base]
        own = {"dim": self.dim, "init_scale": given.init_scale or START[base]}
        self.training = given.model_copy(update=own)
        self.rotations = alignment.KnownRotations()

    def truncates(self, n_items: int) -> bool:
        """Whether similarities cross the wire as factors."""
        return self.settings.form == "truncated" or (self.settings.form == "auto" and n_items > LARGE)

    def rank(self, n_items: int) -> int:
        """L_k."""
        wanted = self.settings.rank or max(1, round(0.01 * n_items))
        return min(wanted, n_items if self.free else min(n_items, self.dim))

    def global_rank(self, n_items: int) -> int:
        """Columns of the global similarity in factored form: the tables' width, or four times what is sent."""
        return min(n_items, 4 * self.rank(n_items)) if self.free else self.dim

    def settled_after(self) -> int | None:
        """One round of gfcf, unless its uploads are noised anew in each."""
        return 1 if self.free and not self.settings.noise else None

    # -- the server

    def start_server(self, world: World, keys: Keys) -> CiaServer:
        return CiaServer(world.n_items)

    def download(self, server: CiaServer, clients: Int64) -> CiaDownload:
        return CiaDownload(server.whole, server.left, server.right)

    def aggregate(self, server: CiaServer, replies: Iterator[Reply[CiaUpload]], keys: Keys) -> CiaServer:
        """``C_s = 1/K sum_k C_k`` (section 5.2.3), folded as uploads come."""
        if self.settings.align == "none" and not self.free:
            return replace(server, weight=float(sum(len(reply.clients) for reply in replies)))
        fold = self.fold_factors if self.truncates(server.n_items) else self.fold_whole
        return fold(server, replies)

    def fold_whole(self, server: CiaServer, replies: Iterator[Reply[CiaUpload]]) -> CiaServer:
        m, weight = server.n_items, 0.0
        total = np.zeros((m, m)) if self.free else np.zeros(packed_size(m))
        if self.free and server.whole is not None:
            total += server.whole.astype(np.float64) * server.weight
            weight = server.weight
        for reply in replies:
            weight += len(reply.clients)
            if reply.upload.filters is not None:
                add_rows(total, reply.upload.filters)
            elif reply.upload.similarity is not None:
                for one in reply.upload.similarity:
                    total += one
        if not weight:
            return server
        mean = total / weight
        if self.free or self.settings.align == "gradient":
            return replace(server, weight=weight, whole=mean.astype(np.float32))
        factors = top_factors(unpack(mean, m), self.dim)
        return replace(server, weight=weight, left=factors.astype(np.float32))

    def fold_factors(self, server: CiaServer, replies: Iterator[Reply[CiaUpload]]) -> CiaServer:
        total = FactoredSum(server.n_items, self.global_rank(server.n_items), symmetric=not self.free)
        weight = 0.0
        if self.free and server.left is not None and server.right is not None:
            total.add(server.left * np.float64(server.weight), server.right)
            weight = server.weight
        for reply in replies:
            left, right = reply.upload.left, reply.upload.right
            assert left is not None
            weight += len(reply.clients)
            for client in range(len(left)):
                total.add(left[client], None if right is None else right[client])
        if not weight:
            return server
        found = total.result()
        root = np.sqrt(weight)
        right_factor = (found.right / root).astype(np.float32) if self.free else None
        return replace(server, weight=weight, left=(found.left / root).astype(np.float32), right=right_factor)

    # -- the client

    def start_clients(self, world: World, block: Block, keys: Keys) -> OwnModel:
        if self.free:
            return OwnModel(None, None, {})
        return models.start(world, block, keys, self.training)

    def local_update(
        self, private: OwnModel, download: CiaDownload, block: Block, keys: Keys
    ) -> Update[OwnModel, CiaUpload]:
        if self.free:
            found = self.upload_filters(list(self.filters(block)), block)
            return Update(private, found, np.zeros(block.n_clients))
        assert private.tables is not None
        for client in range(block.n_clients):
            width = models.width(self.training, block, client)
            own = private.tables[client, :, :width]
            private.tables[client, :, :width] = self.aligned(own, download)
        kept, loss = models.train(private, block, keys, self.training, self.device)
        assert kept.tables is not None
        return Update(kept, self.upload_similarity(kept.tables), loss, messages.held(NOTHING))

    def aligned(self, table: Float32, download: CiaDownload) -> Float32:
        """A client's table brought near to the global similarity (Eq. 6)."""
        if self.settings.align == "closed":
            if download.left is None:
                return table
            return alignment.closed_form(download.left, table, self.device, self.rotations)
        chosen = self.settings
        if download.whole is not None:
            similarity = unpack(download.whole, len(table))
            return alignment.gradient_steps(table, similarity, None, chosen.align_steps, chosen.align_lr, self.device)
        if download.left is not None:
            return alignment.gradient_steps(
                table, download.left, download.left, chosen.align_steps, chosen.align_lr, self.device
            )
        return table

    def filters(self, block: Block) -> Iterator[LocalFilter]:
        """The GF-CF filter of each client's own graph."""
        for client in range(block.n_clients):
            users = np.arange(block.user_start[client], block.user_start[client + 1])
            yield local_filter(block.train.take(users), block.n_items, self.settings.k, self.settings.alpha)

    def upload_filters(self, filters: list[LocalFilter], block: Block) -> CiaUpload:
        m = block.n_items
        if self.truncates(m):
            left, right = (np.zeros((len(filters), m, self.rank(m)), np.float32) for _ in range(2))
            for client, own in enumerate(filters):
                cut = truncated(own.left, own.right, self.rank(m))
                left[client, own.items], right[client, own.items] = cut.left, cut.right
            return CiaUpload(None, None, left, right)
        start = offsets(np.array([len(own.items) for own in filters], np.int64))
        ids = np.concatenate([np.zeros(0, np.int64), *(own.items for own in filters)]).astype(np.int32)
        rows = [own.rows(m) for own in filters]
        return CiaUpload(None, Rows(start, ids, np.concatenate([np.zeros((0, m), np.float32), *rows]), m), None, None)

    def upload_similarity(self, tables: Float32) -> CiaUpload:
        """``C_k = E E'`` of every client (section 5.2.2), or its top factors (section 5.4.2)."""
        if self.settings.align == "none":
            return CiaUpload(None, None, None, None)
        m = tables.shape[1]
        if self.truncates(m):
            rank = self.rank(m)
            return CiaUpload(
                None, None, np.stack([truncated(table, None, rank).left for table in tables]).astype(np.float32), None
            )
        packed = np.empty((len(tables), packed_size(m)), np.float32)
        for client, table in enumerate(tables):
            packed[client] = pack(table @ table.T)
        return CiaUpload(packed, None, None, None)

    def score(self, private: OwnModel, model: CiaDownload, block: Block, items: Int32 | None = None) -> Float32:
        if self.free:
            scores = self.filtered(model, block)
        else:
            assert private.tables is not None
            scores = np.empty((block.n_users, block.n_items), np.float32)
            for client in range(block.n_clients):
                width = models.width(self.training, block, client)
                table = self.aligned(private.tables[client, :, :width], model)
                models.score_one(scores, private, table, block, client, self.training)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def filtered(self, download: CiaDownload, block: Block) -> Float32:
        """``A_k F_k + beta A_k F_agg`` (section 5.3.2)."""
        histories = matrix(block.train, block.n_items)
        if download.whole is not None:
            scores = np.asarray(histories @ download.whole) * np.float32(self.settings.beta)
        elif download.left is not None and download.right is not None:
            scores = (np.asarray(histories @ download.left) @ download.right.T) * np.float32(self.settings.beta)
        else:
            scores = np.zeros(histories.shape, np.float32)
        for client, own in enumerate(self.filters(block)):
            users = slice(block.user_start[client], block.user_start[client + 1])
            scores[users] += own.scores(histories[users])
        return scores

    def client_bytes(self, world: World) -> int:
        m = world.n_items
        if self.truncates(m):
            return 16 * m * (self.rank(m) + (0 if self.free else self.dim))
        return 12 * m * m + (0 if self.free else 8 * m * self.dim)

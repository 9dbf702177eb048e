"""FedIAR: the server explores the global item table in two views, clients weigh it against their own.

Zhou et al., "Joint item embedding dual-view exploration and adaptive local-global fusion for federated
recommendation", SIGIR 2025. After averaging (Eq. 2) the server descends

    L_d  makes dimensions independent and equally used (Eq. 4-5)
    L_n  draws items towards the centroids of Dirichlet-process clusters (Eq. 9-16)

in one step (Eq. 17), never forming an ``n x n`` matrix (:mod:`fedrec.maths.matrix_entropy`). A client fuses its
local table with the downloaded one through a gate whose parameters a hypernetwork makes from the user's vector
(Eq. 18-21, :mod:`fedrec.backbones.gated`). In the first rounds (warm-up) local and global are identical.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.backbones.gated import GatedViews, GateKind
from fedrec.core import disk_array, messages
from fedrec.core.block import Block, World
from fedrec.core.fold import add_rows
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user, shared
from fedrec.core.method import Card, Keys, Method, Reply, Update
from fedrec.core.settings import FOLDER, MEMORY, TrainingSettings
from fedrec.data.ragged import Int32, Int64
from fedrec.learn.samples import draw
from fedrec.methods.embedding import EmbeddingSettings, fresh


class FedIarSettings(TrainingSettings):
    """Settings of FedIAR (section 4.1: d = 32, one local epoch, batches of 256, four negatives)."""

    dim: int = Field(32, ge=1, description="embedding dimension d")
    epochs: int = Field(1, ge=1, description="local epochs a round (E)")
    batch_size: int = Field(256, ge=1, description="mini-batch size")
    lr: float = Field(0.1, gt=0, description="rate of user vectors, score function and hypernetwork")
    lr_items: float = Field(20.0, gt=0, description="rate of both item tables")
    optimizer: Literal["adam", "sgd"] = Field("sgd", description="local optimiser, fresh each round")
    objective: Literal["bce"] = Field("bce", description="pointwise loss (Eq. 20)")
    engine: Literal["auto", "torch"] = Field("auto", description="batched torch trains this method")
    warmup: int = Field(10, ge=0, description="rounds in which local and global embeddings are identical")
    gate: Literal["network", "equal"] = Field("network", description="ALGF, or equal weights (w/o ALGF, Table 3)")
    gate_hidden: int = Field(8, ge=1, description="hidden units of the gate network")
    hyper_hidden: int = Field(16, ge=1, description="hidden units of the hypernetwork")
    scorer: Literal["affine", "mlp"] = Field("affine", description="score function S (the paper leaves it open)")
    scorer_start: Literal["common", "own"] = Field(
        "common", description="fresh score functions: the same for all, as PFedRec's, or drawn for each user"
    )
    explore: bool = Field(True, description="dual-view exploration on the server (w/o IEDE, Table 3: false)")
    mu_d: float = Field(0.5, ge=0, description="weight of the dimension view (mu_d)")
    mu_n: float = Field(0.5, ge=0, description="weight of the sample view (mu_n)")
    server_lr: float | None = Field(
        None, gt=0, description="the server's rate eta (Eq. 17) [lr_items, at most the number of items]"
    )
    sample_view: Literal["density", "printed"] = Field(
        "density", description="matrices of L_n: divided by n as Eq. 4 is, or as Eq. 16 prints them"
    )
    gamma: float = Field(1e-2, gt=0, description="what is added to keep matrices regular (gamma)")
    clusters: int = Field(16, ge=1, description="truncation of the Dirichlet process (M)")
    concentration: float = Field(1.0, gt=0, description="concentration of the Dirichlet process (alpha)")
    init: Literal["positive", "uniform", "normal"] = Field("uniform", description="fresh embeddings")
    init_scale: float = Field(0.2, gt=0, description="scale of fresh user vectors and score functions")
    items_scale: float = Field(0.01, gt=0, description="scale of the fresh item table")
    private_budget_mb: int = Field(
        4096,
        ge=0,
        description="memory for local item tables; beyond it they live on disk (memory-mapped)",
        json_schema_extra=MEMORY,
    )
    private_dir: str | None = Field(
        None, description="where that is [the system's temporary folder]", json_schema_extra=FOLDER
    )


@dataclass(frozen=True)
class IarServer:
    """Z_g and the state of the mixture, for a warm start."""

    items: Float32  # [n_items, d]
    mixture: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    round: int = 0


@dataclass(frozen=True)
class IarPrivate(messages.Private):
    """u_k, Theta_k, Psi_k and Z_k; never leave."""

    users: Float32 = per_user()  # [users, 2 d] u | theta
    bias: Float32 = per_user()  # [users]
    tables: Float32 = per_client()  # [clients, n_items, d] Z_k, zeros during warm-up
    own: NDArray[np.uint8] = per_client()  # [clients] whether Z_k has begun
    networks: dict[str, Array] = per_client()  # [clients, ...] Psi_k


@dataclass(frozen=True)
class IarDownload(messages.Download):
    """Z_g, and whether clients are to begin their own tables."""

    items: Float32 = shared()  # [n_items, d]


@dataclass(frozen=True)
class IarLocal(messages.Model):
    """What a client holds right after training."""

    items: Float32 = shared()
    changes: Rows | None = per_client()


@dataclass(frozen=True)
class IarUpload(messages.Upload):
    """Changes of the global table."""

    rows: Rows = per_client()


@dataclass(frozen=True)
class PairedTables:
    """``[z_local | z_global]`` of every client and item, worked out as rows are asked for."""

    local: Float32 | None  # [clients, n_items, d]; None: the same as the global one
    common: Float32  # [n_items, d]
    changes: Rows | None = None  # of the global one, client by client

    @property
    def shape(self) -> tuple[int, int, int]:
        return (0 if self.local is None else len(self.local), len(self.common), 2 * self.common.shape[1])

    ndim = 3

    def __getitem__(self, which: Any) -> Float32:
        if not isinstance(which, tuple):  # one client's whole table
            dim = self.common.shape[1]
            both = np.empty((len(self.common), 2 * dim), np.float32)
            both[:, dim:] = self.common
            if self.changes is not None:
                start = self.changes.start
                own = slice(int(start[which]), int(start[which + 1]))
                both[self.changes.ids[own], dim:] += self.changes.values[own]
            both[:, :dim] = both[:, dim:] if self.local is None else self.local[which]
            return both
        clients, ids = which
        common = self.common[ids]
        return np.concatenate([common if self.local is None else self.local[clients, ids], common], 1)


class FedIar(Method[IarServer, IarPrivate, IarUpload, Any]):
    """Dual-view exploration on the server, adaptive fusion on the client."""

    name = "fediar"
    Settings = FedIarSettings
    Private, Upload, Download = IarPrivate, IarUpload, IarDownload
    small = {"warmup": 1, "lr_items": 5.0, "clusters": 4}  # noqa: RUF012
    enough = {"lr": 1.0, "lr_items": 300.0, "items_scale": 0.3, "warmup": 15, "epochs": 5, "clusters": 4}  # noqa: RUF012
    card = Card(
        title="FedIAR: global items spread and clustered on the server, weighed against local ones by a personal gate",
        paper="Zhou et al., Joint item embedding dual-view exploration and adaptive local-global fusion for "
        "federated recommendation, SIGIR 2025",
        private="user vector, score function, hypernetwork, local item table, interactions",
        upload="changes of the global item table",
        sum_suffices=True,
        departures=(
            "the score function is affine in the fused item (as in PFedRec, whose set-up the paper follows), with a "
            "hidden layer over [u | z] on request (scorer=mlp): the paper leaves it open",
            "score functions start the same for everybody: where each is drawn by itself, their first gradients of the "
            "global table cancel, and on sparse data it learns nothing (scorer_start=own; the paper is silent)",
            "the mixture has diagonal covariances and works on the centred table at unit scale",
            "centroids are constants in the gradient of L_n, and gamma I is added to its second matrix, which is "
            "singular as printed",
            "the server's rate is that of the clients' item tables, as Eq. 17 has one eta, but at most n",
            "the matrices of L_n are divided by n, as that of L_d is (Eq. 4): as printed their eigenvalues grow with "
            "the number of items, L_n falls without bound as centroids grow, and no rate suits both views "
            "(sample_view=printed)",
            "during warm-up the local table does not exist; it begins as a copy of the next round's download",
            "Theorem 1 as printed lacks a division of TCR by d; the corrected form is tested",
            "of several users of a client each has its own gate, made by the client's one hypernetwork",
        ),
    )

    def backbone(self, warm: bool) -> GatedViews:
        """The client's model; during warm-up both views are the same, so the gate cannot matter."""
        chosen = self.settings
        kind: GateKind = "global" if warm else chosen.gate
        return GatedViews(chosen.gate_hidden, chosen.hyper_hidden, kind, chosen.scorer)

    def start_server(self, world: World, keys: Keys) -> IarServer:
        chosen = self.settings
        start = EmbeddingSettings(dim=chosen.dim, init=chosen.init, init_scale=chosen.items_scale)
        base = keyed.stream(keys.seed, keys.round, "items")
        return IarServer(fresh(keyed.streams(base, np.arange(world.n_items, dtype=np.uint64)), chosen.dim, start))

    def start_clients(self, world: World, block: Block, keys: Keys) -> IarPrivate:
        chosen = self.settings
        start = EmbeddingSettings(dim=chosen.dim, init=chosen.init, init_scale=chosen.init_scale)
        users = fresh(keys.users(block, "users"), 2 * chosen.dim, start)
        if chosen.scorer_start == "common":
            same = keyed.streams(keyed.stream(keys.seed, keys.round, "scorer"), np.zeros(1, np.uint64))
            users[:, chosen.dim :] = fresh(same, chosen.dim, start)
        networks = self.backbone(False).start(keys.clients(block, "networks"), 2 * chosen.dim)
        del networks["bias"]
        budget = disk_array.Budget(chosen.private_budget_mb, chosen.private_dir)
        tables = disk_array.zeros((block.n_clients, world.n_items, chosen.dim), budget)
        nobody = np.zeros(block.n_clients, np.uint8)
        return IarPrivate(users, np.zeros(block.n_users, np.float32), tables, nobody, networks)

    def download(self, server: IarServer, clients: Int64) -> IarDownload:
        return IarDownload(server.items)

    def local_update(
        self, private: IarPrivate, download: Any, block: Block, keys: Keys
    ) -> Update[IarPrivate, IarUpload]:
        """ "Client executes" of Algorithm 1 for a block of clients."""
        from fedrec.learn.batched import train_batched

        chosen, warm, dim = self.settings, keys.round <= self.settings.warmup, self.settings.dim
        if not warm:
            for client in np.flatnonzero(private.own == 0):
                private.tables[client] = download.items
            private = replace(private, own=np.ones_like(private.own))
        samples = draw(block, chosen.negatives, keys.clients(block, "negatives"))
        pairs: Any = PairedTables(None if warm else private.tables, download.items)
        trained = train_batched(
            block, samples, private.users, pairs, chosen, keys.clients(block, "batches"), self.backbone(warm),
            {**private.networks, "bias": private.bias}, self.device, 0.0, chosen.lr, chosen.lr_items,
        )  # fmt: skip
        rows = trained.rows
        if not warm:
            owner = np.repeat(np.arange(block.n_clients), np.diff(rows.start))
            private.tables[owner, rows.ids] += rows.values[:, :dim]
        common = Rows(rows.start, rows.ids, np.ascontiguousarray(rows.values[:, dim:]), rows.n_items)
        kept = replace(
            private,
            users=trained.users,
            bias=private.bias + trained.networks["bias"],
            networks={name: value + trained.networks[name] for name, value in private.networks.items()},
        )
        return Update(kept, IarUpload(common), trained.loss, IarLocal(download.items, common))

    def aggregate(self, server: IarServer, replies: Iterator[Reply[IarUpload]], keys: Keys) -> IarServer:
        """Eq. 17: the mean change, and one step along both explorations, their gradients taken at Z_g."""
        total, count = np.zeros(server.items.shape, np.float64), 0
        for reply in replies:
            add_rows(total, reply.upload.rows)
            count += len(reply.clients)
        if not count:
            return server
        moved = server.items + total / count
        mixture = server.mixture
        if self.settings.explore:
            step, mixture = self.exploration(server, keys)
            moved -= self.rate(len(server.items)) * step
        return IarServer(moved.astype(np.float32), mixture, server.round + 1)

    def rate(self, n_items: int) -> float:
        """Eta of Eq. 17. Divided by n, both gradients are means over the items, and a rate above n overshoots."""
        return self.settings.server_lr or min(self.settings.lr_items, float(n_items))

    def exploration(self, server: IarServer, keys: Keys) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """``mu_d grad L_d + mu_n grad L_n`` ``[n_items, d]`` (Eq. 17) and the mixture's new state."""
        from threadpoolctl import threadpool_limits

        from fedrec.maths.dirichlet_clusters import cluster_items
        from fedrec.maths.matrix_entropy import dimension_loss, sample_loss

        chosen = self.settings
        step = np.zeros(server.items.shape)
        mixture = server.mixture
        with threadpool_limits(1):  # products with d or M columns: threads cost more than they gain, and round apart
            if chosen.mu_d:
                step += chosen.mu_d * dimension_loss(server.items, chosen.gamma)[1]
            if chosen.mu_n:
                seed = keyed.stream(keys.seed, keys.round, "clusters")
                found = cluster_items(server.items, chosen.clusters, chosen.concentration, seed, mixture or None)
                mixture = found.state
                scale = len(server.items) ** -0.5 if chosen.sample_view == "density" else 1.0
                scaled = scale * server.items.astype(np.float64)
                step += chosen.mu_n * scale * sample_loss(scaled, found.cluster, chosen.clusters, chosen.gamma)[1]
        return step, mixture

    def score(self, private: IarPrivate, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        changes: Rows | None = getattr(model, "changes", None)
        owners = block.client_of_user
        networks = {**private.networks, "bias": private.bias}
        result = np.empty((block.n_users, block.n_items), np.float32)
        for warm in (True, False):  # clients without a table of their own yet, and those with one
            users = np.flatnonzero((private.own[owners] == 0) == warm)
            if not len(users):
                continue
            pairs: Any = PairedTables(None if warm else private.tables, model.items, changes)
            mine = {**networks, "bias": private.bias[users]}
            result[users] = self.backbone(warm).scores(private.users[users], pairs, mine, owners[users])
        return result if items is None else np.take_along_axis(result, items, axis=1)

    def client_bytes(self, world: World) -> int:
        dim = self.settings.dim
        made = sum(int(np.prod(shape)) for shape in self.backbone(False).shapes(dim).values())
        return 32 * world.n_items + 16 * made + 256 * dim * min(world.n_items, 1024)

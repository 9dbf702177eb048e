"""FedIAR: the server explores the global item table in two views, clients weigh it against their own.

Zhou et al., "Joint item embedding dual-view exploration and adaptive local-global fusion for federated
recommendation", SIGIR 2025. Below, in the order of Algorithm 1: what the server descends after averaging (section 3.3,
Eq. 3-16) and what a client descends (section 3.4, Eq. 18-21), as plain formulas; then the method. The fast twins are
:mod:`fedrec.maths.matrix_entropy`, which never forms an ``n x n`` matrix, and :mod:`fedrec.backbones.gated` in the
batched engine. Local and global tables are identical in the first rounds (warm-up).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.backbones.gated import GatedViews, GateKind
from fedrec.core import disk_array
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, Rows
from fedrec.core.method import Card, Keys, Method, Update
from fedrec.core.sums import Sums
from fedrec.data.ragged import Int32, Int64
from fedrec.errors import BadInput
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.methods._shared.embedding import ItemDownload, ItemUpload, LocalModel, fresh, fresh_items
from fedrec.methods._shared.server_steps import MeanOfChanges
from fedrec.methods.two_views.fediar_state import FedIarSettings, IarPrivate, IarServer, PairedTables

if TYPE_CHECKING:
    from torch import Tensor


def cross_entropy(x: Tensor, y: Tensor) -> Tensor:
    """``MCE(X, Y) = tr(-X log Y + Y)`` of symmetric matrices (Eq. 3)."""
    import torch

    values, vectors = torch.linalg.eigh(y)
    logarithm: Tensor = (vectors * values.log()) @ vectors.mT
    return torch.trace(-x @ logarithm + y)


def dimension_view(z: Tensor, gamma: float) -> Tensor:
    """L_d of the global table Z_g ``[n, d]``: dimensions are independent and equally used."""
    import torch

    n, d = z.shape
    eye = torch.eye(d, dtype=z.dtype)
    centred = z - z.mean(0)
    covariance = centred.mT @ centred / n  # Eq. 4
    return cross_entropy((1 / d + gamma) * eye, covariance + gamma * eye)  # Eq. 5


def sample_view(z: Tensor, cluster: NDArray[np.int64], gamma: float, density: bool = True) -> Tensor:
    """L_n: items are drawn to the centroids V of their Dirichlet-process clusters (Eq. 9-15), constants here."""
    import torch

    n, d = z.shape
    share = 1 / (n * d) if density else 1 / d
    centroids = torch.stack([z[cluster == own].mean(0) for own in cluster]).detach()
    left, right = (table - table.mean(1, keepdim=True) for table in (z, centroids))  # Z H_d and V H_d
    regular = share * right @ right.mT + gamma * torch.eye(n, dtype=z.dtype)
    return cross_entropy(share * left @ left.mT, regular)  # Eq. 16


def client_loss(
    u: Tensor, theta: Tensor, bias: Tensor, local: Tensor, common: Tensor, psi: Mapping[str, Tensor], label: Tensor
) -> Tensor:
    """L_REC of some items of one client with Theta = (theta, bias): rows of Z_k and Z_g ``[items, d]``, labels."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    inner = (u @ psi["hyper_weight_0"] + psi["hyper_bias_0"]).relu()
    phi = inner @ psi["hyper_weight_1"] + psi["hyper_bias_1"]  # Eq. 21
    wide, hidden = 2 * len(u), (len(phi) - 1) // (2 * len(u) + 2)
    first, first_bias, second, second_bias = torch.split(phi, [wide * hidden, hidden, hidden, 1])
    share = (
        (torch.cat([local, common], 1) @ first.view(wide, hidden) + first_bias).relu() @ second + second_bias
    ).sigmoid()  # Eq. 19
    fused = share[:, None] * local + (1 - share)[:, None] * common  # Eq. 18
    return binary_cross_entropy_with_logits(fused @ theta + bias, label, reduction="sum")  # Eq. 20


class FedIar(MeanOfChanges, Method[IarServer, IarPrivate, ItemUpload, ItemDownload]):
    """Dual-view exploration on the server, adaptive fusion on the client."""

    name = "fediar"
    Settings, Private, Upload, Download = FedIarSettings, IarPrivate, ItemUpload, ItemDownload
    anew = ("mixture",)
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
            "score functions start the same for everybody: if each is drawn on its own (scorer_start=own), their "
            "first gradients of the global table cancel, and on sparse data it learns nothing; the paper does not say "
            "how they start",
            "the mixture has diagonal covariances and works on the centred table at unit scale",
            "centroids are constants in the gradient of L_n, and gamma I is added to its second matrix, which is "
            "singular as printed",
            "the server's rate is that of the clients' item tables, because Eq. 17 has one eta, but at most n",
            "the matrices of L_n are divided by n, as that of L_d is (Eq. 4): as printed their eigenvalues grow with "
            "the number of items, L_n falls without bound as centroids grow, and no rate suits both views "
            "(sample_view=printed)",
            "during warm-up there is no local table; it begins as a copy of the next round's download and may have a "
            "rate of its own (private_rate; the paper has one eta)",
            "E[log phi_m] of Eq. 13 is printed as psi(alpha_1) - psi(alpha_2), which may be the logarithm of more than "
            "one; here, as in scikit-learn, it is psi(alpha_1) - psi(alpha_1 + alpha_2), and earlier sticks' terms",
            "Theorem 1 as printed lacks a division of TCR by d; the tests check the corrected form",
            "where a client has several users, each has its own gate, made by the client's one hypernetwork",
        ),
    )

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        if self.settings.private_rate != 1 and self.settings.optimizer != "sgd":  # Adam takes no account of a factor
            raise BadInput("fediar: private_rate is a rate of plain descent; give optimizer=sgd, or private_rate=1")

    def backbone(self, warm: bool) -> GatedViews:
        """The client's model; during warm-up both views are the same, so the gate cannot matter."""
        chosen, rate = self.settings, 1.0 if warm else self.settings.private_rate
        kind: GateKind = "global" if warm and chosen.gate != "sum" else chosen.gate
        return GatedViews(chosen.gate_hidden, chosen.hyper_hidden, kind, chosen.scorer, rate)

    def start_server(self, world: World, keys: Keys) -> IarServer:
        return IarServer(fresh_items(world, keys, self.settings, scale=self.settings.items_scale))

    def start_clients(self, world: World, block: Block, keys: Keys) -> IarPrivate:
        chosen = self.settings
        users = fresh(keys.users(block, "users"), 2 * chosen.dim, chosen)
        if chosen.scorer_start == "common":
            same = keyed.streams(keyed.stream(keys.seed, keys.round, "scorer"), np.zeros(1, np.uint64))
            users[:, chosen.dim :] = fresh(same, chosen.dim, chosen)
        networks = self.backbone(False).start(keys.clients(block, "networks"), 2 * chosen.dim)
        del networks["bias"]
        budget = disk_array.Budget(chosen.private_budget_mb, chosen.private_dir)
        tables = disk_array.zeros((block.n_clients, world.n_items, chosen.dim), budget)
        nobody = np.zeros(block.n_clients, np.uint8)
        return IarPrivate(users, np.zeros(block.n_users, np.float32), tables, nobody, networks)

    def download(self, server: IarServer, clients: Int64) -> ItemDownload:
        return ItemDownload(server.items, {})

    def model(self, download: ItemDownload) -> LocalModel:
        return LocalModel(download.items, None, {})

    def local_update(
        self, private: IarPrivate, download: ItemDownload, block: Block, keys: Keys
    ) -> Update[IarPrivate, ItemUpload]:
        """Lines 12-22 of Algorithm 1, "Client executes": E epochs of descent on Eq. 20 for a block of clients."""
        chosen, warm, dim = self.settings, keys.round <= self.settings.warmup, self.settings.dim
        if not warm:
            for client in np.flatnonzero(private.own == 0):
                private.tables[client] = download.items
            private = replace(private, own=np.ones_like(private.own))
        samples = draw(block, chosen.negatives, keys.clients(block, "negatives"))
        both: Any = np.tile(download.items, 2) if warm else PairedTables(private.tables, download.items)
        trained = train_block(
            block, samples, private.users, both, chosen, keys.clients(block, "batches"), self.backbone(warm),
            {**private.networks, "bias": private.bias}, self.device, lr_items=chosen.lr_items,
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
        return Update(kept, ItemUpload(common, {}), trained.loss, LocalModel(download.items, common, {}))

    def finish(self, server: IarServer, sums: Sums, keys: Keys) -> IarServer:
        """Lines 7-9 (Eq. 17): the mean change, and one step along both explorations, their gradients taken at Z_g."""
        if not sums.count:
            return server
        moved, mixture = server.items + sums["items"] / sums.count, server.mixture
        if self.settings.explore:
            step, mixture = self.exploration(server, keys)
            moved -= self.rate(len(server.items)) * step
        return IarServer(moved.astype(np.float32), mixture, server.round + 1)

    def rate(self, n_items: int) -> float:
        """Eta of Eq. 17. Divided by n, both gradients are means over the items, and a rate above n overshoots."""
        return float(self.settings.server_lr or min(self.settings.lr_items, n_items))

    def exploration(self, server: IarServer, keys: Keys) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """``mu_d grad L_d + mu_n grad L_n`` ``[n_items, d]`` (Eq. 17) and the mixture's new state."""
        from threadpoolctl import threadpool_limits

        from fedrec.maths.dirichlet_clusters import cluster_items
        from fedrec.maths.matrix_entropy import dimension_loss, sample_loss

        chosen = self.settings
        step, mixture = np.zeros(server.items.shape), server.mixture
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

    def score(self, private: IarPrivate, model: LocalModel, block: Block, items: Int32 | None = None) -> Float32:
        owners = block.client_of_user
        networks = {**private.networks, "bias": private.bias}
        result = np.empty((block.n_users, block.n_items), np.float32)
        for warm in (True, False):  # clients without a table of their own yet, and those with one
            users = np.flatnonzero((private.own[owners] == 0) == warm)
            if not len(users):
                continue
            pairs: Any = PairedTables(None if warm else private.tables, model.items, model.changes)
            mine = {**networks, "bias": private.bias[users]}
            result[users] = self.backbone(warm).scores(private.users[users], pairs, mine, owners[users])
        return result if items is None else np.take_along_axis(result, items, axis=1)

    def client_bytes(self, world: World) -> int:
        dim = int(self.settings.dim)
        made = sum(int(np.prod(shape)) for shape in self.backbone(False).shapes(dim).values())
        return 32 * world.n_items + 16 * made + 256 * dim * min(world.n_items, 1024)

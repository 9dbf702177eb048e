"""Two views of every item: what Fed3CR, FedRAP and the methods that Fed3CR is plugged into share.

A client keeps a private item table V beside its copy C of the shared one (the consensus). Three pieces can be
switched on and off, on top of any score function (Fed3CR section V-E, Figure 8):

* adaptive consensus enhancement: ``C^E = W C`` with W made for the client from its prototypes (Eq. 9-12);
* consistency: both views rank items alike (Eq. 15-16);
* complementarity: the two views are orthogonal (Eq. 17-18).

The losses and their gradients are in :mod:`fedrec.learn.two_tables`; here are state, exchange and scoring.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.backbones import find as find_backbone
from fedrec.backbones.tables import ItemTable
from fedrec.core import disk_array, messages, wire
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user, shared
from fedrec.core.method import Keys, Method, Reply, Update
from fedrec.core.settings import FOLDER, MEMORY, TrainingSettings
from fedrec.data.ragged import Int32, Int64
from fedrec.learn.samples import draw
from fedrec.methods.embedding import EmbeddingSettings, ItemDownload, ItemServer, ItemUpload, fresh
from fedrec.threads import thread_count

if TYPE_CHECKING:
    from fedrec.learn.two_tables import Objective

MATRIX = "transfer_matrix"
FEW = 32
"""Clients whose generators are put together at a time."""
SUM_LEAST = 1 << 14
"""Numbers of a table that are worth a thread of their own."""


class TwoViewSettings(TrainingSettings):
    """Settings of methods with a shared and a private item table."""

    dim: int = Field(32, ge=1, description="embedding dimension d (section V-A4)")
    epochs: int = Field(10, ge=1, description="local epochs a round (E, section V-A4)")
    batch_size: int = Field(2048, ge=1, description="mini-batch size (section V-A4)")
    lr: float = Field(0.01, gt=0, description="rate of user vectors and score functions")
    lr_items: float = Field(0.5, ge=0, description="rate of both item tables")
    private_rate: float = Field(1.0, ge=0, description="rate of the private table as a multiple of lr_items")
    lr_transfer: float = Field(0.01, ge=0, description="rate of what makes the transfer matrix W")
    decay: float = Field(0.97, gt=0, le=1, description="factor of all rates from round to round (exponential schedule)")
    reduction: Literal["sum", "mean"] = Field(
        "sum",
        description="how samples of a mini-batch add up: sum (Eq. 7) or mean (FedRAP's code; wants large rates)",
    )
    optimizer: Literal["sgd"] = Field("sgd", description="plain gradient descent (section V-A4)")
    objective: Literal["bce"] = Field("bce", description="pointwise loss (Eq. 7)")
    engine: Literal["auto", "torch"] = Field(
        "auto", description="gradients written out where they are (auto), or torch's own (torch)"
    )
    init: Literal["positive", "uniform", "normal"] = Field(
        "uniform", description="fresh vectors: uniform on [0, scale], uniform on [-scale, scale], or normal"
    )
    init_scale: float = Field(0.2, gt=0, description="scale of fresh user vectors (weights of the score function)")
    shared_scale: float = Field(0.01, ge=0, description="scale of the fresh shared table")
    private_scale: float = Field(0.01, ge=0, description="scale of the fresh private table")
    transfer: Literal["none", "consensus", "unified", "ace"] = Field(
        "none",
        description="how the consensus is enhanced: not at all, by a learnt matrix (Figure 5a), by one matrix for "
        "both views (Figure 5b), or by ACE (Eq. 9-12)",
    )
    layers: int = Field(3, ge=2, le=4, description="layers of the transfer-matrix generator F (2, 3 or 4)")
    length_scale: float = Field(10.0, gt=0, description="factor of the cosines before the softmax of Eq. 15 (alpha)")
    norm_floor: float = Field(
        0.1,
        gt=0,
        description="length below which a vector counts as this long in cosines (their gradients stay bounded)",
    )
    beta_a: float = Field(0.0, ge=0, description="weight of consistency (Eq. 19)")
    beta_o: float = Field(0.0, ge=0, description="weight of complementarity (Eq. 19)")
    consistency: Literal["ranking", "ranking-printed", "similarity", "contrast"] = Field(
        "ranking",
        description="L_a with a softmax, L_a with Eq. 15 as printed, or the alternatives of Figure 4a (L_s, L_c)",
    )
    complementarity: Literal["orthogonal", "l2", "mutual-information"] = Field(
        "orthogonal", description="L_o, or the alternatives of Figure 4b (L_2, L_m)"
    )
    private_budget_mb: int = Field(
        4096,
        ge=0,
        description="memory for private tables; beyond it they live on disk (memory-mapped)",
        json_schema_extra=MEMORY,
    )
    private_dir: str | None = Field(
        None, description="where that is [the system's temporary folder]", json_schema_extra=FOLDER
    )


@dataclass(frozen=True)
class TwoViewPrivate(messages.Private):
    """User vectors (weights of an affine scorer), its biases, and V; never leave."""

    users: Float32 = per_user()  # [users, d]
    bias: Float32 = per_user()  # [users]
    tables: Float32 = per_client()  # [clients, n_items, d]


@dataclass(frozen=True)
class LocalViews(messages.Model):
    """What a client holds right after training: its own C, W's generator and score layers."""

    items: Float32 = shared()  # [n_items, d]
    changes: Rows | None = per_client()
    networks: dict[str, Array] = shared()
    network_changes: dict[str, Array] = per_client()  # [clients, ...]


class TwoViews(Method[ItemServer, TwoViewPrivate, ItemUpload, Any]):
    """Local training of both tables; C and the networks are averaged (Algorithm 1 of Fed3CR)."""

    Settings = TwoViewSettings
    Private, Upload, Download = TwoViewPrivate, ItemUpload, ItemDownload
    scorer: ClassVar[str] = "mf"

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        self.backbone = find_backbone(self.scorer_name())

    def scorer_name(self) -> str:
        """The backbone that scores fused items."""
        return self.scorer

    def extra(self, number: int) -> dict[str, float]:
        """Further terms of the objective in round ``number``."""
        return {}

    def objective(self, number: int) -> Objective:
        """The local objective of round ``number`` (1, 2, ...), with that round's rates."""
        from fedrec.learn.two_tables import Objective

        chosen = self.settings
        slower = chosen.decay ** (max(number, 1) - 1)
        return Objective(
            transfer=chosen.transfer,
            length_scale=chosen.length_scale,
            norm_floor=chosen.norm_floor,
            beta_a=chosen.beta_a,
            beta_o=chosen.beta_o,
            consistency=chosen.consistency,
            complementarity=chosen.complementarity,
            reduction=chosen.reduction,
            lr=chosen.lr * slower,
            lr_items=chosen.lr_items * slower,
            private_rate=chosen.private_rate,
            lr_transfer=chosen.lr_transfer * slower,
            epochs=chosen.epochs,
            batch_size=chosen.batch_size,
            **self.extra(number),
        )

    def start_server(self, world: World, keys: Keys) -> ItemServer:
        chosen = self.settings
        networks: dict[str, Array] = {}
        if self.backbone.kernel is None:
            one = np.array([keyed.stream(keys.seed, "networks")], np.uint64)
            networks = {name: values[0] for name, values in self.backbone.start(one, chosen.dim).items()}
        if chosen.transfer == "ace":
            from fedrec.learn.transfer import start_generator

            networks |= start_generator(keyed.stream(keys.seed, "transfer"), chosen.dim, chosen.layers)
        elif chosen.transfer != "none":
            networks[MATRIX] = np.eye(chosen.dim, dtype=np.float32)
        return ItemServer(fresh_table(world, keys, chosen, "items", chosen.shared_scale), networks)

    def start_clients(self, world: World, block: Block, keys: Keys) -> TwoViewPrivate:
        chosen = self.settings
        start = EmbeddingSettings(dim=chosen.dim, init=chosen.init, init_scale=chosen.init_scale)
        users = fresh(keys.users(block, "users"), chosen.dim, start)
        # every client starts from the same private table: what differs later is what it learnt itself
        table = fresh_table(world, keys, chosen, "private items", chosen.private_scale)
        budget = disk_array.Budget(chosen.private_budget_mb, chosen.private_dir)
        tables = disk_array.zeros((block.n_clients, *table.shape), budget)
        tables[:] = table
        return TwoViewPrivate(users, np.zeros(block.n_users, np.float32), tables)

    def download(self, server: ItemServer, clients: Int64) -> ItemDownload:
        return ItemDownload(server.items, server.networks)

    def local_update(
        self, private: TwoViewPrivate, download: Any, block: Block, keys: Keys
    ) -> Update[TwoViewPrivate, ItemUpload]:
        from fedrec.learn.two_tables import train_two_tables

        chosen, affine = self.settings, self.backbone.kernel == "affine"
        samples = draw(block, chosen.negatives, keys.clients(block, "negatives"))
        own = {"bias": private.bias} if affine else {}
        trained = train_two_tables(
            block, samples, private.users, download.items, private.tables, {**download.networks, **own},
            self.backbone, self.objective(keys.round), keys.clients(block, "batches"),
            engine=chosen.engine, device=self.device,
        )  # fmt: skip
        bias = private.bias + trained.networks.pop("bias") if affine else private.bias
        rows = whole_tables(trained.shared)
        local = LocalViews(download.items, rows, download.networks, trained.networks)
        kept = TwoViewPrivate(trained.users, bias, private.tables)
        return Update(kept, ItemUpload(rows, trained.networks), trained.loss, local)

    def aggregate(self, server: ItemServer, replies: Iterator[Reply[ItemUpload]], keys: Keys) -> ItemServer:
        """Means of C (Eq. 8) and of the networks, in 64 bits."""
        items = np.zeros(server.items.shape, np.float64)
        networks = {name: np.zeros(array.shape, np.float64) for name, array in server.networks.items()}
        count = 0
        for reply in replies:
            add_clients(items, wire.whole_tables(reply.upload.rows))
            for name, change in reply.upload.networks.items():
                add_clients(networks[name], change)
            count += len(reply.clients)
        if not count:
            return server
        return replace(
            server,
            items=(server.items + items / count).astype(np.float32),
            networks={
                name: (server.networks[name] + total / count).astype(np.float32) for name, total in networks.items()
            },
        )

    def score(self, private: TwoViewPrivate, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        owners = block.client_of_user
        matrices = self.matrices(private, model, block)
        changes: Rows | None = getattr(model, "changes", None)
        if self.backbone.kernel is None or self.settings.transfer == "unified":
            scores = self._fused_scores(private, model, block, changes, matrices)
        else:
            turned = private.users
            if matrices is not None:  # u . (W c) = (W^T u) . c
                turned = np.einsum("ud,udk->uk", private.users, matrices[owners]).astype(np.float32)
            scores = enlarged(model.items, changes, turned, owners)
            add_products(scores, private.tables, private.users, owners)
            scores += private.bias[:, None]
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def matrices(self, private: TwoViewPrivate, download: Any, block: Block) -> Float32 | None:
        """W of every client ``[clients, d, d]`` (Eq. 9-10), None where it is the identity."""
        if self.settings.transfer == "none":
            return None
        networks, clients = download.networks, block.n_clients
        own: dict[str, Array] = getattr(download, "network_changes", {})
        if self.settings.transfer != "ace":
            matrix = networks[MATRIX] + own[MATRIX] if MATRIX in own else networks[MATRIX]
            return np.asarray(np.broadcast_to(matrix, (clients, *matrix.shape[-2:])))
        import torch

        from fedrec.learn.transfer import generate

        changes: Rows | None = getattr(download, "changes", None)
        views = [
            prototypes(block, download.items, None if changes is None else table_of(changes)),
            prototypes(block, None, private.tables),
        ]
        inputs = torch.from_numpy(np.concatenate(views, 1)[:, None])
        names = [name for name in networks if name.startswith("transfer_")]
        found = np.empty((clients, self.settings.dim, self.settings.dim), np.float32)
        with torch.no_grad():  # few clients at a time: a generator is larger than a table
            for few in range(0, clients, FEW):
                part = slice(few, few + FEW)
                layers = {n: torch.from_numpy(networks[n]) for n in names}
                layers = {
                    n: layer + torch.from_numpy(own[n][part]) if n in own else layer for n, layer in layers.items()
                }
                found[part] = generate(inputs[part], layers)[0].numpy()
        return found

    def _fused_scores(
        self,
        private: TwoViewPrivate,
        download: Any,
        block: Block,
        changes: Rows | None,
        matrices: Float32 | None,
    ) -> Float32:
        """Scores through each client's fused table, for scorers that are not linear in the item."""
        result = np.empty((block.n_users, block.n_items), np.float32)
        layers = {name: array for name, array in download.networks.items() if not name.startswith("transfer_")}
        moved: dict[str, Array] = getattr(download, "network_changes", {})
        for client in range(block.n_clients):
            fused = self.fused(private, download, changes, matrices, client)
            own = slice(block.user_start[client], block.user_start[client + 1])
            mine = {name: array + moved[name][client] if name in moved else array for name, array in layers.items()}
            if self.backbone.kernel == "affine":
                mine["bias"] = private.bias[own]
            zeros = np.zeros(own.stop - own.start, np.int64)
            result[own] = self.backbone.scores(private.users[own], fused, mine or None, zeros)
        return result

    def fused(
        self,
        private: TwoViewPrivate,
        download: Any,
        changes: Rows | None,
        matrices: Float32 | None,
        client: int,
    ) -> Float32:
        """One client's fused table V^F ``[n_items, d]`` (Eq. 12)."""
        consensus, personal = self.both_views(private, download, changes, matrices, client)
        return consensus + personal

    def both_views(
        self,
        private: TwoViewPrivate,
        download: Any,
        changes: Rows | None,
        matrices: Float32 | None,
        client: int,
    ) -> tuple[Float32, Float32]:
        """One client's enhanced consensus C^E and personal table V, ``[n_items, d]`` each."""
        consensus = download.items if changes is None else download.items + table_of(changes)[client]
        personal = private.tables[client]
        if matrices is not None:
            consensus = consensus @ matrices[client].T
            if self.settings.transfer == "unified":
                personal = personal @ matrices[client].T
        return consensus, personal

    def overlap(
        self, private: TwoViewPrivate, download: Any, block: Block, depth: int = 50, p: float = 0.99
    ) -> NDArray[np.float64]:
        """Rank-biased overlap of each user's top lists in the two views ``[users]`` (Figure 6)."""
        from fedrec.maths.rank_overlap import rank_biased_overlap, top

        changes, matrices = getattr(download, "changes", None), self.matrices(private, download, block)
        found = np.zeros(block.n_users)
        for user, client in enumerate(block.client_of_user):
            consensus, personal = self.both_views(private, download, changes, matrices, int(client))
            vector = private.users[user]
            lists = top(np.stack([consensus @ vector, personal @ vector]), depth)
            found[user] = rank_biased_overlap(lists[:1], lists[1:], p)[0]
        return found

    def correlation(self, private: TwoViewPrivate, download: Any, block: Block, client: int) -> NDArray[np.float64]:
        """The correlation matrix ``C^E^T V`` ``[d, d]`` of one client (Eq. 17, Figure 7)."""
        changes, matrices = getattr(download, "changes", None), self.matrices(private, download, block)
        consensus, personal = self.both_views(private, download, changes, matrices, client)
        return np.asarray(consensus.astype(np.float64).T @ personal.astype(np.float64))

    def client_bytes(self, world: World) -> int:
        from fedrec.learn.transfer import generator_sizes

        dim = self.settings.dim
        table = 4 * world.n_items * dim
        made = 0
        if self.settings.transfer == "ace":
            made = 4 * sum((a + 1) * b for a, b in generator_sizes(dim, self.settings.layers))
        return 3 * table + 3 * made + 16 * world.n_items


def fresh_table(world: World, keys: Keys, chosen: Any, purpose: str, scale: float) -> Float32:
    """A fresh item table ``[n_items, d]``; zeros for a scale of 0."""
    if not scale:
        return np.zeros((world.n_items, chosen.dim), np.float32)
    base = keyed.stream(keys.seed, keys.round, purpose)
    start = EmbeddingSettings(dim=chosen.dim, init=chosen.init, init_scale=scale)
    return fresh(keyed.streams(base, np.arange(world.n_items, dtype=np.uint64)), chosen.dim, start)


def whole_tables(tables: Float32) -> Rows:
    """Whole tables ``[clients, n_items, d]`` as changed rows; a view."""
    clients, n_items, dim = tables.shape
    start = np.arange(clients + 1, dtype=np.int64) * n_items
    ids = np.tile(np.arange(n_items, dtype=np.int32), clients)
    return Rows(start, ids, tables.reshape(-1, dim), n_items)


def table_of(rows: Rows) -> Float32:
    """The way back from :func:`whole_tables`; a view."""
    return rows.values.reshape(rows.n_clients, rows.n_items, -1)


def prototypes(block: Block, common: Float32 | None, tables: Float32 | None) -> Float32:
    """Mean vectors of the interacted items of each client ``[clients, d]`` (Eq. 10).

    The table is ``common`` ``[n_items, d]``, ``tables`` ``[clients, n_items, d]``, or their sum.
    """
    start = block.train.start[block.user_start]
    dim = (common if common is not None else tables).shape[-1]  # type: ignore[union-attr]
    found = np.zeros((block.n_clients, dim), np.float32)
    for client in range(block.n_clients):
        ids = block.train.values[start[client] : start[client + 1]]
        if not len(ids):
            continue
        if common is not None:
            found[client] += common[ids].mean(0)
        if tables is not None:
            found[client] += tables[client][ids].mean(0)
    return found


def enlarged(items: Float32, changes: Rows | None, users: Float32, owners: Int64) -> Float32:
    """``u . c`` for every user and item, with each client's own changes on top: ``[users, n_items]``."""
    if changes is None:
        return users @ items.T
    if len(changes.ids) != changes.n_clients * changes.n_items:
        return ItemTable(items, changes).scores(users, owners)
    scores = np.asarray(users @ items.T)
    add_products(scores, table_of(changes), users, owners)
    return scores


def add_products(scores: Float32, tables: Float32, users: Float32, owners: Int64) -> None:
    """``scores[u] += tables[owners[u]] u`` for every user, in place; as fast as memory is read."""
    for user, client in enumerate(owners):
        scores[user] += tables[client] @ users[user]


def add_clients(total: NDArray[np.float64], changes: Float32) -> None:
    """``total += the sum over clients``, in 64 bits; threads take parts of the table, so that sums stay the same."""
    threads = thread_count()
    into, each = total.reshape(-1), changes.reshape(len(changes), -1)
    size = max(SUM_LEAST, -(-len(into) // threads))

    def part(first: int) -> None:
        own = slice(first, first + size)
        into[own] += each[:, own].sum(0, dtype=np.float64)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(part, first) for first in range(0, len(into), size)]:
            done.result()

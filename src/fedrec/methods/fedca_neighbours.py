"""FedCA for very many clients: the same round with few candidates and few rows (``--set neighbours=32``).

Exact FedCA keeps a whole table for every client and compares all pairs: 100,000 clients with 20,000 items
would need 126 GB and 10^10 pairs. Here a table is the initial one plus the ``rows`` rows that differ most,
and a client is mixed from its ``neighbours`` best candidates (:mod:`fedrec.maths.neighbours`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, Limit, per_client, per_interaction, per_user, shared
from fedrec.core.method import Keys, Reply, Update
from fedrec.data.ragged import Int32, Int64, consecutive
from fedrec.errors import BadInput
from fedrec.methods.embedding import EmbeddingMethod, fresh_items
from fedrec.methods.fedca import FedCa, Told, aggregated, collected


@dataclass(frozen=True)
class FewServer:
    """The initial table, and every client's next mixture as differences from it."""

    base: Float32  # [n_items, d]
    ids: Int32  # [clients, rows]
    values: Float32  # [clients, rows, d]


@dataclass(frozen=True)
class FewPrivate(messages.Private):
    """User vectors, and the client's own last table as differences."""

    users: Float32 = per_user()  # [users, d]
    ids: Int32 = per_client()  # [clients, rows]
    values: Float32 = per_client()  # [clients, rows, d]


@dataclass(frozen=True)
class FewDownload(messages.Download):
    """The initial table (the same in every round), and the client's own mixture."""

    base: Float32 = shared()  # [n_items, d]
    ids: Int32 = per_client(low=0, high=Limit.ITEMS)  # [clients, rows]
    values: Float32 = per_client()  # [clients, rows, d]


@dataclass(frozen=True)
class FewUpload(messages.Upload):
    """The rows that differ most, and what stands for the data."""

    ids: Int32 = per_client(protect=False, low=0, high=Limit.ITEMS)  # [clients, rows]
    values: Float32 = per_client()  # [clients, rows, d]
    sizes: NDArray[np.int32] = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients] |D_u|
    tickets: NDArray[np.uint32] | None = per_client(protect=False)  # [clients]
    subspaces: Float32 | None = per_interaction(protect=False, counted_by="sizes")  # [interactions, k] X_u
    components: Float32 | None = per_client(protect=False)  # never here: one shape for both modes


class FedCaNeighbours(FedCa):
    """The approximate mode; made by ``FedCa(settings)`` where ``settings.neighbours`` is not 0."""

    Private: ClassVar[type[Any]] = FewPrivate
    Upload: ClassVar[type[Any]] = FewUpload
    Download: ClassVar[type[Any]] = FewDownload

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        chosen = self.settings
        if "code" in (chosen.variant_similarity, chosen.variant_complementarity):
            raise BadInput("neighbours works with the paper's similarity and complementarity; leave variant_... out")
        if chosen.backbone != "mf":
            raise BadInput(f"neighbours works with backbone=mf only, not {chosen.backbone}")
        if chosen.noise or chosen.clip or chosen.compress != "none":
            raise BadInput(
                "neighbours sends only the rows that differ, which noise, clip and compress cannot protect; "
                "use neighbours=0"
            )

    def start_server(self, world: World, keys: Keys) -> FewServer:
        from fedrec.maths.neighbours import FewRows

        base = fresh_items(world, keys, self.settings)
        none = FewRows.none(world.n_clients, self.room(world.n_items), base.shape[1], world.n_items)
        return FewServer(base, none.ids, none.values)

    def start_clients(self, world: World, block: Block, keys: Keys) -> FewPrivate:
        from fedrec.maths.neighbours import FewRows

        users = EmbeddingMethod.start_clients(self, world, block, keys).users
        none = FewRows.none(block.n_clients, self.room(world.n_items), self.settings.dim, world.n_items)
        return FewPrivate(users, none.ids, none.values)

    def room(self, n_items: int) -> int:
        return min(int(self.settings.rows), n_items)

    def download(self, server: FewServer, clients: Int64) -> FewDownload:  # type: ignore[override]
        where: Any = slice(clients[0], clients[-1] + 1) if consecutive(clients) else clients
        return FewDownload(server.base, server.ids[where], server.values[where])

    def tables(self, private: FewPrivate, download: FewDownload) -> Float32:
        """Section 5.1.3's blend, written out: ``[clients, n_items, d]``."""
        from fedrec.maths.neighbours import FewRows

        rho, n_items = np.float32(self.settings.rho), len(download.base)
        blend = FewRows(download.ids, (1 - rho) * download.values, n_items).added(download.base)
        blend += FewRows(private.ids, rho * private.values, n_items).added(np.zeros_like(download.base))
        return blend

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        from fedrec.maths.neighbours import few_rows

        tables = self.tables(private, download)
        trained = self.train(private.users, tables, {}, block, keys, proximal=self.settings.proximal)
        owner = np.repeat(np.arange(block.n_clients), np.diff(trained.rows.start))
        tables[owner, trained.rows.ids] += trained.rows.values
        subspaces, _ = self.told(tables, trained.rows, block, keys)
        tables -= download.base
        few = few_rows(tables, private.ids.shape[1])
        upload = FewUpload(
            few.ids, few.values, block.sizes.astype(np.int32), self.tickets(block, keys), subspaces, None
        )
        local = messages.held(FewDownload(download.base, few.ids, few.values))
        return Update(FewPrivate(trained.users, few.ids, few.values), upload, trained.loss, local)

    def aggregate(self, server: Any, replies: Iterator[Reply[Any]], keys: Keys) -> Any:
        from fedrec.maths.neighbours import FewRows, mix_few

        ids, values = server.ids.copy(), server.values.copy()
        told: list[FewUpload] = []
        who: list[Int64] = []
        for reply in replies:
            ids[reply.clients], values[reply.clients] = reply.upload.ids, reply.upload.values
            empty = FewUpload(
                ids[:0], values[:0], reply.upload.sizes, reply.upload.tickets, reply.upload.subspaces, None
            )
            told.append(empty)
            who.append(reply.clients)
        if not told:
            return server
        answered, told_by = np.concatenate(who), collected(told)
        chosen = aggregated(answered, told_by.tickets, self.settings.r)
        clients = answered[chosen]
        n_items = len(server.base)
        everyone = consecutive(clients) and len(clients) == len(ids)
        tables = FewRows(ids, values, n_items) if everyone else FewRows(ids[clients], values[clients], n_items)
        others, weights = self.weighed(tables, told_by.take(chosen), keys)
        mixed = mix_few(tables, others, weights, ids.shape[1])
        if everyone:
            return FewServer(server.base, mixed.ids, mixed.values)
        ids[clients], values[clients] = mixed.ids, mixed.values
        return FewServer(server.base, ids, values)

    def weighed(self, tables: Any, told: Told, keys: Keys) -> tuple[Int64, Float32]:
        """Candidates ``[n, neighbours]`` and their weights."""
        from fedrec.maths import neighbours

        chosen = self.settings
        swapped = chosen.weights == "code"
        similar, complementary = (chosen.beta, chosen.alpha) if swapped else (chosen.alpha, chosen.beta / 2)
        proxy = told.sizes / told.sizes.sum()
        key = keyed.stream(keys.seed, keys.round, "sketch")
        sketches = neighbours.sketch(tables, key) if similar else None
        others = neighbours.candidates(
            sketches, told.subspaces, told.start, proxy, similar, complementary,
            chosen.neighbours, chosen.complementarity, self.device,
        )  # fmt: skip
        weights = neighbours.sparse_weights(
            tables, told.subspaces, told.start, others, proxy, similar, complementary,
            chosen.complementarity, 1 + similar if chosen.normalise == "eq5" else 1.0,
        )  # fmt: skip
        return others, weights

    def score(self, private: Any, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        users, owner = private.users, block.client_of_user
        rho = np.float32(self.settings.rho)
        scores = users @ model.base.T
        scores += (1 - rho) * self._own_scores(users, model, owner, scores.shape[1])
        scores += rho * self._own_scores(users, private, owner, scores.shape[1])
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def _own_scores(self, users: Float32, listed: Any, owner: Int64, n_items: int) -> Float32:
        """Scores of the listed rows alone ``[users, n_items]``."""
        found = np.zeros((len(users), n_items + 1), np.float32)
        inner = np.einsum("urd,ud->ur", listed.values[owner], users)
        np.put_along_axis(found, listed.ids[owner].astype(np.int64), inner, axis=1)
        return found[:, :-1]

    def client_bytes(self, world: World) -> int:
        return EmbeddingMethod.client_bytes(self, world) + 16 * world.n_items * self.settings.dim

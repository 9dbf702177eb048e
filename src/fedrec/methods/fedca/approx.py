"""FedCA for very many clients: the same round with few candidates and few rows.

Exact FedCA keeps a whole table for every client and compares all pairs: 100,000 clients with 20,000 items
would need 126 GB and 10^10 pairs. Here a table is the initial one plus the ``rows`` rows that differ most,
and a client is mixed from its ``neighbours`` best candidates (:mod:`fedrec.maths.neighbours`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.kinds import PlacesIn
from fedrec.core.messages import Float32, Limit, per_client, per_interaction, per_user, shared
from fedrec.core.method import Card, Keys, Reply, Update
from fedrec.data.ragged import Int32, Int64
from fedrec.errors import BadInput
from fedrec.maths.neighbours import FewRows, candidates, few_rows, mix_few, sketch, sparse_weights
from fedrec.methods._shared.embedding import EmbeddingMethod, fresh_items
from fedrec.methods._shared.personal import of_clients, tickets
from fedrec.methods.fedca.data_part import data_part
from fedrec.methods.fedca.messages import Reported
from fedrec.methods.fedca.settings import FedCaApproxSettings


@dataclass(frozen=True)
class FewServer:
    """The initial table, and every client's next mixture as differences from it."""

    base: Float32  # [n_items, d]
    ids: Annotated[Int32, PlacesIn("base", nobody=1)]  # [clients, rows]
    values: Float32  # [clients, rows, d]


@dataclass(frozen=True)
class FewPrivate(messages.Private):
    """User vectors, and the client's own last table as differences."""

    users: Float32 = per_user()  # [users, d]
    ids: Int32 = per_client(low=0, high=Limit.ITEMS)  # [clients, rows]
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
    tickets: NDArray[np.uint32] | None = per_client(protect=False, public=True)  # [clients]
    subspaces: Float32 | None = per_interaction(protect=False, counted_by="sizes")  # [interactions, k] X_u
    components: Float32 | None = per_client(protect=False)  # never here: one shape for both modes
    gains: Float32 | None = per_client(protect=False)  # nor this


class FedCaApprox(EmbeddingMethod[FewServer, FewPrivate, FewUpload, FewDownload]):
    """FedCA with tables of few rows and few candidates each; with room for all it is FedCA."""

    name = "fedca-approx"
    Settings = FedCaApproxSettings
    Private, Upload, Download = FewPrivate, FewUpload, FewDownload
    also_sent = ("ids", "values")
    item_numbers = ("ids",)
    small: ClassVar[dict[str, Any]] = {"neighbours": 6, "rows": 20}
    enough: ClassVar[dict[str, Any]] = {"alpha": 0.1, "beta": 0.1, "rho": 0.0, "r": 1.0}
    card = Card(
        title="FedCA for very many clients: each mixes the tables of a few candidates, and tables keep a few rows",
        paper="Zhang et al., ACM TOIS 44(2), 2026; the approximation is not in the paper",
        private="user vectors, interactions, the client's own last table",
        upload="the rows of the item table that differ most from the initial one, k left singular vectors of the "
        "interacted items' embeddings, the number of training interactions",
        sum_suffices=False,
        departures=(
            "tables are cut to the rows that differ most, and weights to the best candidates; the ids of these rows "
            "leave the client",
            "candidates are looked for with random sketches of the tables",
            "otherwise as fedca, but only with the paper's similarity and complementarity and backbone=mf",
        ),
    )

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        chosen = self.settings
        if "code" in (chosen.variant_similarity, chosen.variant_complementarity):
            raise BadInput("fedca-approx has the paper's similarity and complementarity; leave variant_... out")
        kept = FedCaApproxSettings()
        for name in ("blend", "proxy", "train_from", "averaged", "own_term", "standardised", "variant_similarity"):
            if getattr(chosen, name) != getattr(kept, name):
                raise BadInput(f"fedca-approx has {name}={getattr(kept, name)} only; leave it out, or use fedca")
        if chosen.auto:
            raise BadInput("fedca-approx needs numbers for alpha and beta; auto is fedca's")
        if chosen.backbone != "mf":
            raise BadInput(f"fedca-approx works with backbone=mf only, not {chosen.backbone}")
        if chosen.noise or chosen.clip or chosen.compress != "none":
            raise BadInput(
                "fedca-approx sends only the rows that differ, and noise, clip and compress cannot hide which; use "
                "fedca"
            )

    def start_server(self, world: World, keys: Keys) -> FewServer:
        base = fresh_items(world, keys, self.settings)
        none = FewRows.none(world.n_clients, self.room(world.n_items), base.shape[1], world.n_items)
        return FewServer(base, none.ids, none.values)

    def start_clients(self, world: World, block: Block, keys: Keys) -> FewPrivate:
        users = super().start_clients(world, block, keys).users
        none = FewRows.none(block.n_clients, self.room(world.n_items), self.settings.dim, world.n_items)
        return FewPrivate(users, none.ids, none.values)

    def room(self, n_items: int) -> int:
        return min(int(self.settings.rows), n_items)

    def download(self, server: FewServer, clients: Int64) -> FewDownload:
        return FewDownload(server.base, of_clients(server.ids, clients), of_clients(server.values, clients))

    def new_client(self, server: FewServer) -> FewDownload:
        """The mean of all clients' tables, in as many rows as it takes."""
        n_items, dim = server.base.shape
        total = np.zeros((n_items + 1, dim))  # the extra row takes what is not there
        np.add.at(total, server.ids, server.values)
        mean = (total[:-1] / len(server.ids)).astype(np.float32)
        return FewDownload(server.base, np.arange(n_items, dtype=np.int32)[None], mean[None])

    def tables(self, private: FewPrivate, download: FewDownload) -> Float32:
        """Section 5.1.3's blend, written out: ``[clients, n_items, d]``."""
        rho, n_items = np.float32(self.settings.rho), len(download.base)
        blend = FewRows(download.ids, (1 - rho) * download.values, n_items).added(download.base)
        blend += FewRows(private.ids, rho * private.values, n_items).added(np.zeros_like(download.base))
        return blend

    def local_update(
        self, private: FewPrivate, download: FewDownload, block: Block, keys: Keys
    ) -> Update[FewPrivate, FewUpload]:
        tables = self.tables(private, download)
        trained = self.train(private.users, tables, {}, block, keys, proximal=self.settings.proximal)
        owner = np.repeat(np.arange(block.n_clients), np.diff(trained.rows.start))
        tables[owner, trained.rows.ids] += trained.rows.values
        data = data_part(tables, trained.rows, block, keys, self.settings)
        tables -= download.base
        few = few_rows(tables, private.ids.shape[1])
        drawn = None if self.settings.r == 1 else tickets(block, keys)
        upload = FewUpload(few.ids, few.values, block.sizes.astype(np.int32), drawn, **data, gains=None)
        local = messages.held(FewDownload(download.base, few.ids, few.values))
        return Update(FewPrivate(trained.users, few.ids, few.values), upload, trained.loss, local)

    def aggregate(self, server: FewServer, replies: Iterator[Reply[FewUpload]], keys: Keys) -> FewServer:
        ids, values = server.ids.copy(), server.values.copy()
        small: list[Reply[FewUpload]] = []
        for reply in replies:
            ids[reply.clients], values[reply.clients] = reply.upload.ids, reply.upload.values
            small.append(Reply(reply.clients, replace(reply.upload, ids=ids[:0], values=values[:0])))
        if not small:
            return server
        chosen = Reported.of(small).aggregated(self.settings.r)
        clients = chosen.clients
        tables = FewRows(of_clients(ids, clients), of_clients(values, clients), len(server.base))
        others, weights = self.weights(tables, chosen, keys)
        mixed = mix_few(tables, others, weights, ids.shape[1])
        ids[clients], values[clients] = mixed.ids, mixed.values
        return FewServer(server.base, ids, values)

    def weights(self, tables: FewRows, reported: Reported, keys: Keys) -> tuple[Int64, Float32]:
        """Candidates ``[n, neighbours]`` and their weights: Eq. (6), (7) and (8) among them alone."""
        chosen = self.settings
        code = chosen.weights == "code"  # alpha and beta swapped
        similar, complementary = (chosen.beta, chosen.alpha) if code else (chosen.alpha, chosen.beta / 2)
        proxy = reported.sizes / reported.sizes.sum()
        key = keyed.stream(keys.seed, keys.round, "sketch")
        sketches = sketch(tables, key) if similar else None
        others = candidates(
            sketches, reported.subspaces, reported.start, proxy, similar, complementary,
            chosen.neighbours, chosen.complementarity, self.device,
        )  # fmt: skip
        weights = sparse_weights(
            tables, reported.subspaces, reported.start, others, proxy, similar, complementary,
            chosen.complementarity, 1 + similar if chosen.normalise == "eq5" else 1.0,
        )  # fmt: skip
        return others, weights

    def score(self, private: FewPrivate, model: Any, block: Block, items: Int32 | None = None) -> Float32:
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
        return super().client_bytes(world) + 16 * world.n_items * int(self.settings.dim)

"""FedCA: personal mixtures of item tables, weighted by model similarity and data complementarity.

Zhang et al., "Beyond Similarity: Personalized Federated Recommendation with Composite Aggregation", ACM
Transactions on Information Systems 44(2), 2026. Symbols: user vector p_u, the client's item table Q_u, what it
tells of its data X_u, the server's weights w_u.

One round (Algorithm 1). A client blends its own last table with the mixture it receives (section 5.1.3),
trains (Eq. 12, 13), and sends its table and X_u. The server computes similarity (Eq. 6) and complementarity
(Eq. 7) of all pairs, solves Eq. (8) for everybody at once and mixes: Q_u^g = sum_v w_uv Q_v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, Limit, Rows, per_client, per_interaction, per_user
from fedrec.core.method import Card, Keys, Reply, Update
from fedrec.data.ragged import Int32, Int64, consecutive, offsets, segments
from fedrec.methods.embedding import EmbeddingMethod, EmbeddingSettings, fresh_items


class FedCaSettings(EmbeddingSettings):
    """Settings of FedCA; defaults as section 6 gives them for most data (the recipe refines per data set)."""

    alpha: float = Field(0.5, ge=0, description="weight of model similarity (Eq. 4, 5, 8)")
    beta: float = Field(0.2, ge=0, description="weight of data complementarity (Eq. 4, 5, 8)")
    rho: float = Field(0.8, ge=0, le=1, description="share of the client's own last table in the blend (section 5.1.3)")
    r: float = Field(0.6, gt=0, le=1, description="share of a round's clients that is aggregated (section 6.1)")
    k: int = Field(4, ge=1, description="singular vectors that a client sends (section 5.1.1)")
    complementarity: Literal["cos", "sin", "raw"] = Field(
        "cos", description="Table 11: cosine or sine of the mean angle, or cosine without the SVD (raw)"
    )
    normalise: Literal["eq8", "eq5"] = Field(
        "eq8", description="Eq. (8), or with the factor (1 + alpha) of Eq. (5) on the quadratic term"
    )
    proximal: float = Field(0.0, ge=0, description="mu of the proximal term mu/2 ||Q - Q_start||^2 (Table 9)")
    noise_svd: float = Field(0.0, ge=0, description="scale of Laplace noise on the SVD part (delta', Table 6)")
    variant_similarity: Literal["paper", "code"] = Field(
        "paper", description="Eq. (6) on whole tables, or the public code's one-component projections"
    )
    variant_complementarity: Literal["paper", "code"] = Field(
        "paper", description="left singular vectors (Eq. 7), or the public code's matched principal components"
    )
    weights: Literal["paper", "code"] = Field(
        "paper", description="Eq. (8), or the public code's: alpha and beta swapped, both terms doubled"
    )
    neighbours: int = Field(
        0, ge=0, description="candidates of each client in the approximate mode for very many clients; 0 is exact"
    )
    rows: int = Field(256, ge=1, description="rows that a table keeps in the approximate mode (see neighbours)")


@dataclass(frozen=True)
class FedCaServer:
    """What every client receives next, and how it came about."""

    tables: Float32  # [clients, n_items, d] Q_u^g
    networks: dict[str, Array]  # [clients, ...]
    first: Float32  # [n_items, d] the table everybody started from
    weights: Float32  # [clients, clients] W of the last round in which a client was aggregated


@dataclass(frozen=True)
class FedCaPrivate(messages.Private):
    """User vectors, and the client's own model after its last training (for the blend)."""

    users: Float32 = per_user()  # [users, d]
    tables: Float32 | None = per_client()  # [clients, n_items, d]; None where rho = 0
    networks: dict[str, Array] = per_client()  # [clients, ...]


@dataclass(frozen=True)
class FedCaDownload(messages.Download):
    """The client's own mixture."""

    tables: Float32 = per_client()  # [clients, n_items, d]
    networks: dict[str, Array] = per_client()  # [clients, ...]


@dataclass(frozen=True)
class FedCaUpload(messages.Upload):
    """The whole table, and what stands for the data: |I_u| x k numbers (Table 7: m f + |I_u| k)."""

    tables: Float32 = per_client()  # [clients, n_items, d] Q_u
    networks: dict[str, Array] = per_client()  # [clients, ...]
    sizes: NDArray[np.int32] | None = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients] |D_u|
    tickets: NDArray[np.uint32] | None = per_client(protect=False)  # [clients] the lowest share r is aggregated
    # [interactions, k] X_u; has noise of its own
    subspaces: Float32 | None = per_interaction(protect=False, counted_by="sizes")
    components: Float32 | None = per_client(protect=False)  # [clients, k, d] instead of X_u, as coded


class FedCa(EmbeddingMethod[Any, Any, Any, Any]):
    """Composite aggregation of whole tables, one mixture for each client."""

    name = "fedca"
    Settings: ClassVar[type[Any]] = FedCaSettings
    Private: ClassVar[type[Any]] = FedCaPrivate
    Upload: ClassVar[type[Any]] = FedCaUpload
    Download: ClassVar[type[Any]] = FedCaDownload
    also_sent = ("tables", "networks")
    enough: ClassVar[dict[str, Any]] = {"alpha": 0.1, "beta": 0.1, "rho": 0.0, "r": 1.0}
    card = Card(
        title="FedCA: personal mixtures of item tables by model similarity and data complementarity",
        paper="Zhang et al., ACM TOIS 44(2), 2026",
        private="user vectors, interactions, the client's own last table",
        upload="the whole item table (and network), k left singular vectors of the interacted items' embeddings, "
        "the number of training interactions",
        sum_suffices=False,
        departures=(
            "Eq. (8) is solved exactly by projection onto the simplex instead of by a QP solver; Eq. (8) drops the "
            "factor 1 + alpha of Eq. (5), which normalise=eq5 keeps",
            "signs of singular vectors, which the paper leaves open, are such that a column sums to at least zero",
            "the blend (rho) is applied before local training, not only at inference, to the network as well; the "
            "proximal term (Table 9) pulls towards the table that training starts from",
            "raw of Table 11 is read as: the interacted items' embeddings themselves, columns scaled to length one",
            "public code: alpha and beta swapped and doubled (weights=code), one-component PCA similarity "
            "(variant_similarity=code), matched principal components (variant_complementarity=code; matching "
            "without regard to sign is our reading); aggregated share 0.1 there, 0.6 in the paper (r)",
            "where a client holds several users, an item counts once for each of them in I_u",
            "with neighbours (not in the paper) tables are cut to the rows that differ most and weights to the best "
            "candidates; ids of rows leave the client",
            "|D_u| and a random ticket (8 bytes together) leave the client beside what Table 7 counts",
        ),
    )

    def __new__(cls, settings: Any = None, device: str = "cpu") -> FedCa:
        """With ``neighbours`` the approximate mode of this method, whose state and messages differ."""
        if cls is FedCa and settings is not None and settings.neighbours:
            from fedrec.methods.fedca_neighbours import FedCaNeighbours

            return super().__new__(FedCaNeighbours)
        return super().__new__(cls)

    def start_server(self, world: World, keys: Keys) -> Any:
        first = fresh_items(world, keys, self.settings)
        one = np.array([keyed.stream(keys.seed, "networks")], np.uint64)
        networks = {
            name: np.repeat(values, world.n_clients, axis=0)
            for name, values in self.backbone.start(one, self.settings.dim).items()
        }
        # everybody starts from the same table: a view, so that it takes no memory before it differs
        tables = np.broadcast_to(first, (world.n_clients, *first.shape))
        return FedCaServer(tables, networks, first, np.eye(world.n_clients, dtype=np.float32))

    def start_clients(self, world: World, block: Block, keys: Keys) -> Any:
        users = super().start_clients(world, block, keys).users
        if self.settings.rho == 0:
            return FedCaPrivate(users, None, {})
        one = np.array([keyed.stream(keys.seed, "networks")], np.uint64)
        networks = {
            name: np.repeat(values, block.n_clients, axis=0)
            for name, values in self.backbone.start(one, self.settings.dim).items()
        }
        table = fresh_items(world, keys, self.settings)
        return FedCaPrivate(users, np.repeat(table[None], block.n_clients, axis=0), networks)

    def download(self, server: FedCaServer, clients: Int64) -> FedCaDownload:
        where: Any = slice(clients[0], clients[-1] + 1) if consecutive(clients) else clients
        return FedCaDownload(server.tables[where], {name: n[where] for name, n in server.networks.items()})

    def local_update(
        self, private: FedCaPrivate, download: FedCaDownload, block: Block, keys: Keys
    ) -> Update[FedCaPrivate, FedCaUpload]:
        tables, networks = self.blended(private, download)
        trained = self.train(private.users, tables, networks, block, keys, proximal=self.settings.proximal)
        owner = np.repeat(np.arange(block.n_clients), np.diff(trained.rows.start))
        tables[owner, trained.rows.ids] += trained.rows.values
        networks = {name: networks[name] + change for name, change in trained.networks.items()}
        subspaces, components = self.told(tables, trained.rows, block, keys)
        upload = FedCaUpload(
            tables=tables,
            networks=networks,
            sizes=block.sizes.astype(np.int32),
            tickets=self.tickets(block, keys),
            subspaces=subspaces,
            components=components,
        )
        keep = self.settings.rho > 0
        kept = FedCaPrivate(trained.users, tables if keep else None, networks if keep else {})
        return Update(kept, upload, trained.loss, messages.held(FedCaDownload(tables, networks)))

    def blended(self, private: FedCaPrivate, download: FedCaDownload) -> tuple[Float32, dict[str, Array]]:
        """Section 5.1.3: ``rho Q_u + (1 - rho) Q_u^g``, written over the client's own last table."""
        rho = np.float32(self.settings.rho)
        if private.tables is None:
            return download.tables.copy(), dict(download.networks)
        own = private.tables
        for client in range(len(own)):  # one table of working memory
            own[client] *= rho
            own[client] += (1 - rho) * download.tables[client]
        mixed = {n: rho * private.networks[n] + (1 - rho) * other for n, other in download.networks.items()}
        return own, mixed

    def told(self, tables: Float32, rows: Rows, block: Block, keys: Keys) -> tuple[Float32 | None, Float32 | None]:
        """X_u of each client, from its trained table (section 5.1.1)."""
        from fedrec.maths.subspaces import left_singular, principal_components, unit_columns

        if self.settings.beta == 0 and self.settings.weights == "paper":
            return None, None
        if self.settings.variant_complementarity == "code":  # items of the training batch, negatives included
            owner = np.repeat(np.arange(block.n_clients), np.diff(rows.start))
            return None, principal_components(tables[owner, rows.ids], rows.start, self.settings.k)
        owner = block.client_of_user[block.train.owners]
        start = block.train.start[block.user_start]
        interacted = tables[owner, block.train.values]  # [interactions, d] Q_u^s
        if self.settings.complementarity == "raw":
            told = unit_columns(interacted, start)
        else:
            told = left_singular(interacted, start, self.settings.k)
        if self.settings.noise_svd > 0:
            streams = keys.clients(block, "noise svd")
            told += (self.settings.noise_svd * laplace_rows(streams, start, told.shape[1])).astype(np.float32)
        return told, None

    def tickets(self, block: Block, keys: Keys) -> NDArray[np.uint32] | None:
        """A random number each: the server aggregates the lowest, so the choice ignores the clients' order."""
        if self.settings.r == 1:
            return None
        return (keys.clients(block, "aggregated") >> np.uint64(32)).astype(np.uint32)

    def aggregate(self, server: FedCaServer, replies: Iterator[Reply[FedCaUpload]], keys: Keys) -> FedCaServer:
        from fedrec.maths.composite import mix, settled

        tables = np.empty(server.tables.shape, np.float32)  # pages are taken as clients answer
        networks = {name: values.copy() for name, values in server.networks.items()}
        told: list[tuple[Int64, FedCaUpload]] = []
        for reply in replies:
            tables[reply.clients] = reply.upload.tables
            for name, values in reply.upload.networks.items():
                networks[name][reply.clients] = values
            told.append((reply.clients, replace(reply.upload, tables=_NONE, networks={})))
        if not told:
            return server
        answered = np.concatenate([clients for clients, _ in told])
        absent = np.setdiff1d(np.arange(len(tables)), answered)
        tables[absent] = server.tables[absent]  # their next download is their last one

        told_by = collected([upload for _, upload in told])
        chosen = aggregated(answered, told_by.tickets, self.settings.r)
        clients = answered[chosen]
        whole = None if len(clients) == len(tables) else clients
        placed = settled(tables, self.device)
        weights = self.composite(placed, whole, told_by.take(chosen), server.first)
        mix(placed, weights, whole, out=tables, device=self.device)
        for values in networks.values():
            mix(values, weights, whole, out=values, device=self.device)
        kept = server.weights.copy()
        kept[answered] = 0
        kept[answered, answered] = 1  # who is not aggregated keeps its own table
        kept[np.ix_(clients, clients)] = weights.cpu().numpy()
        return FedCaServer(tables, networks, server.first, kept)

    def composite(self, tables: Any, clients: Int64 | None, told: Told, first: Float32) -> Any:
        """W ``[n, n]`` of the aggregated clients: Eq. (6), (7) and (8), or the public code's variants."""
        from fedrec.maths import composite

        chosen, device = self.settings, self.device
        similar = complementary = None
        swapped = chosen.weights == "code"
        if chosen.beta if swapped else chosen.alpha:
            if chosen.variant_similarity == "code":
                similar = composite.similarity_as_coded(tables, first, clients, device)
            else:
                similar = composite.similarity(composite.squared_distances(tables, clients, device))
        if chosen.alpha if swapped else chosen.beta:
            angles = (
                composite.matched_angles(told.components, device)
                if told.components is not None
                else composite.mean_angles(told.subspaces, told.start, device)
            )
            complementary = composite.complementarity(angles, chosen.complementarity)
        return composite.composite_weights(
            similar, complementary, told.sizes, chosen.alpha, chosen.beta,
            normalise=chosen.normalise, roles=chosen.weights, device=device,
        )  # fmt: skip

    def score(
        self, private: FedCaPrivate, download: FedCaDownload, block: Block, items: Int32 | None = None
    ) -> Float32:
        """Local inference (section 5.1.3): with the blend of the client's own table and the mixture."""
        rho, users, owner = np.float32(self.settings.rho), private.users, block.client_of_user
        if private.tables is None or private.tables is download.tables:
            users = self.users_with(private, download.tables, download.networks, block)
            scores = self.backbone.scores(users, download.tables, download.networks, owner)
        elif self.backbone.kernel == "dot":  # linear in the table: no blended table is needed
            scores = rho * self.backbone.scores(users, private.tables, {}, owner)
            scores += (1 - rho) * self.backbone.scores(users, download.tables, {}, owner)
        else:
            own = replace(private, tables=private.tables.copy())
            tables, networks = self.blended(own, download)
            users = self.users_with(private, tables, networks, block)
            scores = self.backbone.scores(users, tables, networks, owner)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        return super().client_bytes(world) + 8 * world.n_items * self.settings.dim


_NONE: Float32 = np.zeros((0, 0, 0), np.float32)


@dataclass(frozen=True)
class Told:
    """What clients told beside their tables, stacked; client ``c`` has the rows ``start[c] .. start[c + 1]``."""

    sizes: Int64  # [n]
    start: Int64  # [n + 1]
    tickets: NDArray[np.uint32]  # [n]
    subspaces: Any  # [rows, k] or None
    components: Any  # [n, k, d] or None

    def take(self, positions: Int64) -> Told:
        rows = None if self.subspaces is None else self.subspaces[segments(self.start, positions)]
        components = None if self.components is None else self.components[positions]
        sizes = self.sizes[positions]
        return Told(sizes, offsets(sizes), self.tickets[positions], rows, components)


def collected(uploads: list[Any]) -> Told:
    """The small fields of all uploads, in the order in which they came."""

    def stacked(name: str) -> Any:
        parts = [getattr(upload, name) for upload in uploads]
        return None if parts[0] is None else np.concatenate(parts)

    sizes = np.asarray(stacked("sizes"), np.int64)
    tickets = stacked("tickets")
    if tickets is None:
        tickets = np.zeros(len(sizes), np.uint32)
    return Told(sizes, offsets(sizes), tickets, stacked("subspaces"), stacked("components"))


def aggregated(answered: Int64, tickets: NDArray[np.uint32], share: float) -> Int64:
    """Positions among those who answered of the share that is aggregated, by ascending client number."""
    chosen = lowest(tickets, share)
    return chosen[np.argsort(answered[chosen], kind="stable")]


def lowest(tickets: NDArray[np.uint32], share: float) -> Int64:
    """Positions of the share with the lowest tickets, at least one."""
    wanted = max(1, round(share * len(tickets)))
    return np.argsort(tickets, kind="stable")[:wanted].astype(np.int64)


def laplace_rows(streams: keyed.U64, start: Int64, width: int) -> NDArray[np.float64]:
    """Laplace(0, 1) numbers ``[rows, width]``; a number depends on its client's stream and its place in it."""
    counts = np.diff(start)
    owner = np.repeat(np.arange(len(counts)), counts)
    within = (np.arange(len(owner)) - start[owner]).astype(np.uint64) * np.uint64(width)
    rows = streams[owner] + within * np.uint64(keyed.GOLDEN)  # word i of a stream is mix(key + (i + 1) GOLDEN)
    return keyed.laplace(rows, width)

"""FedSpectral: graph filters and a low-rank EASE from federated subspace iteration.

Shen et al., "How powerful is graph convolution for recommendation?" (GF-CF), CIKM 2021, filters a user's
interactions with the top eigenvectors of the normalised item-item matrix ``M = D_i^-1/2 A' D_u^-1 A D_i^-1/2``.
Each round the server sends a thin matrix W; every client returns ``sum_u a_u' (a_u W) / |a_u|`` over its users,
an ``[m, k]`` table and nothing else, and the server takes one step of subspace iteration
(:mod:`fedrec.maths.subspace_iteration`). Item degrees ride along as one more column. The score is
``a_u D^-1/2 V f(E) V' D^1/2`` with ``f(e) = e / (e + shrink)``. With ``filter=ease`` the users' weights are one, and
the eigenpairs stand for ``X'X`` in EASE (:mod:`fedrec.maths.thin_ease`). With ``rank`` the server keeps what earlier
rounds told it: more eigenpairs than a table has columns, in fewer rounds (:mod:`fedrec.maths.block_krylov`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.fold import Float64
from fedrec.core.messages import Float32, Rows, per_client, shared
from fedrec.core.method import Card, Keys, Method, Update
from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import SumField, Summand, Summands, Sums
from fedrec.data.ragged import Int32, Int64, offsets
from fedrec.maths import block_krylov, subspace_iteration
from fedrec.maths.interaction_matrix import inverse_root, matrix, normalised
from fedrec.maths.subspace_iteration import Pairs
from fedrec.maths.thin_ease import ThinEase, thin_ease
from fedrec.maths.thin_filter import LowPass, filtered
from fedrec.methods.fedease import NothingPrivate
from fedrec.secure.contribution import FREE


class FedSpectralSettings(PrivacySettings):
    k: int = Field(32, ge=1, description="eigenvectors; an upload is an [items, k + 1] table")
    rank: int = Field(
        0,
        ge=0,
        description="eigenpairs that the server gathers from the tables of all rounds; 0: only the k of the last round",
    )
    filter: Literal["lowpass", "ease"] = Field(
        "lowpass",
        description="lowpass: eigenvectors of the degree-normalised matrix, values e / (e + shrink); "
        "ease: EASE with X'X replaced by its top k eigenpairs",
    )
    shrink: float = Field(0.02, ge=0, description="how far small eigenvalues are shrunk (0: the ideal low-pass filter)")
    lam: float = Field(500.0, gt=0, description="L2 penalty lambda of filter=ease")
    balance: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description="filter=ease: X'X is divided on both sides by this power of item counts before its eigenpairs are "
        "taken (0.25: rare items count in them, 0.5: they outweigh the others)",
    )
    keep_diagonal: bool = Field(
        False,
        description="filter=ease: keep the part of the diagonal of X'X (the item counts) that the eigenpairs leave out",
    )
    back: float = Field(0.5, description="power of item degrees on the filtered signal (GF-CF: 0.5)")
    own: float = Field(
        0.0, ge=0, description="weight of the client's own filter beside the global one (clients with many users)"
    )


@dataclass(frozen=True)
class SpectralServer:
    """Eigenpairs so far and the item degrees they are normalised by."""

    sent: Float32  # [m, k] W, what clients apply next
    vectors: Float32  # [m, k] V
    values: Float32  # [k] E
    degrees: Float64  # [m] interactions of each item, summed over all answers so far
    answers: int
    """Clients that answered, summed over rounds."""
    n_clients: int


@dataclass(frozen=True)
class GatheringServer(SpectralServer):
    """The same with ``rank`` eigenpairs so far (V and E have so many columns), and what the operator makes of them."""

    images: Float32  # [m, rank] M V


Server = TypeVar("Server", bound=SpectralServer)


@dataclass(frozen=True)
class Products(messages.Upload):
    """A client's part of ``G W`` (k columns) and of the item degrees (the last column)."""

    table: Rows = per_client()


@dataclass(frozen=True)
class Spectrum(messages.Download):
    """What a client needs to answer (W) and to score (W, E, D)."""

    sent: Float32 = shared()  # [m, k] W, in the direction of D^-1/2 V; with ``rank``, D^-1/2 V follows: [m, k + rank]
    values: Float32 = shared()  # [k]
    degrees: Float32 = shared()  # [m] estimated for the whole population


@dataclass(frozen=True)
class ThinFilter(messages.Model):
    """What a client makes of it, once: scores are ``X (reads writes' - diag(itself))``."""

    reads: Float32  # [m, k]
    writes: Float32  # [m, k]
    itself: Float32 | None  # [m] what an item says for itself, where that does not count
    degrees: Float32  # [m]


class FedSpectral(Method[SpectralServer, NothingPrivate, Products, Spectrum]):
    """A few rounds of ``[m, k]`` sums give what centralised graph filtering has."""

    name = "fedspectral"
    Settings = FedSpectralSettings
    Private, Upload, Download = NothingPrivate, Products, Spectrum
    small: ClassVar[dict[str, Any]] = {"k": 4}
    enough: ClassVar[dict[str, Any]] = {"k": 8}
    enough_rounds = 5
    starts_over = True
    card = Card(
        title="FedSpectral: graph filtering by federated subspace iteration; sums of thin tables, few rounds",
        paper="Shen et al., CIKM 2021 (the filter); the federation is this project's",
        private="interactions; scores are made on the client",
        upload="its users' interactions applied to a shared [items, k] matrix, and its item counts: one table a round",
        sum_suffices=True,
        robust="bound+rows",
        departures=(
            "eigenvalues are shrunk, e / (e + shrink), instead of cut off",
            "filter=ease is EASE with X'X replaced by eigenpairs; balance=0.25 lets rare items count in them, and "
            "keep_diagonal=true keeps the part of the diagonal that they leave out",
            "the default defence bounds clients with long histories, which costs filter=ease some quality "
            "(--robust none)",
            "with partial participation the answers of a round are mixed with the operator known before; not so with "
            "rank, which takes each round's answers as those of the whole population",
            "without secure aggregation or noise, the rows of a client with one user name that user's items",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> SpectralServer:
        k = min(self.settings.k, world.n_items)
        rows = keyed.streams(keyed.stream(keys.seed, "start"), np.arange(world.n_items, dtype=np.uint64))
        start = keyed.normal(rows, k).astype(np.float32)
        zero = np.zeros(world.n_items)
        if not self.settings.rank:
            return SpectralServer(start, np.zeros_like(start), np.zeros(k, np.float32), zero, 0, world.n_clients)
        none = np.zeros((world.n_items, min(self.settings.rank, world.n_items)), np.float32)
        return GatheringServer(start, none, none[0], zero, 0, world.n_clients, none)

    def start_clients(self, world: World, block: Block, keys: Keys) -> NothingPrivate:
        return NothingPrivate()

    def download(self, server: SpectralServer, clients: Int64) -> Spectrum:
        degrees, sent = population_degrees(server), server.sent
        if isinstance(server, GatheringServer):
            known = inverse_root(self.diagonal(degrees))[:, None] * server.vectors
            sent = np.hstack([sent, known.astype(np.float32)])
        return Spectrum(sent, server.values, degrees.astype(np.float32))

    def local_update(
        self, private: NothingPrivate, download: Spectrum, block: Block, keys: Keys
    ) -> Update[NothingPrivate, Products]:
        return Update(private, Products(self.products(self.asked(download), block)), np.zeros(block.n_clients))

    def asked(self, download: Spectrum) -> Float32:
        """W ``[m, k]``, what is applied in this round."""
        known = len(download.values) if self.settings.rank else 0
        return download.sent[:, : download.sent.shape[1] - known]

    def products(self, sent: Float32, block: Block) -> Rows:
        """``sum_u w_u a_u' (a_u W)`` and the item counts of each client, on the rows of its items."""
        interactions = matrix(block.train, block.n_items)  # [users, m]
        counts = block.train.counts
        weight = np.ones(len(counts), np.float32)
        if self.settings.filter == "lowpass":
            weight = (1.0 / np.maximum(counts, 1)).astype(np.float32)  # D_u^-1
        each = subspace_iteration.apply_clients(interactions, weight, sent)  # [users, k]
        each = np.concatenate([each, np.ones((len(each), 1), np.float32)], axis=1)
        owner = block.client_of_user[block.train.owners]
        place = owner * np.int64(block.n_items) + block.train.values
        if block.single:
            order = np.argsort(place)
            return Rows(offsets(counts), block.train.values[order], each[block.train.owners[order]], block.n_items)
        from scipy.sparse import csr_matrix

        unique, inverse = np.unique(place, return_inverse=True)
        ones = np.ones(len(inverse), np.float32)
        add = csr_matrix((ones, (inverse, block.train.owners)), shape=(len(unique), block.n_users))
        start = offsets(np.bincount(unique // block.n_items, minlength=block.n_clients))
        ids = (unique % block.n_items).astype(np.int32)
        return Rows(start, ids, np.asarray(add @ each, np.float32), block.n_items)

    def sum_fields(self, server: SpectralServer, users: int) -> dict[str, SumField]:
        # nothing weighs an upload: users only say how large its numbers can be where they are not clipped
        return {"table": SumField((len(server.sent), server.sent.shape[1] + 1), bound=FREE * users**2)}

    def summands(self, upload: Products, download: Spectrum) -> Summands:
        return {"table": Summand(upload.table)}

    def finish(self, server: SpectralServer, sums: Sums, keys: Keys) -> SpectralServer:
        total, answered, k = sums["table"], sums.count, server.sent.shape[1]
        if not answered:
            return server
        scale = server.n_clients / answered  # part of the clients stands for all of them
        now = replace(server, degrees=server.degrees + total[:, k], answers=server.answers + answered)
        metric, returned = self.diagonal(population_degrees(now)), total[:, :k] * scale
        if isinstance(now, GatheringServer):
            return self.gathered(now, returned, metric)
        before = Pairs(server.vectors.astype(np.float64), server.values.astype(np.float64))
        share = answered / server.n_clients if server.answers else 1.0
        found = subspace_iteration.step(server.sent.astype(np.float64), returned, metric, before, share)
        sent = at_unit_scale(subspace_iteration.sent_of(found, metric))
        return kept(now, sent=sent, vectors=found.vectors, values=found.values)

    def gathered(self, now: GatheringServer, returned: Float64, metric: Float64) -> GatheringServer:
        """All directions so far with one more block of them."""
        root, back = np.sqrt(metric)[:, None], inverse_root(metric)[:, None]
        vectors, images = now.vectors.astype(np.float64), now.images.astype(np.float64)
        space = block_krylov.grown(vectors, images, now.sent.astype(np.float64) * root, returned * back)
        sent = at_unit_scale(space.block * back)
        return kept(now, sent=sent, vectors=space.vectors, values=space.values, images=space.images)

    def diagonal(self, degrees: Any) -> Any:
        """The diagonal that M is normalised by: item degrees, or a power of them (ones where X'X itself is wanted)."""
        if self.settings.filter == "lowpass":
            return degrees
        return np.where(degrees > 0, degrees, 1.0) ** (2 * self.settings.balance) * (degrees > 0)

    def eigenvectors(self, download: Spectrum) -> Float32:
        """V ``[m, k]`` of the normalised matrix; with ``rank``, ``[m, rank]``."""
        known = download.sent[:, download.sent.shape[1] - len(download.values) :]
        return unit_columns(known * np.sqrt(self.diagonal(download.degrees))[:, None])

    def ease(self, download: Spectrum) -> ThinEase:
        """EASE with ``X'X = D^b V E V' D^b`` and, if kept, the rest of its diagonal."""
        factors = self.eigenvectors(download) * np.sqrt(self.diagonal(download.degrees))[:, None]
        counts = download.degrees if self.settings.keep_diagonal else None
        return thin_ease(factors, download.values, self.settings.lam, counts)

    def lowpass(self, download: Spectrum) -> LowPass:
        """``D^-1/2 V f(E) V' D^back`` by its parts."""
        values, vectors = download.values.astype(np.float64), self.eigenvectors(download)
        response = (values / np.maximum(values + self.settings.shrink, 1e-12)).astype(np.float32)
        scale = inverse_root(download.degrees).astype(np.float32)
        back = np.where(download.degrees > 0, download.degrees, 0.0) ** np.float32(self.settings.back)
        return LowPass(vectors, response, scale, back)

    def model(self, download: Spectrum) -> ThinFilter:
        if self.settings.filter == "ease":
            thin = self.ease(download)
            return ThinFilter(thin.factors, thin.writes, thin.itself, download.degrees)
        low = self.lowpass(download)
        reads = low.vectors * low.scale[:, None] * low.response
        return ThinFilter(reads, low.vectors * low.back[:, None], None, download.degrees)

    def score(self, private: NothingPrivate, model: ThinFilter, block: Block, items: Int32 | None = None) -> Float32:
        histories = matrix(block.train, block.n_items)
        scores = filtered(histories, model.reads, model.writes, model.itself)
        if self.settings.own and not block.single:
            scores = add_own(scores, histories, block, self.settings.own, model.degrees)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        columns: int = self.settings.k + self.settings.rank + 1
        return 16 * columns * world.n_items

    def in_process_bytes(self, world: World) -> int:
        if self.settings.noise or self.settings.compress != "none":  # whole tables
            return self.client_bytes(world)
        users = -(-world.n_users // max(1, world.n_clients))
        k: int = self.settings.k
        return users * 16 * (world.n_items + (k + 1) * min(world.n_items, 512))  # scores, and the rows of its items


def kept(now: Server, **found: Float64) -> Server:
    """The server's state with what was found, in 32 bits."""
    changed: dict[str, Any] = {name: values.astype(np.float32) for name, values in found.items()}
    return replace(now, **changed)


def population_degrees(server: SpectralServer) -> Float64:
    """Item degrees over the whole population, estimated from the answers; below half an interaction is none."""
    degrees = server.degrees * (server.n_clients / max(1, server.answers))
    return np.where(degrees >= 0.5, degrees, 0.0)


def at_unit_scale(sent: Float64) -> Float64:
    """The same matrix with entries of size one: uploads keep one scale, to which clip and noise can be set."""
    scaled: Float64 = sent * np.sqrt(sent.size / max(float((sent**2).sum()), 1e-30))
    return scaled


def unit_columns(vectors: Float32) -> Float32:
    """Columns of length one."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1e-12), np.float32)


def add_own(scores: Float32, histories: object, block: Block, weight: float, degrees: Float32) -> Float32:
    """Add the client's own filter ``a_u A_k' A_k`` (both normalised): personal to clients with many users."""
    root = inverse_root(degrees).astype(np.float32)
    for client in range(block.n_clients):
        users = slice(block.user_start[client], block.user_start[client + 1])
        own = histories[users]  # type: ignore[index]
        graph = normalised(own)
        found = np.asarray(((own.multiply(root[None, :]).tocsr() @ graph.T) @ graph).todense())
        scores[users] += weight * found
    return scores

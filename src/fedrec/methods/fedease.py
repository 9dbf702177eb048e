"""FedEASE: EASE computed from sums that clients send once; it loses nothing to centralised EASE.

Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019, needs of the data only
``X'X = sum_u x_u' x_u``: how often two items occur together. Every client adds its users' part, the server
solves Eq. (8) of the paper and sends the weights back; scores are made on the client.

Private form (``scale=user``): each user's triangle is divided by its norm, ``sqrt(c (c + 1) / 2)`` for c items, so that
one user moves the sum by at most 1 (replaced by another: sqrt(2), since no entry is negative). What of the noisy sum is
signal makes a low-rank EASE (:mod:`fedrec.maths.noisy_gram`). It is one release, whatever the number of rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.fold import Float64
from fedrec.core.messages import Array, Float32, Rows, per_client, shared
from fedrec.core.method import Card, Keys, Method, Update
from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import Contribution, SumField, Summand, Summands, Sums
from fedrec.data.ragged import Int32, Int64, Ragged, offsets
from fedrec.errors import BadInput
from fedrec.maths.interaction_matrix import matrix
from fedrec.maths.noisy_gram import private_weights
from fedrec.maths.packed import (
    packed_size,
    pairs_of_lists,
    pairs_within,
    places_of,
    row_starts,
    unpack,
    unpack_sparse,
    unpack_upper,
)
from fedrec.methods.references.ease import SPARSE, ease_weights

HISTORY = 512
"""Interactions of a user with many, for the size of blocks."""
PAIR_BYTES = 48
"""Working memory of a pair that occurs."""
LARGEST = 65_535
"""Items whose pairs can be numbered with 32 bits."""


class FedEaseSettings(PrivacySettings):
    lam: float = Field(500.0, gt=0, description="L2 penalty lambda on the weights, as in ease")
    upload_form: Literal["dense", "rows"] = Field(
        "rows",
        description="how co-occurrences cross the wire: every pair of items (dense), or the pairs that occur; "
        "without noise both show which items a client has",
    )
    scale: Literal["none", "user"] = Field(
        "none",
        description="user: each user's pairs are scaled to a joint norm of 1, so that noise on the sum can hide a user",
    )
    pair_span: float = Field(
        0.0,
        ge=0,
        description="pairs that are further apart count less: by a factor of 1/e for this many interactions between "
        "them (histories in time order; 0: all alike)",
    )
    history_span: float = Field(
        0.0,
        ge=0,
        description="older interactions count less in scores: by a factor of 1/e for this many interactions (0: all of "
        "a history alike)",
    )


@dataclass(frozen=True)
class EaseServer:
    """Co-occurrence of those counted so far, and the weights made from it."""

    cooccurrence: Float64  # [m (m + 1) / 2] upper triangle of X'X
    weights: Float32  # [m, m] B
    counted: Array  # uint8 [n_clients] whose part is in the sum
    variance: float = 0.0
    """Of the noise in each number of the sum."""


@dataclass(frozen=True)
class NothingPrivate(messages.Private):
    """Interactions are all that a client keeps."""

    state_name = "fedease.NothingPrivate"


@dataclass(frozen=True)
class Cooccurrence(messages.Upload):
    """A client's part of ``X'X``: the upper triangle as a table of ``m (m + 1) / 2`` rows of one number."""

    pairs: Rows = per_client()


@dataclass(frozen=True)
class Weights(messages.Download):
    """The item-to-item weights, and whether the server has a client's part already."""

    weights: Float32 = shared()  # [m, m]
    counted: Array = per_client(low=0, high=1)  # uint8 [clients]


class FedEase(Method[EaseServer, NothingPrivate, Cooccurrence, Weights]):
    """One round is all it takes; each client counts once however many rounds it takes part in."""

    name = "fedease"
    Settings = FedEaseSettings
    Private, Upload, Download = NothingPrivate, Cooccurrence, Weights
    enough_rounds = 1
    small: ClassVar[dict[str, Any]] = {"noise": 0.001}
    contributes_once = True
    follows_history = True
    private_form: ClassVar[dict[str, Any]] = {"scale": "user"}
    card = Card(
        title="FedEASE: item co-occurrence as a sum over clients, then EASE in closed form",
        paper="Steck, WWW 2019 (the model); the federation is this project's",
        private="interactions; scores are made on the client",
        upload="once: how often each pair of items occurs together in the client's histories; without noise, even a "
        "secure sum (--secure) holds the whole histories of users who alone have an item: add --epsilon",
        sum_suffices=True,
        robust="rows",
        departures=(
            "without secure aggregation or noise, the co-occurrence of a client with one user names that user's items",
            "with partial participation the weights are those of centralised EASE on the clients counted so far",
            "noise can make the sum indefinite; its negative part is cut off before inversion",
            "with scale=user, what cannot be told from the noise of the sum is cut off, and lambda follows from the "
            "noise",
        ),
    )

    def settled_after(self) -> int | None:
        return 1

    def start_server(self, world: World, keys: Keys) -> EaseServer:
        if world.n_items > LARGEST:
            raise BadInput(
                f"fedease counts pairs of at most {LARGEST} items, {world.name} has {world.n_items}; "
                "use fedspectral with --set filter=ease"
            )
        m = world.n_items
        # a whole zero matrix, so that the bytes of the first round are those of the one download needed
        return EaseServer(np.zeros(packed_size(m)), np.zeros((m, m), np.float32), np.zeros(world.n_clients, np.uint8))

    def start_clients(self, world: World, block: Block, keys: Keys) -> NothingPrivate:
        return NothingPrivate()

    def download(self, server: EaseServer, clients: Int64) -> Weights:
        return Weights(server.weights, server.counted[clients])

    def local_update(
        self, private: NothingPrivate, download: Weights, block: Block, keys: Keys
    ) -> Update[NothingPrivate, Cooccurrence]:
        asked = download.counted == 0
        if self.settings.scale == "none" and not self.settings.pair_span:
            pairs = cooccurrence(block, asked)
        else:
            pairs = weighted_pairs(block, asked, self.settings.pair_span, self.settings.scale == "user")
        return Update(private, Cooccurrence(pairs), np.zeros(block.n_clients))

    def contribution(self) -> Contribution | None:
        return Contribution(1.0, nonnegative=True) if self.settings.scale == "user" else None

    def sum_fields(self, server: EaseServer, users: int) -> dict[str, SumField]:
        return {"pairs": SumField((len(server.cooccurrence), 1), bound=float(users))}

    def silent(self, download: Weights) -> Array:
        return np.asarray(download.counted != 0)

    def summands(self, upload: Cooccurrence, download: Weights) -> Summands:
        new = download.counted == 0  # the others have nothing, or noise around nothing, which is left out
        return {"pairs": Summand(upload.pairs, None if new.all() else new.astype(np.float64))}

    def finish(self, server: EaseServer, sums: Sums, keys: Keys) -> EaseServer:
        counted = server.counted.copy()
        counted[sums.clients] = 1
        if (counted == server.counted).all():
            return server
        total = sums["pairs"][:, 0]
        if server.counted.any():
            total = server.cooccurrence + total
        variance = server.variance + sums.noise.get("pairs", 0.0) ** 2
        weights = self.solve(total, len(server.weights), variance)
        return EaseServer(total, weights, counted, variance)

    def solve(self, triangle: Float64, n_items: int, variance: float = 0.0) -> Float32:
        """B from the triangle of X'X (Steck, Eq. 8); what noise made indefinite is brought back first."""
        if variance > 0:
            return private_weights(unpack(triangle, n_items), np.sqrt(variance))
        few = np.count_nonzero(triangle) < SPARSE * len(triangle)
        try:
            return ease_weights((unpack_sparse if few else unpack_upper)(triangle, n_items), self.settings.lam)
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(unpack(triangle, n_items))
            gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
            return ease_weights(gram, self.settings.lam)

    def score(self, private: NothingPrivate, model: Weights, block: Block, items: Int32 | None = None) -> Float32:
        histories = matrix(block.train, block.n_items)
        if self.settings.history_span:
            histories.data *= np.exp(-ages(block.train) / self.settings.history_span)
        scores = np.asarray(histories @ model.weights)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        whole = 16 * packed_size(world.n_items)
        if self.settings.upload_form == "dense" or self.settings.noise or self.settings.compress != "none":
            return whole
        users = -(-world.n_users // max(1, world.n_clients))
        return min(whole, PAIR_BYTES * packed_size(HISTORY) * users)  # the pairs that occur


def cooccurrence(block: Block, asked: Array) -> Rows:
    """The triangle of ``X'X`` over each client's users; nothing for clients that are not asked."""
    size = packed_size(block.n_items)
    if block.single:
        train = block.train.take(np.flatnonzero(asked))
        start, places = pairs_of_lists(ascending(train, block.n_items), block.n_items)
        counts = np.zeros(block.n_clients, np.int64)
        counts[asked] = np.diff(start)
        return Rows(offsets(counts), places.astype(np.int32), np.ones((len(places), 1), np.float32), size)
    from scipy.sparse import triu

    start_of_row = row_starts(block.n_items)
    ids, values, counts = [], [], np.zeros(block.n_clients, np.int64)
    for client in np.flatnonzero(asked):
        users = np.arange(block.user_start[client], block.user_start[client + 1])
        own = matrix(block.train.take(users), block.n_items)
        upper = triu(own.T @ own).tocsr()
        upper.sort_indices()
        row = np.repeat(np.arange(block.n_items), np.diff(upper.indptr))
        ids.append((start_of_row[row] + upper.indices - row).astype(np.int32))
        values.append(upper.data.astype(np.float32))
        counts[client] = upper.nnz
    joined = np.concatenate([np.zeros(0, np.float32), *values])
    return Rows(offsets(counts), np.concatenate([np.zeros(0, np.int32), *ids]), joined[:, None], size)


def weighted_pairs(block: Block, asked: Array, span: float, scaled: bool) -> Rows:
    """The same with weights: ``exp(-|p - q| / span)`` for places p, q in a history, each user's scaled to norm 1."""
    from scipy.sparse import csr_matrix

    m, lists = block.n_items, block.train
    order = np.lexsort((lists.values, lists.owners))
    start, first, second = pairs_within(Ragged(lists.start, lists.values[order]))
    values = np.ones(len(first))
    if span:
        values = np.exp(-np.abs(order[first] - order[second]) / span)  # places in the history, in time order
    user = np.repeat(np.arange(len(lists)), np.diff(start))
    place = places_of(lists.values[order][first], lists.values[order][second], m)
    size = packed_size(m)
    each = csr_matrix((values, (user, place)), shape=(len(lists), size))  # an item that is there twice adds up
    user = np.repeat(np.arange(len(lists)), np.diff(each.indptr))
    if scaled:
        # 32-bit numbers on the wire: a little below 1, so that rounding does not lead out of the ball
        each.data /= (np.sqrt(np.bincount(user, each.data**2, minlength=len(lists))) * (1 + 1e-6))[user]
    client = block.client_of_user[user]
    kept = np.asarray(asked, bool)[client]
    found = csr_matrix((each.data[kept], (client[kept], each.indices[kept])), shape=(block.n_clients, size))
    found.sort_indices()
    ids, numbers = found.indices.astype(np.int32), found.data.astype(np.float32)[:, None]
    return Rows(found.indptr.astype(np.int64), ids, numbers, size)


def ages(lists: Ragged) -> Float64:
    """How many interactions came after each one in its list."""
    return np.asarray(np.repeat(lists.start[1:], lists.counts) - 1 - np.arange(len(lists.values)), np.float64)


def ascending(lists: Ragged, n: int) -> Ragged:
    """Each list in ascending order."""
    place = np.sort(lists.owners * np.int64(n) + lists.values)
    return Ragged(lists.start, (place - lists.owners * np.int64(n)).astype(np.int32))

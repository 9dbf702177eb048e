"""FedELSA: a linear autoencoder of thin rank, learnt from sums of gradients.

Vancura et al., "Scalable linear shallow autoencoder for collaborative filtering" (ELSA), RecSys 2022: scores are
``x (A A' - I)`` with rows of A of length one, so that the diagonal is zero by construction and nothing of size
``m x m`` is built. The loss is ``|| x / |x| - y / |y| ||^2`` with ``y`` the scores, cut off at zero. Every client sends
the gradient of A over its users, an ``[m, d]`` table; the server takes one step of Adam along their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, per_client, shared
from fedrec.core.method import Card, Keys, Method, Update
from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import SumField, Summand, Summands, Sums
from fedrec.data.ragged import Int32, Int64
from fedrec.learn.adam import descended
from fedrec.maths.interaction_matrix import matrix
from fedrec.methods.fedease import NothingPrivate


class FedElsaSettings(PrivacySettings):
    dim: int = Field(64, ge=1, le=256, description="columns d of A; an upload is an [items, d] table")
    server_lr: float = Field(0.03, gt=0, description="the server's learning rate, for Adam along the mean gradient")


@dataclass(frozen=True)
class ElsaServer:
    """A before its rows are brought to length one, and Adam's moments."""

    table: Float32  # [m, d]
    mean: Float32  # [m, d]
    square: Float32  # [m, d]
    step: int = 0


@dataclass(frozen=True)
class Gradient(messages.Upload):
    """The gradient of A, summed over the client's users."""

    table: Float32 = per_client()  # [clients, m, d]


@dataclass(frozen=True)
class Directions(messages.Download):
    """A, its rows of length one."""

    table: Float32 = shared()  # [m, d]


class FedElsa(Method[ElsaServer, NothingPrivate, Gradient, Directions]):
    """Gradient sums of a thin table: no items x items matrix anywhere, and a sum is all the server sees."""

    name = "fedelsa"
    Settings = FedElsaSettings
    Private, Upload, Download = NothingPrivate, Gradient, Directions
    small: ClassVar[dict[str, Any]] = {"dim": 4}
    enough: ClassVar[dict[str, Any]] = {"dim": 16, "server_lr": 0.1}
    enough_rounds = 40
    card = Card(
        title="FedELSA: a thin linear autoencoder from sums of gradients",
        paper="Vancura et al., RecSys 2022 (the model); the federation is this project's",
        private="interactions; scores are made on the client",
        upload="the gradient of the [items, d] table over the client's users",
        sum_suffices=True,
        robust="rows",
        departures=(
            "full gradients and Adam on the server, where the paper has mini-batches of users and Nadam",
            "without secure aggregation or noise, the gradient of a client with one user names that user's items",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> ElsaServer:
        rows = keyed.streams(keyed.stream(keys.seed, "start"), np.arange(world.n_items, dtype=np.uint64))
        start = unit_rows(keyed.normal(rows, self.settings.dim).astype(np.float32))
        return ElsaServer(start, np.zeros_like(start), np.zeros_like(start))

    def start_clients(self, world: World, block: Block, keys: Keys) -> NothingPrivate:
        return NothingPrivate()

    def download(self, server: ElsaServer, clients: Int64) -> Directions:
        return Directions(unit_rows(server.table))

    def local_update(
        self, private: NothingPrivate, download: Directions, block: Block, keys: Keys
    ) -> Update[NothingPrivate, Gradient]:
        outward, codes, back, losses = descent(download.table, block)
        client = block.client_of_user
        if block.single:
            table = outward[:, :, None] * codes[:, None, :]  # [clients, m, d] g' (x A)
        else:
            own = pairwise(block.user_start)
            table = np.stack([outward[first:last].T @ codes[first:last] for first, last in own])
        np.add.at(table, (client[block.train.owners], block.train.values), back[block.train.owners])  # x' (g A)
        loss = np.bincount(client, weights=losses, minlength=block.n_clients)
        users = np.maximum(1, np.bincount(client, minlength=block.n_clients))
        return Update(private, Gradient(np.asarray(table, np.float32)), loss / users)

    def sum_fields(self, server: ElsaServer, users: int) -> dict[str, SumField]:
        return {"table": SumField(server.table.shape)}

    def summands(self, upload: Gradient, download: Directions) -> Summands:
        return {"table": Summand(upload.table)}

    def finish(self, server: ElsaServer, sums: Sums, keys: Keys) -> ElsaServer:
        if not sums.count:
            return server
        lengths = np.linalg.norm(server.table, axis=1, keepdims=True)
        rows = server.table / lengths
        gradient = (sums["table"] / sums.count).astype(np.float32)
        # through the division by its length, a row moves at right angles to itself
        gradient = (gradient - (gradient * rows).sum(1, keepdims=True) * rows) / lengths
        step = server.step + 1
        table, mean, square = descended(
            server.table, server.mean, server.square, gradient, self.settings.server_lr, step
        )
        return replace(server, table=table, mean=mean, square=square, step=step)

    def score(self, private: NothingPrivate, model: Directions, block: Block, items: Int32 | None = None) -> Float32:
        histories = matrix(block.train, block.n_items)
        scores = np.asarray(histories @ model.table) @ model.table.T  # what a user has is not ranked: no - x
        scores = np.asarray(scores, np.float32)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        dim: int = self.settings.dim
        return 8 * world.n_items * (dim + 4)


def descent(table: Float32, block: Block) -> tuple[Float32, Float32, Float32, NDArray[np.float64]]:
    """What each user's gradient is made of: ``g = dL / dy`` [users, m], ``x A`` and ``g A`` [users, d]; its loss."""
    histories = matrix(block.train, block.n_items)  # [users, m] X
    codes = np.asarray(histories @ table)  # [users, d]
    scores = codes @ table.T  # [users, m]
    scores[block.train.owners, block.train.values] -= 1.0  # x (A A' - I)
    cut = np.maximum(scores, 0.0)
    length = np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1e-6)
    cut /= length
    wanted = 1.0 / np.sqrt(np.maximum(block.train.counts, 1))  # entries of x / |x|
    own = block.train.owners
    agreement = np.bincount(own, weights=cut[own, block.train.values] * wanted[own], minlength=len(cut))
    outward = cut * agreement[:, None].astype(np.float32)
    outward[own, block.train.values] -= wanted[own].astype(np.float32)
    outward *= (scores > 0) * np.float32(2.0) / length
    outward[block.train.counts == 0] = 0.0
    outward = outward.astype(np.float32)
    losses: NDArray[np.float64] = np.asarray(2.0 - 2.0 * agreement, np.float64)
    return outward, codes, outward @ table, losses


def unit_rows(table: Float32) -> Float32:
    """Rows of length one."""
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12), np.float32)

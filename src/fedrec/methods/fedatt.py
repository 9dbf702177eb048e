"""FedAtt: attentive aggregation, clients weighted by how far they moved from the global model.

Ji et al., "Learning private neural language modeling with attentive aggregation", IJCNN 2019; as the baseline
FedAtt of FedCA (section 6.1: "minimizing the weighted distance between global and local models"). In FedCA's
framework it is alpha = beta = 0 with p_u "the degree of difference between local and global models"
(section 5.2): exact for epsilon = 1, layer by layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedrec.core.fold import Float64, add_rows, weighted_sum
from fedrec.core.messages import Array, Rows
from fedrec.core.method import Keys, Reply
from fedrec.data.ragged import Int64
from fedrec.methods._shared.embedding import (
    EmbeddingMethod,
    EmbeddingSettings,
    ItemDownload,
    ItemServer,
    ItemUpload,
    UserVectors,
    vectors_stay,
)


class FedAttSettings(EmbeddingSettings):
    """Settings of FedAtt."""

    epsilon: float = Field(
        1.0, gt=0, description="step size of the server; 1 moves it all the way to the attentive mean"
    )
    distance: Literal["l2", "l1"] = Field("l2", description="norm in which a client's distance is measured")


class FedAtt(EmbeddingMethod[ItemServer, UserVectors, ItemUpload, ItemDownload]):
    """Q <- Q + epsilon sum_u a_u (Q_u - Q) with a = softmax of the distances ||Q_u - Q||, for each layer."""

    name = "fedatt"
    Settings = FedAttSettings
    card = vectors_stay(
        title="FedAtt: clients count by a softmax of their distance from the global model",
        paper="Ji et al., IJCNN 2019; as the baseline FedAtt of FedCA (section 6.1)",
        upload="change of the item table (and of the network's weights where the backbone has layers)",
        sum_suffices=False,
        robust="rows",
        departures=(
            "the item table is one layer, every weight and bias of the network another",
            "no random noise on the server's step (the original's randomised variant): clip and noise act on uploads",
            "a sum would suffice if clients weighted themselves; here the server does, from the uploads it sees",
        ),
    )

    def aggregate(self, server: ItemServer, replies: Iterator[Reply[ItemUpload]], keys: Keys) -> ItemServer:
        items = Attentive(np.zeros(server.items.shape))
        layers = {name: Attentive(np.zeros(layer.shape)) for name, layer in server.networks.items()}
        for reply in replies:
            items.add_rows(reply.upload.rows, self.distances_of_rows(reply.upload.rows))
            for name, change in reply.upload.networks.items():
                layers[name].add(change, self.distances(change.reshape(len(change), -1)))
        if not items.weight:
            return server
        epsilon = self.settings.epsilon
        moved = {
            name: (server.networks[name] + epsilon * layer.mean()).astype(np.float32) for name, layer in layers.items()
        }
        return replace(server, items=(server.items + epsilon * items.mean()).astype(np.float32), networks=moved)

    def distances(self, flat: Array) -> Float64:
        """``[clients]`` norm of each client's change ``[clients, numbers]``."""
        values = flat.astype(np.float64)
        return np.asarray(np.abs(values).sum(1) if self.settings.distance == "l1" else np.sqrt((values**2).sum(1)))

    def distances_of_rows(self, rows: Rows) -> Float64:
        """``[clients]`` distance of each client's table from the global one: rows that did not change add nothing."""
        owner: Int64 = np.repeat(np.arange(rows.n_clients), np.diff(rows.start))
        each = np.abs(rows.values) if self.settings.distance == "l1" else rows.values.astype(np.float64) ** 2
        total = np.bincount(owner, each.sum(1, dtype=np.float64), minlength=rows.n_clients)
        return np.asarray(total if self.settings.distance == "l1" else np.sqrt(total))


@dataclass
class Attentive:
    """A mean of changes weighted by a softmax, folded as uploads come.

    Weights are kept relative to the largest score so far, so that no exponential overflows.
    """

    total: Float64
    weight: float = 0.0
    top: float = -np.inf

    def _weights(self, scores: Float64) -> Float64:
        highest = max(self.top, float(scores.max(initial=-np.inf)))
        shrink = float(np.exp(self.top - highest)) if self.weight else 0.0
        self.total *= shrink
        self.weight *= shrink
        self.top = highest
        weights: Float64 = np.exp(scores - highest)
        self.weight += float(weights.sum())
        return weights

    def add_rows(self, rows: Rows, scores: Float64) -> None:
        """Changes of tables, one score each."""
        if len(scores):
            add_rows(self.total, rows, self._weights(scores))

    def add(self, changes: Any, scores: Float64) -> None:
        """Changes of a layer ``[clients, ...]``, one score each."""
        if len(scores):
            self.total += weighted_sum(changes, self._weights(scores))

    def mean(self) -> Float64:
        return self.total / self.weight

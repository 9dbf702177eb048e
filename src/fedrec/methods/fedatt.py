"""FedAtt: attentive aggregation, clients weighted by how far they moved from the global model.

Ji et al., "Learning private neural language modeling with attentive aggregation", IJCNN 2019; as the baseline
FedAtt of FedCA (section 6.1: "minimizing the weighted distance between global and local models"). In FedCA's
framework it is alpha = beta = 0 with p_u "the degree of difference between local and global models"
(section 5.2): exact for epsilon = 1, layer by layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from pydantic import Field

from fedrec.core.fold import Float64
from fedrec.core.messages import Array, Rows
from fedrec.core.method import Keys, Reply
from fedrec.core.sums import Summand
from fedrec.methods._shared.embedding import EmbeddingSettings, ItemServer, ItemUpload, SharedTable, vectors_stay


class FedAttSettings(EmbeddingSettings):
    epsilon: float = Field(
        1.0, gt=0, description="step size of the server; 1 moves it all the way to the attentive mean"
    )
    distance: Literal["l2", "l1"] = Field("l2", description="norm in which a client's distance is measured")


class FedAtt(SharedTable):
    """Q <- Q + epsilon sum_u a_u (Q_u - Q) with a = softmax of the distances ||Q_u - Q||, for each layer."""

    name = "fedatt"
    Settings = FedAttSettings
    card = vectors_stay(
        title="FedAtt: clients are weighted by a softmax of their distance from the global model",
        paper="Ji et al., IJCNN 2019; as the baseline FedAtt of FedCA (section 6.1)",
        upload="change of the item table (and of the network's weights where the backbone has layers)",
        sum_suffices=False,
        robust="rows",
        departures=(
            "the item table is one layer, and each weight and bias of the network is another",
            "no random noise on the server's step (the original has a randomised variant); clip and noise act on "
            "uploads",
            "a sum would suffice if clients weighted themselves; here the server does, from the uploads it sees",
        ),
    )

    def aggregate(self, server: ItemServer, replies: Iterator[Reply[ItemUpload]], keys: Keys) -> ItemServer:
        items = Attentive(np.zeros(server.items.shape))
        layers = {name: Attentive(np.zeros(layer.shape)) for name, layer in server.networks.items()}
        for reply in replies:
            items.add(reply.upload.rows, self.distances(reply.upload.rows))
            for name, change in reply.upload.networks.items():
                layers[name].add(change, self.distances(change))
        if not items.weight:
            return server

        def moved(before: Array, changes: Attentive) -> Array:
            return np.asarray(before + self.settings.epsilon * changes.mean(), np.float32)

        networks = {name: moved(server.networks[name], layer) for name, layer in layers.items()}
        return replace(server, items=moved(server.items, items), networks=networks)

    def distances(self, change: Rows | Array) -> Float64:
        """``[clients]`` norm of each client's change of a layer or of a table (whose other rows add nothing)."""
        values = change.values if isinstance(change, Rows) else change.reshape(len(change), -1)
        wide = values.astype(np.float64)
        total = (np.abs(wide) if self.settings.distance == "l1" else wide**2).sum(1)
        if isinstance(change, Rows):
            owner = np.repeat(np.arange(change.n_clients), np.diff(change.start))
            total = np.bincount(owner, total, minlength=change.n_clients)
        return np.asarray(total if self.settings.distance == "l1" else np.sqrt(total))


@dataclass
class Attentive:
    """A mean of changes weighted by a softmax, folded as uploads come.

    Weights are kept relative to the largest score so far, so that no exponential overflows.
    """

    total: Float64
    weight: float = 0.0
    top: float = -np.inf

    def add(self, changes: Rows | Array, scores: Float64) -> None:
        """Changes of a table or of a layer ``[clients, ...]``, one score each."""
        if not len(scores):
            return
        highest = max(self.top, float(scores.max()))
        shrink = float(np.exp(self.top - highest)) if self.weight else 0.0
        weights: Float64 = np.exp(scores - highest)
        self.total *= shrink
        Summand(changes, weights).add_to(self.total)
        self.weight = self.weight * shrink + float(weights.sum())
        self.top = highest

    def mean(self) -> Float64:
        return self.total / self.weight

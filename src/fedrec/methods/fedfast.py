"""FedFast: active aggregation, a table from representatives of every cluster.

Muhammad et al., "FedFast: going beyond average for faster training of federated recommender systems", KDD
2020; as the baseline FedFast of FedCA: "active aggregation by identifying representatives from different
clusters" (section 6.1), "where clients are first clustered, and then clients from each cluster are aggregated
proportionally" (section 5.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.messages import per_client
from fedrec.core.method import Keys, Reply
from fedrec.core.sums import Folding
from fedrec.data.ragged import Int64
from fedrec.learn.trained import Trained
from fedrec.maths.clustering import Float64, kmeans
from fedrec.methods._shared.embedding import (
    EmbeddingMethod,
    EmbeddingSettings,
    ItemDownload,
    ItemServer,
    UserVectors,
    vectors_stay,
)
from fedrec.methods._shared.personal import lowest, tickets
from fedrec.methods._shared.profiles import ProfileUpload, centres, interacted
from fedrec.methods._shared.server_steps import mean_fields, moved_by_mean, weighed


class FedFastSettings(EmbeddingSettings):
    clusters: int = Field(10, ge=1, description="clusters of k-means (FedCA section 6.1: 10)")
    r: float = Field(
        0.6, gt=0, le=1, description="share of each cluster that represents it in a round (FedCA section 6.1)"
    )


@dataclass(frozen=True)
class TicketUpload(ProfileUpload):
    """A profile upload with a random number that decides who represents a cluster."""

    tickets: NDArray[np.uint32] = per_client(protect=False, public=True)  # [clients]


class FedFast(EmbeddingMethod[ItemServer, UserVectors, TicketUpload, ItemDownload]):
    """Q = sum over clusters c of (n_c / n) times the mean table of c's representatives."""

    name = "fedfast"
    Settings = FedFastSettings
    Upload = TicketUpload
    card = vectors_stay(
        title="FedFast: representatives of every cluster of clients, each cluster weighted by its size",
        paper="Muhammad et al., KDD 2020; as the baseline FedFast of FedCA (sections 5.2 and 6.1)",
        upload="change of the item table (and network), the embeddings of the client's own items (its profile), "
        "their number, a random ticket",
        sum_suffices=False,
        robust="rows",
        departures=(
            "the profile is |I_u| x f numbers, as FedCA's Table 7 counts it; clusters are formed by its mean, anew "
            "each round, among the clients that answered",
            "representatives (ActvSAMP) are drawn from the clients that answered (--participation sets who takes "
            "part); clients that trained but are not drawn do not count",
            "the original also moves the user vectors of clients that did not train along with those of their cluster "
            "(ActvAGG); here user vectors never leave a client",
            "FedCA's alpha = 0, beta != 0 is not exactly this: its weights come from angles and differ from client to "
            "client. The exact case is alpha = beta = 0 with p_u = n_c / (n r_c) for the r_c representatives of a "
            "cluster",
        ),
    )

    def upload(self, trained: Trained, download: ItemDownload, block: Block, keys: Keys) -> TicketUpload:
        profiles, drawn = interacted(block, download.items, trained.rows), tickets(block, keys, "representative")
        return TicketUpload(trained.rows, trained.networks, block.sizes.astype(np.int32), profiles, drawn)

    def aggregate(self, server: ItemServer, replies: Iterator[Reply[TicketUpload]], keys: Keys) -> ItemServer:
        answered = list(replies)  # clusters are known only when everybody has answered
        if not answered:
            return server
        features = np.concatenate([centres(reply.upload) for reply in answered])
        drawn = np.concatenate([reply.upload.tickets for reply in answered])
        labels = kmeans(features, self.settings.clusters, keyed.stream(keys.seed, keys.round, "clusters"))
        weights = representative_weights(labels, drawn, self.settings.r)
        ends = np.cumsum([len(reply.clients) for reply in answered])[:-1]
        folding = Folding(mean_fields(server, 1.0))
        for reply, own in zip(answered, np.split(weights, ends), strict=True):
            folding.add(reply.clients, weighed(reply.upload, own))
        return moved_by_mean(server, folding.sums())


def representative_weights(labels: Int64, tickets: NDArray[np.unsignedinteger], share: float) -> Float64:
    """p_u ``[n]``, summing to one: ``n_c / (n r_c)`` for the ``r_c`` representatives of cluster c, else 0.

    The representatives of a cluster are the ``share`` (at least one) with the lowest tickets.
    """
    weights = np.zeros(len(labels))
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        chosen = members[lowest(tickets[members], share)]
        weights[chosen] = len(members) / (len(labels) * len(chosen))
    return weights

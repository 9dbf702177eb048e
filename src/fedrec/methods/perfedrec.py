"""PerFedRec: clusters of clients, each with a model of its own between the global one and the client's.

Luo, Xiao and Song, "Personalized federated recommendation via joint representation learning, user clustering,
and model adaptation", CIKM 2022; as the baseline PerFedRec of FedCA: "clustering aggregation by grouping clients
into several clusters with model similarities" (section 6.1), ten clusters of k-means. Fed3CR on it: personal at
the global, the cluster's and the client's own level, through collaborative graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.core.block import Block, World
from fedrec.core.fold import Float64, add_rows, weighted_sum
from fedrec.core.kinds import PlacesIn
from fedrec.core.messages import Array, Float32, Rows, per_client
from fedrec.core.method import Keys, Reply
from fedrec.data.ragged import Int64, offsets
from fedrec.learn.trained import Trained
from fedrec.maths.clustering import kmeans, sketch
from fedrec.maths.graphs import smoothed
from fedrec.methods._shared.embedding import EmbeddingMethod, ItemDownload, UserVectors, vectors_stay
from fedrec.methods._shared.personal import Networks, PersonalMethod, PersonalModel, PersonalSettings, blended
from fedrec.methods._shared.profiles import ProfileUpload, centres, interacted


class PerFedRecSettings(PersonalSettings):
    clusters: int = Field(10, ge=1, description="clusters of k-means (FedCA section 6.1: 10)")
    cluster_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="share of the cluster's model in the model that a client starts from; the rest is the global model",
    )
    features: Literal["profile", "model"] = Field(
        "profile", description="what clients are clustered by: their profile, or a sketch of their whole table"
    )
    graph_layers: int = Field(
        1, ge=0, description="layers of the graph encoder that profiles pass through before clustering; 0 for none"
    )
    graph_neighbours: int = Field(10, ge=1, description="neighbours of a client in the graph")
    sketch: int = Field(32, ge=1, description="numbers in the sketch of a table (features=model)")
    client_weights: Literal["size", "equal"] = Field(
        "size", description="how members are weighted in their cluster: by the size of their data, or equally"
    )


@dataclass(frozen=True)
class ClusterServer:
    """The global model, one for each cluster, and who is where."""

    items: Float32  # [n_items, d]
    networks: Networks
    cluster_items: Float32  # [clusters, n_items, d]
    cluster_networks: Networks  # [clusters, ...]
    labels: Annotated[
        Int64, PlacesIn("cluster_items", nobody=-1)
    ]  # [clients] cluster of each, -1 before the first upload
    features: Float64  # [clients, numbers] what each was last clustered by


@dataclass(frozen=True)
class ClusterDownload(ItemDownload):
    """The global model and that of one's own cluster (FedCA Table 7: 2 m f)."""

    cluster_items: Float32 = per_client()  # [clients, n_items, d]
    cluster_networks: Networks = per_client()  # [clients, ...]


class PerFedRec(PersonalMethod[ClusterServer, UserVectors, ProfileUpload, ClusterDownload]):
    """Q_c = mean over the cluster's members, Q = mean over all; a client starts from a blend of both."""

    name = "perfedrec"
    Settings = PerFedRecSettings
    Upload, Download = ProfileUpload, ClusterDownload
    small: ClassVar[dict[str, Any]] = {"clusters": 3}
    card = vectors_stay(
        title="PerFedRec: a global model and one for each cluster of clients",
        paper="Luo et al., CIKM 2022; as the baseline PerFedRec of FedCA (sections 5.2 and 6.1)",
        upload="change of the item table (and network), the embeddings of the client's own items (its profile), "
        "their number",
        sum_suffices=False,
        robust="rows",
        departures=(
            "the graph encoder is built as far as the papers describe it: a profile is the mean of the client's item "
            "embeddings (one step of a graph network along its own interactions), smoothed on the server over the "
            "nearest clients' profiles (graph_layers); no attributes of users or items, no attention layers",
            "the client's own level is the locally trained table (where the local model is evaluated) and the user "
            "vector; the weights of the cluster and global levels are a setting instead of being learnt",
            "absent clients are clustered by the profile they sent last",
            "representatives of clusters are not picked for training: --participation decides who takes part",
            "in FedCA's framework (section 5.2): exact with a similarity of one within clusters and zero across them, "
            "alpha >= 1, beta = 0, p equal, cluster_share=1 and client_weights=equal",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> ClusterServer:
        base = EmbeddingMethod.start_server(self, world, keys)
        count = self.settings.clusters
        width = self.settings.dim if self.settings.features == "profile" else self.settings.sketch
        return ClusterServer(
            base.items,
            base.networks,
            np.repeat(base.items[None], count, axis=0),
            {name: np.repeat(layer[None], count, axis=0) for name, layer in base.networks.items()},
            np.full(world.n_clients, -1, np.int64),
            np.zeros((world.n_clients, width)),
        )

    def download(self, server: ClusterServer, clients: Int64) -> ClusterDownload:
        labels = np.maximum(server.labels[clients], 0)  # before the first upload all clusters are alike
        networks = {name: layers[labels] for name, layers in server.cluster_networks.items()}
        return ClusterDownload(server.items, server.networks, server.cluster_items[labels], networks)

    def start_tables(self, private: UserVectors, download: ClusterDownload) -> tuple[Float32, Networks]:
        return (
            self.blended(download.cluster_items, download.items),
            {name: self.blended(own, download.networks[name]) for name, own in download.cluster_networks.items()},
        )

    def blended(self, own: Array, common: Array) -> Array:
        """The cluster's model and the global one, ``[clients, ...]``."""
        return blended(own, common, self.settings.cluster_share)

    def sent(self, trained: Trained, model: PersonalModel, block: Block, keys: Keys) -> ProfileUpload:
        wanted = self.settings.features == "profile"
        profiles = interacted(block, model.tables, trained.rows) if wanted else None
        return ProfileUpload(trained.rows, trained.networks, block.sizes.astype(np.int32), profiles)

    def aggregate(self, server: ClusterServer, replies: Iterator[Reply[ProfileUpload]], keys: Keys) -> ClusterServer:
        answered = list(replies)  # clusters are known only when everybody has answered
        if not answered:
            return server
        features, labels = server.features.copy(), server.labels.copy()
        for reply in answered:
            features[reply.clients] = self.described(server, reply, keys)
            labels[reply.clients] = np.maximum(labels[reply.clients], 0)
        seen = np.flatnonzero(labels >= 0)
        points = smoothed(features[seen], self.settings.graph_neighbours, self.settings.graph_layers)
        labels[seen] = kmeans(points, self.settings.clusters, keyed.stream(keys.seed, keys.round, "clusters"))
        return self.averaged(server, answered, labels, features)

    def described(self, server: ClusterServer, reply: Reply[ProfileUpload], keys: Keys) -> Float64:
        """What these clients are clustered by ``[clients, numbers]``."""
        if reply.upload.profiles is not None:
            return centres(reply.upload)
        key = keyed.stream(keys.seed, "sketch")  # the same every round: sketches are compared across rounds
        starts = self.blended(server.cluster_items, server.items)  # [clusters, n_items, d]
        count, n_items, dim = starts.shape
        ids = np.tile(np.arange(n_items, dtype=np.int32), count)
        whole = Rows(offsets(np.full(count, n_items)), ids, starts.reshape(-1, dim), n_items)
        before = np.maximum(server.labels[reply.clients], 0)
        return sketch(reply.upload.rows, self.settings.sketch, key) + sketch(whole, self.settings.sketch, key)[before]

    def averaged(
        self, server: ClusterServer, answered: list[Reply[ProfileUpload]], labels: Int64, features: Float64
    ) -> ClusterServer:
        """Models of the new clusters and of all: means of ``start + change`` over those who answered."""
        count = self.settings.clusters
        changes = np.zeros(server.cluster_items.shape)
        layers = {name: np.zeros(values.shape) for name, values in server.cluster_networks.items()}
        came = np.zeros((count, count))  # weight that moved to a new cluster (row) from an old one (column)
        for reply in answered:
            equal = self.settings.client_weights == "equal"
            weights = np.ones(len(reply.clients)) if equal else reply.upload.sizes.astype(np.float64)
            new, old = labels[reply.clients], np.maximum(server.labels[reply.clients], 0)
            np.add.at(came, (new, old), weights)
            for cluster in np.unique(new):
                members = np.flatnonzero(new == cluster)
                add_rows(changes[cluster], reply.upload.rows.take(members), weights[members])
                for name, change in reply.upload.networks.items():
                    layers[name][cluster] += weighted_sum(change[members], weights[members])
        # a cluster whose members were all absent: where they come from, unmoved
        empty = came.sum(1) == 0
        seen = server.labels >= 0
        stay = np.zeros_like(came)
        np.add.at(stay, (labels[seen], server.labels[seen]), 1.0)

        def next_models(clusters: Any, common: Array, moves: Float64) -> tuple[Array, Array]:
            starts = self.blended(clusters, common).astype(np.float64).reshape(count, -1)
            sums = (came @ starts).reshape(moves.shape) + moves
            everyone = (sums.sum(0) / max(came.sum(), 1e-12)).astype(np.float32)
            weight = came.sum(1).reshape(-1, *([1] * (moves.ndim - 1)))
            found = (sums / np.maximum(weight, 1e-12)).astype(np.float32)
            for cluster in np.flatnonzero(empty):
                share = stay[cluster] / max(stay[cluster].sum(), 1.0)
                moved = (share @ starts).reshape(moves.shape[1:])
                found[cluster] = moved if stay[cluster].any() else everyone
            return everyone, found

        if not came.any():  # all who answered had nothing to learn from
            return server
        items, cluster_items = next_models(server.cluster_items, server.items, changes)
        pairs = {
            name: next_models(server.cluster_networks[name], server.networks[name], moves)
            for name, moves in layers.items()
        }
        networks = {name: pair[0] for name, pair in pairs.items()}
        return ClusterServer(items, networks, cluster_items, {n: p[1] for n, p in pairs.items()}, labels, features)

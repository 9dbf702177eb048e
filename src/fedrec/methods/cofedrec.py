"""CoFedRec: items are grouped first, then users by how they treat one group of items.

He, Liu, Keung and He, "Co-clustering for federated recommender system", WWW 2024, as FedIAR section 4.1 describes it:
"employs a co-clustering strategy, first grouping items into clusters and then clustering users based on their
preferences for specific item categories". Each round

1. the server clusters the rows of the item table into K categories and draws one;
2. users are clustered by their changes of that category's items;
3. items of the category get a row for each user group, the mean over the group; all others the common mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.fold import add_rows
from fedrec.core.kinds import PlacesIn
from fedrec.core.messages import Float32, Rows, concatenate, per_client
from fedrec.core.method import Keys, Reply, Update
from fedrec.core.sums import Folding
from fedrec.data.ragged import Int64, offsets
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import (
    EmbeddingMethod,
    EmbeddingSettings,
    ItemDownload,
    ItemServer,
    ItemUpload,
    LocalModel,
    UserVectors,
    moved,
    vectors_stay,
)
from fedrec.methods._shared.server_steps import mean_fields, moved_by_mean, weighed


@dataclass(frozen=True)
class CoServer(ItemServer):
    """The common table, and rows of one category for each group of users."""

    category: Annotated[Int64, PlacesIn("items")] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # [k] items, ascending
    rows: Float32 = field(default_factory=lambda: np.zeros((1, 0, 0), np.float32))  # [groups, k, d] against the common
    group: Annotated[Int64, PlacesIn("rows")] = field(default_factory=lambda: np.zeros(0, np.int64))  # [clients]


@dataclass(frozen=True)
class CoDownload(ItemDownload):
    """The common table and network, and the client's group's rows of the category (as changes)."""

    changes: Rows = per_client()


class CoFedRecSettings(EmbeddingSettings):
    categories: int = Field(6, ge=1, description="item clusters K")
    groups: int = Field(4, ge=1, description="user clusters")


class CoFedRec(EmbeddingMethod[CoServer, UserVectors, ItemUpload, CoDownload]):
    """Co-clustering of items and users; user vectors stay."""

    name = "cofedrec"
    Settings = CoFedRecSettings
    Download = CoDownload
    anew = ("category", "rows", "group")
    card = vectors_stay(
        title="CoFedRec: item categories, and groups of users who treat a category alike",
        paper="He et al., Co-clustering for federated recommender system, WWW 2024, as FedIAR describes it",
        upload="changes of the item table",
        sum_suffices=False,
        robust="rows",
        departures=(
            "built from FedIAR's description (co-clustering only); the contrastive term of local training is left out",
            "k-means on both sides; users by the mean change of the category's rows",
            "a client that does not take part keeps its group",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> CoServer:
        base = super().start_server(world, keys)
        empty = np.zeros((self.settings.groups, 0, self.settings.dim), np.float32)
        return CoServer(base.items, base.networks, np.zeros(0, np.int64), empty, np.zeros(world.n_clients, np.int64))

    def download(self, server: CoServer, clients: Int64) -> CoDownload:
        size = len(server.category)
        start = np.arange(len(clients) + 1, dtype=np.int64) * size
        ids = np.tile(server.category.astype(np.int32), len(clients))
        values = server.rows[server.group[clients]].reshape(-1, server.items.shape[1])
        return CoDownload(server.items, server.networks, Rows(start, ids, values, len(server.items)))

    def local_update(self, private: Any, download: Any, block: Block, keys: Keys) -> Update[Any, Any]:
        found: list[Trained] = []
        members = same_rows(download.changes)
        for positions in members:
            table = download.items.copy()
            own = slice(int(download.changes.start[positions[0]]), int(download.changes.start[positions[0] + 1]))
            table[download.changes.ids[own]] += download.changes.values[own]
            part = block.take(positions)
            users = messages.gather(private, block, positions).users
            found.append(self.train(users, table, download.networks, part, keys))
        order = np.argsort(np.concatenate(members), kind="stable")
        rows = concatenate([ItemUpload(one.rows, one.networks) for one in found])
        sent = ItemUpload(rows.rows.take(order), {name: value[order] for name, value in rows.networks.items()})
        loss = np.concatenate([one.loss for one in found])[order]
        users = private.users.copy()
        for positions, one in zip(members, found, strict=True):
            messages.scatter(UserVectors(users), block, positions, UserVectors(one.users))
        local = LocalModel(download.items, added(download.changes, sent.rows), moved(download.networks, sent.networks))
        return Update(replace(private, users=users), sent, loss, local)

    def aggregate(self, server: CoServer, replies: Iterator[Reply[ItemUpload]], keys: Keys) -> CoServer:
        category = self.draw_category(server, keys)
        inside = np.zeros(len(server.items), bool)
        inside[category] = True
        folding, parts = Folding(mean_fields(server, 1.0)), []
        for reply in replies:
            folding.add(reply.clients, weighed(reply.upload, np.ones(len(reply.clients))))
            parts.append(only(reply.upload.rows, inside))
        if not parts:
            return server
        sums = folding.sums()
        after, taking = moved_by_mean(server, sums), sums.clients
        # a client's change is against what it downloaded: its group's rows, in last round's category
        old = np.zeros(server.items.shape, np.float64)
        if len(server.category):
            sizes = np.bincount(server.group[taking], minlength=len(server.rows))
            old[server.category] = np.tensordot(sizes / len(taking), server.rows.astype(np.float64), (0, 0))
        common = (after.items + old).astype(np.float32)
        group = server.group.copy()
        features = np.concatenate([client_means(part, len(category)) for part in parts])
        group[taking] = cluster(features, self.settings.groups, keyed.stream(keys.seed, keys.round, "groups"))
        rows = np.zeros((self.settings.groups, len(category), server.items.shape[1]), np.float32)
        for number in range(self.settings.groups):
            total, size = np.zeros(server.items.shape, np.float64), 0
            for ids, part in zip(folding.clients, parts, strict=True):
                own = (group[ids] == number).astype(np.float64)
                add_rows(total, part, own)
                size += int(own.sum())
            if size:
                was = group_start(server, taking[group[taking] == number])
                rows[number] = (server.items + was + total / size - common)[category]
        return CoServer(common, after.networks, category, rows, group)

    def draw_category(self, server: CoServer, keys: Keys) -> Int64:
        """Items of one of the K categories, drawn for this round."""
        label = cluster(server.items, self.settings.categories, keyed.stream(keys.seed, keys.round, "categories"))
        word = keyed.words(np.array([keyed.stream(keys.seed, keys.round, "category")], np.uint64), 1)[0, 0]
        present = np.unique(label)
        return np.flatnonzero(label == present[int(word % np.uint64(len(present)))]).astype(np.int64)


def group_start(server: CoServer, clients: Int64) -> NDArray[np.float64]:
    """What these clients' downloads had on top of the common table, on the mean ``[n_items, d]``."""
    found = np.zeros(server.items.shape, np.float64)
    if len(server.category) and len(clients):
        found[server.category] = server.rows[server.group[clients]].mean(0, dtype=np.float64)
    return found


def same_rows(changes: Rows) -> list[Int64]:
    """Clients with the same rows on top, as positions; those of one group hold the same values."""
    size = int(np.diff(changes.start).max(initial=0))
    if not size:
        return [np.arange(changes.n_clients)]
    seen: dict[bytes, int] = {}  # a few groups: comparing their bytes is much faster than sorting their rows
    rows = changes.values.reshape(changes.n_clients, -1)
    label = np.fromiter((seen.setdefault(row.tobytes(), len(seen)) for row in rows), np.int64, changes.n_clients)
    return [np.flatnonzero(label == number) for number in range(len(seen))]


def only(rows: Rows, inside: NDArray[np.bool_]) -> Rows:
    """The rows of wanted items."""
    keep = inside[rows.ids]
    counts = np.add.reduceat(np.append(keep, False).astype(np.int64), rows.start[:-1]) * (np.diff(rows.start) > 0)
    return Rows(offsets(counts), rows.ids[keep], rows.values[keep], rows.n_items)


def client_means(rows: Rows, size: int) -> NDArray[np.float64]:
    """``[clients, d]`` each client's mean change of ``size`` rows; rows that are not listed did not change."""
    owner = np.repeat(np.arange(rows.n_clients), np.diff(rows.start))
    total = np.zeros((rows.n_clients, rows.values.shape[1]))
    for column in range(rows.values.shape[1]):
        total[:, column] = np.bincount(owner, rows.values[:, column], minlength=rows.n_clients)
    return total / max(size, 1)


def added(first: Rows, second: Rows) -> Rows:
    """Changes of both on top of each other."""
    clients = first.n_clients
    owner = np.concatenate([np.repeat(np.arange(clients), np.diff(r.start)) for r in (first, second)])
    place = owner * np.int64(first.n_items) + np.concatenate([first.ids, second.ids])
    unique, inverse = np.unique(place, return_inverse=True)
    values = np.zeros((len(unique), first.values.shape[1]), np.float32)
    values[inverse[: len(first.ids)]] = first.values  # a client lists an item once in each of the two
    values[inverse[len(first.ids) :]] += second.values
    counts = np.bincount(unique // first.n_items, minlength=clients)
    return Rows(offsets(counts), (unique % first.n_items).astype(np.int32), values, first.n_items)


def cluster(values: NDArray[np.floating], count: int, seed: int) -> Int64:
    """k-means labels of rows, whatever their order; one label where there is nothing to tell apart."""
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    # distinct rows in ascending order: neither the order of clients nor the last bits of a sum can matter
    distinct, place = np.unique(np.round(np.asarray(values, np.float64) / scale, 5), axis=0, return_inverse=True)
    if len(distinct) < 2 or count < 2:
        return np.zeros(len(values), np.int64)
    from sklearn.cluster import KMeans

    sizes = np.bincount(place.reshape(-1), minlength=len(distinct))
    model = KMeans(min(count, len(distinct)), n_init=1, max_iter=50, random_state=seed % (1 << 32))
    return np.asarray(model.fit_predict(distinct, sample_weight=sizes)[place.reshape(-1)], np.int64)

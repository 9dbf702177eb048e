"""Clusters of clients: short sketches of what they sent, and k-means that ignores the clients' order.

Server side. A client's change of a table is ``n_items * d`` numbers; distances between clients survive a
random projection to a few dozen, so clustering never needs all tables side by side.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.messages import Rows
from fedrec.data.ragged import Int64

Float64 = NDArray[np.float64]

AT_ONCE = 1 << 16
"""Rows of tables that are projected at once."""


def signs(key: int, count: int, width: int) -> NDArray[np.float32]:
    """Random signs ``[count, width]``."""
    rows = keyed.streams(key, np.arange(count, dtype=np.uint64))
    return np.where(keyed.words(rows, width) >> np.uint64(63), np.float32(1), np.float32(-1))


def sketch(rows: Rows, width: int, key: int) -> Float64:
    """Each client's rows projected to ``width`` numbers ``[clients, width]``, distances kept on average.

    Column ``s`` is the sum over items i and coordinates k of ``a_is b_ks q_ik / sqrt(width)`` with random signs
    a and b: linear, so the sketch of a sum is the sum of sketches, and no matrix of ``n_items d width``
    numbers is needed.
    """
    dim = rows.values.shape[1]
    of_items = signs(keyed.combine(key, keyed.key_of("items")), rows.n_items, width)
    of_columns = signs(keyed.combine(key, keyed.key_of("columns")), dim, width)
    total = np.zeros((rows.n_clients, width))
    owner = np.repeat(np.arange(rows.n_clients), np.diff(rows.start))
    for first in range(0, len(rows.ids), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        seen = (rows.values[part] @ of_columns) * of_items[rows.ids[part]]
        clients, begins = np.unique(owner[part], return_index=True)
        total[clients] += np.add.reduceat(seen.astype(np.float64), begins, axis=0)
    return np.asarray(total / np.sqrt(width))


def kmeans(points: NDArray[np.floating], clusters: int, key: int) -> Int64:
    """Cluster of each point ``[n]``: scikit-learn's k-means with its own defaults, started by ``key``.

    Points are sorted by their coordinates first, so the answer does not depend on the order in which clients
    come. With fewer different points than ``clusters``, every one of them is a cluster.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    values = np.ascontiguousarray(points, np.float64)
    if not len(values):
        return np.zeros(0, np.int64)
    order = np.lexsort(values.T[::-1])
    different = 1 + int((np.diff(values[order], axis=0) != 0).any(1).sum())
    model = KMeans(n_clusters=min(clusters, different), random_state=int(key % (1 << 32)))
    labels = np.empty(len(values), np.int64)
    # one thread: the answer does not depend on how many there are, and so little work is slower on several
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # nearly equal points: fewer clusters is right
        labels[order] = model.fit_predict(values[order])
    return labels


def means_of_lists(values: NDArray[np.floating], counts: Int64) -> Float64:
    """Mean of each list of rows ``[lists, d]``, zero for an empty one; lists lie one after the other."""
    sums = np.zeros((len(counts), values.shape[1]))
    full = counts > 0
    if full.any():
        begins = (np.cumsum(counts) - counts)[full]
        sums[full] = np.add.reduceat(values.astype(np.float64), begins, axis=0)
    return sums / np.maximum(counts, 1)[:, None]

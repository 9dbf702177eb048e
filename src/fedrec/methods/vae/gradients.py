"""Sums of the gradients that users of the federated variational autoencoders send, as factors or whole."""

from __future__ import annotations

import numpy as np

from fedrec.core.block import Block
from fedrec.core.fold import Float64, add_rows
from fedrec.core.messages import Array, Float32, Rows
from fedrec.data.ragged import Ragged, offsets
from fedrec.methods.vae.messages import FIRST, LAYERS, DenseUpload, FactoredUpload, TwinDense, TwinFactored


def with_ones(values: Float32) -> Float32:
    """Factors ``[users, E, in]`` with the bias's input behind them."""
    return np.concatenate([values, np.ones((*values.shape[:2], 1), np.float32)], axis=2)


def add_factored(total: dict[str, Float64], upload: FactoredUpload, device: str = "cpu") -> int:
    """Add the gradients of all users of an upload: one matrix product a layer."""
    import torch
    from scipy.sparse import coo_matrix

    users, epochs = upload.delta_in.shape[:2]
    if not users:
        return 0
    place, epoch = np.nonzero(upload.values)  # dropped inputs add nothing
    column = np.repeat(np.arange(users), upload.counts)[place] * epochs + epoch
    shape = (total["items_in"].shape[0], users * epochs)
    inputs = coo_matrix((upload.values[place, epoch], (upload.ids[place], column)), shape=shape).tocsr()
    for table, bias, factor in FIRST:
        if table in total:
            deltas = getattr(upload, factor).reshape(users * epochs, -1)
            total[table] += inputs @ deltas
            total[bias] += deltas.sum(0, dtype=np.float64)

    def flat(array: Float32) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).reshape(users * epochs, -1).to(device)

    for name, left, right in LAYERS:
        if name in total:
            product = flat(with_ones(getattr(upload, left))).T @ flat(getattr(upload, right))
            total[name] += product.cpu().numpy()
    return int(users)


def add_dense(total: dict[str, Float64], upload: DenseUpload, device: str = "cpu") -> int:
    """Add the gradients of all clients of an upload."""
    for name, sum_ in total.items():
        found = getattr(upload, name)
        if isinstance(found, Rows):
            add_rows(sum_, found)
        else:
            for gradient in found:  # one client's at a time: memory stays at one
                sum_ += gradient
    return int(upload.users.sum())


def dense_upload(factors: FactoredUpload, block: Block) -> DenseUpload:
    """Whole gradients of each client of a block: the sum over its users of sum over e of a_e delta_e^T."""
    sums: dict[str, Array | Rows] = {}
    for name, left, right in LAYERS:
        if not hasattr(factors, right):
            continue
        a, delta = with_ones(getattr(factors, left)), getattr(factors, right)
        gradients = np.zeros((block.n_clients, a.shape[2], delta.shape[2]), np.float32)
        for user, client in enumerate(block.client_of_user):
            gradients[client] += a[user].T @ delta[user]
        sums[name] = gradients
    for table, bias, factor in FIRST:
        if hasattr(factors, factor):
            delta = getattr(factors, factor)
            sums[table] = _item_rows(factors, delta, block)
            added = sums[bias] = np.zeros((block.n_clients, delta.shape[2]), np.float32)
            np.add.at(added, block.client_of_user, delta.sum(1))
    kind = TwinDense if isinstance(factors, TwinFactored) else DenseUpload
    return kind(users=np.diff(block.user_start).astype(np.int64), **sums)  # type: ignore[arg-type]


def _item_rows(factors: FactoredUpload, deltas: Float32, block: Block) -> Rows:
    """Gradient rows of the first layer, client by client, ids ascending; users' rows of one item are added."""
    rows = np.empty((len(factors.ids), deltas.shape[2]), np.float32)
    train = Ragged(offsets(factors.counts), factors.ids)
    for user in range(len(train)):
        inside = slice(train.start[user], train.start[user + 1])
        rows[inside] = factors.values[inside] @ deltas[user]
    client = block.client_of_user[train.owners]
    place = client.astype(np.int64) * block.n_items + factors.ids
    order = np.argsort(place, kind="stable")
    first = np.flatnonzero(np.concatenate([[True], np.diff(place[order]) > 0])) if len(order) else order
    kept = place[order][first]
    added = np.add.reduceat(rows[order], first, axis=0) if len(order) else rows
    counts = np.bincount(kept // block.n_items, minlength=block.n_clients)
    return Rows(offsets(counts), (kept % block.n_items).astype(np.int32), added, block.n_items)

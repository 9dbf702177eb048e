"""What crosses the wire in the federated variational autoencoders, and the sums of gradients in it.

The gradient of a layer over E local epochs of a user is a sum of E outer products. Uploads carry the factors
(:class:`FactoredUpload`) or the whole (:class:`DenseUpload`); both add up to the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fedrec.core import messages
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32, Limit, Rows, per_client, per_interaction, per_user, shared
from fedrec.data.ragged import Int32, Int64, Ragged, offsets

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class Nets(messages.Download):
    """The global encoder phi and the decoder theta."""

    items_in: Float32 = shared()  # [m, 3d]
    bias_in: Float32 = shared()  # [3d]
    encoder_mid: Float32 = shared()  # [3d + 1, 2d]
    encoder_out: Float32 = shared()  # [2d + 1, 2 x d] mean, log variance
    decoder_in: Float32 = shared()  # [d + 1, 2d]
    decoder_mid: Float32 = shared()  # [2d + 1, 3d]
    decoder_out: Float32 = shared()  # [3d + 1, m]
    alpha: Float32 = shared()  # [1] weight of a user's loss, 1/n

    def arrays(self) -> dict[str, Array]:
        return {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.name != "alpha"}


@dataclass(frozen=True)
class TwinNets(Nets):
    """The same with a second encoder, where local encoders are averaged (``own``, as a user would have it)."""

    own_items_in: Float32 = shared()
    own_bias_in: Float32 = shared()
    own_mid: Float32 = shared()
    own_out: Float32 = shared()


@dataclass(frozen=True)
class FactoredUpload(messages.Upload):
    """Accumulated gradients of the shared layers as their factors: nabla W = sum over e of a_e delta_e^T.

    User after user; every factor has an entry for each local epoch. The bias's input is one and not sent.
    """

    counts: Int64 = per_user(low=0, high=Limit.ITEMS)  # [users] interactions of each user
    ids: Int32 = per_interaction(low=0, high=Limit.ITEM, counted_by="counts")  # [interactions]
    values: Float32 = per_interaction(counted_by="counts")  # [interactions, E] inputs of the first layer
    hidden_wide: Float32 = per_user()  # [users, E, 3d]
    hidden_narrow: Float32 = per_user()  # [users, E, 2d]
    latent: Float32 = per_user()  # [users, E, d]
    decoded_narrow: Float32 = per_user()  # [users, E, 2d]
    decoded_wide: Float32 = per_user()  # [users, E, 3d]
    delta_in: Float32 = per_user()  # [users, E, 3d]
    delta_mid: Float32 = per_user()  # [users, E, 2d]
    delta_out: Float32 = per_user()  # [users, E, 2 x d]
    delta_decoder_in: Float32 = per_user()  # [users, E, 2d]
    delta_decoder_mid: Float32 = per_user()  # [users, E, 3d]
    delta_decoder_out: Float32 = per_user()  # [users, E, m]


@dataclass(frozen=True)
class TwinFactored(FactoredUpload):
    """The same with the second encoder's factors; its input is the first encoder's."""

    own_hidden_wide: Float32 = per_user()
    own_hidden_narrow: Float32 = per_user()
    own_delta_in: Float32 = per_user()
    own_delta_mid: Float32 = per_user()
    own_delta_out: Float32 = per_user()


@dataclass(frozen=True)
class DenseUpload(messages.Upload):
    """Accumulated gradients of the shared layers, whole; summed over the client's users."""

    users: Int64 = per_client(protect=False, low=Limit.USERS, high=Limit.USERS)  # [clients] how many
    items_in: Rows = per_client()
    bias_in: Float32 = per_client()
    encoder_mid: Float32 = per_client()
    encoder_out: Float32 = per_client()
    decoder_in: Float32 = per_client()
    decoder_mid: Float32 = per_client()
    decoder_out: Float32 = per_client()


@dataclass(frozen=True)
class TwinDense(DenseUpload):
    """The same with the second encoder's gradients."""

    own_items_in: Rows = per_client()
    own_bias_in: Float32 = per_client()
    own_mid: Float32 = per_client()
    own_out: Float32 = per_client()


@dataclass(frozen=True)
class LocalNets(messages.Model):
    """What a client holds: the networks of its download and, right after local descent, the factors of its changes."""

    nets: Nets = shared()
    changes: FactoredUpload | None = per_client()


LAYERS = (
    ("encoder_mid", "hidden_wide", "delta_mid"),
    ("encoder_out", "hidden_narrow", "delta_out"),
    ("decoder_in", "latent", "delta_decoder_in"),
    ("decoder_mid", "decoded_narrow", "delta_decoder_mid"),
    ("decoder_out", "decoded_wide", "delta_decoder_out"),
    ("own_mid", "own_hidden_wide", "own_delta_mid"),
    ("own_out", "own_hidden_narrow", "own_delta_out"),
)
"""Each layer behind the first with the names of its two factors; the last two with two shared encoders only."""

FIRST = (("items_in", "bias_in", "delta_in"), ("own_items_in", "own_bias_in", "own_delta_in"))
"""Table and bias of each encoder's first layer with the name of their factor; the other one is the input."""


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
    column = np.repeat(np.arange(users), upload.counts)[:, None] * epochs + np.arange(epochs)
    row = np.repeat(upload.ids, epochs)
    shape = (total["items_in"].shape[0], users * epochs)
    inputs = coo_matrix((upload.values.ravel(), (row, column.ravel())), shape=shape).tocsr()
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
    from fedrec.core.fold import add_rows

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

"""The server's state and what crosses the wire in the federated variational autoencoders.

The gradient of a layer over E local epochs of a user is a sum of E outer products. Uploads carry the factors
(:class:`FactoredUpload`) or the whole (:class:`DenseUpload`); both add up to the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedrec.core import messages
from fedrec.core.messages import Array, Float32, Limit, Rows, per_client, per_interaction, per_user, shared
from fedrec.data.ragged import Int32, Int64

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


@dataclass(frozen=True)
class VaeServer:
    """phi and theta, and the server's Adam."""

    nets: dict[str, Array]
    mean: dict[str, Array]
    square: dict[str, Array]
    alpha: Float32  # [1] alpha_u of Eq. (7), the same for all users
    step: int = 0


@dataclass(frozen=True)
class Span:
    """Some users of a block and their interactions."""

    users: slice
    interactions: slice


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

    def norms(self) -> NDArray[np.float64]:
        """``[users]`` norm of each user's whole gradient, from the products of its factors; nothing is unfolded."""
        total = np.zeros(len(self.counts))
        values, ends = self.values.astype(np.float64), np.cumsum(self.counts)
        inputs = np.zeros((len(self.counts), values.shape[1], values.shape[1]))  # [users, E, E]
        with np.errstate(over="ignore", invalid="ignore"):
            for user, (count, end) in enumerate(zip(self.counts, ends, strict=True)):
                mine = values[end - count : end]
                inputs[user] = mine.T @ mine
            for _, _, factor in FIRST:
                if hasattr(self, factor):
                    total += ((inputs + 1) * _products(getattr(self, factor))).sum((1, 2))
            for _, left, right in LAYERS:
                if hasattr(self, right):
                    total += ((_products(getattr(self, left)) + 1) * _products(getattr(self, right))).sum((1, 2))
            return np.sqrt(np.maximum(total, 0) if np.isfinite(total).all() else np.abs(total))

    def scaled(self, factor: NDArray[np.float64]) -> Self:
        """Gradients times a factor for each user ``[users]``, by way of their right factors."""
        names = [name for *_, name in (*FIRST, *LAYERS) if hasattr(self, name)]
        each = factor.astype(np.float32)[:, None, None]
        with np.errstate(invalid="ignore"):
            scaled = {name: getattr(self, name) * each for name in names}
        for array in scaled.values():
            array[factor == 0] = 0  # also what is no number
        return replace(self, **scaled)


def _products(factors: Float32) -> NDArray[np.float64]:
    """``[users, E, E]`` of factors ``[users, E, width]`` with one another."""
    return np.asarray(np.matmul(factors, factors.transpose(0, 2, 1)), np.float64)


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

    users: Int64 = per_client(protect=False, low=Limit.USERS, high=Limit.USERS, public=True)  # [clients] how many
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

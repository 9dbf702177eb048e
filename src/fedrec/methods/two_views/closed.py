"""The fast twin of the plain objectives of Fed3CR and FedRAP: one step of descent with gradients written out.

For dot-product and affine scorers on the CPU; tested against torch's own gradients of what stands in the papers' files.
With ``G = W^T W`` and ``K = C^T V`` (both d x d) the losses of Fed3CR need no enhanced table:

    rec   s = (W^T u) . c_j + u . v_j + b                                                        (Eq. 11-13)
    L_a   cos(p^E, c^E_j) = c_j^T G p^G / (|p^E| sqrt(c_j^T G c_j)),   |p^E|^2 = p^G^T G p^G     (Eq. 15-16)
    L_o   |C^E^T V|^2 / d = |W K|^2 / d,    dC = V (2/d G K)^T,  dV = C (2/d G K),  dW = 2/d W K K^T  (Eq. 17-18)

so ``C G``, ``C^T V``, ``V (GK)^T``, ``C (GK)`` and ``C^T diag(.) C`` are the only products over whole tables, which
:mod:`fedrec.methods.two_views.clients_kernel` makes while a client's tables are in cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedrec.backbones.base import Backbone
from fedrec.core.messages import Array
from fedrec.methods.two_views.autograd import rate_of
from fedrec.methods.two_views.generator import MATRIX
from fedrec.methods.two_views.overshoot import generator_gain
from fedrec.methods.two_views.step import Batch, Objective, Positives, State


def closed_step(state: State, batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone) -> Tensor:
    """Change ``state`` by one step; returns each sample's recommendation loss ``[active, width]``."""
    from fedrec.methods.two_views.rows_kernel import mean_rows, spread_rows

    active, dim = batch.active, state.users.shape[1]
    shared, own = (table.view(-1, dim).numpy() for table in (state.shared, state.private))
    views, own_views = torch.zeros(2, active, dim)
    behind = positives.flat[:active].numpy(), positives.weight[:active].numpy()
    prototypes = chosen.transfer == "ace" or chosen.beta_a
    if prototypes:  # Eq. 10
        mean_rows(shared, *behind, views.numpy())
        mean_rows(own, *behind, own_views.numpy())

    # the transfer matrix (Eq. 9)
    read: list[Tensor] = []
    matrix = None
    if state.generator is not None:
        matrix, read = state.generator.matrix(torch.cat([views, own_views], 1))
    elif chosen.transfer == "consensus":
        matrix = state.networks[MATRIX][:active]

    gain = generator_gain(read) if read else torch.ones(active)
    found = descend(state, batch, chosen, backbone.kernel == "affine", matrix, gain, views, own_views)

    # what made W makes its step, and gives the prototypes their gradient
    if state.generator is not None:
        inputs = state.generator.descend(found.to_matrix, read, chosen.lr_transfer)
        found.to_views.add_(inputs[:, :dim])
        found.to_own_views.add_(inputs[:, dim:])
    elif matrix is not None:
        matrix.sub_(found.to_matrix, alpha=chosen.lr_transfer)
    if prototypes:  # a step on the rows behind them
        spread_rows(shared, *behind, found.to_views.numpy(), np.float32(rate_of("shared", chosen)))
        spread_rows(own, *behind, found.to_own_views.numpy(), np.float32(rate_of("private", chosen)))
    return found.each


@dataclass(frozen=True)
class Slopes:
    """Each sample's recommendation loss ``[active, width]``, and gradients of W and of both prototypes."""

    each: Tensor
    to_matrix: Tensor  # [active, d, d], without content where W is the identity
    to_views: Tensor  # [active, d]
    to_own_views: Tensor  # [active, d]


def descend(
    state: State, batch: Batch, chosen: Objective, affine: bool,
    matrix: Tensor | None, gain: Tensor, views: Tensor, own_views: Tensor,
) -> Slopes:  # fmt: skip
    """The step on tables, users and biases, where they lie; that of W, and of rows behind prototypes, is to come."""
    from fedrec.methods.two_views.clients_kernel import descend_clients

    take = state.scratch.take
    active, (n_items, dim), plain = batch.active, state.shared.shape[1:], matrix is None
    slopes = Slopes(
        torch.empty(batch.rows.shape),
        torch.empty(active, *(0, 0) if plain else (dim, dim)),
        *torch.empty(2, active, dim),
    )
    bias = state.networks["bias"] if affine else state.users.new_empty(0)
    own = (
        *_arrays(state.shared, state.private), state.place[:active],
        *_arrays(state.users[: batch.users]), state.users_at[: active + 1], *_arrays(bias[: batch.users]),
    )  # fmt: skip
    weights = (chosen.beta_a, chosen.beta_o, chosen.length_scale, chosen.norm_floor, chosen.lambda_, chosen.mu)
    own_rate = rate_of("private", chosen)
    rates = (chosen.lr, rate_of("shared", chosen), own_rate, chosen.lr_items, chosen.lr_transfer)
    descend_clients(
        own, _arrays(batch.flat.view_as(batch.rows), batch.owner, batch.label, batch.weight),
        (slopes.to_matrix if matrix is None else matrix).numpy(), plain, *_arrays(gain, views, own_views),
        _arrays(slopes.each, slopes.to_matrix, slopes.to_views, slopes.to_own_views),
        _arrays(take("C G", n_items, dim), take("lists", 6, n_items)),
        tuple(map(float, weights)), tuple(map(float, rates)),
    )  # fmt: skip
    return slopes


def _arrays(*tensors: Tensor) -> tuple[Array, ...]:
    return tuple(tensor.numpy() for tensor in tensors)

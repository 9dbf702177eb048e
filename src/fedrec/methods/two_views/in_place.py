"""A step of a chunk's clients on the CPU, where their tables lie: tensors in, the kernels' arrays out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedrec.core.messages import Array
from fedrec.methods.two_views.autograd import rate_of
from fedrec.methods.two_views.step import Batch, Objective, Positives, State


@dataclass(frozen=True)
class Slopes:
    """Each sample's recommendation loss ``[active, width]``, and gradients of W and of both prototypes."""

    each: Tensor
    to_matrix: Tensor  # [active, d, d], without content where W is the identity
    to_views: Tensor  # [active, d]
    to_own_views: Tensor  # [active, d]


@dataclass(frozen=True)
class InPlace:
    """The work of one step on tables (numba)."""

    state: State
    batch: Batch

    def mean(self, table: Tensor, positives: Positives) -> Tensor:
        """Prototypes ``[active, d]`` (Eq. 10)."""
        from fedrec.methods.two_views.rows_kernel import mean_rows

        active, dim = self.batch.active, table.shape[-1]
        out = torch.empty(active, dim)
        flat, weight = positives.flat[:active].numpy(), positives.weight[:active].numpy()
        mean_rows(table.view(-1, dim).numpy(), flat, weight, out.numpy())
        return out

    def descend(
        self, chosen: Objective, affine: bool, matrix: Tensor | None, gain: Tensor, views: Tensor, own_views: Tensor
    ) -> Slopes:
        """The step on tables, users and biases; that of W, and of rows behind prototypes, is yet to come."""
        from fedrec.methods.two_views.clients_kernel import descend_clients

        state, batch, take = self.state, self.batch, self.state.scratch.take
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

    def spread(self, table: Tensor, positives: Positives, gradient: Tensor, rate: float) -> None:
        """A step on the rows behind the prototypes, whose gradient is ``[active, d]``."""
        from fedrec.methods.two_views.rows_kernel import spread_rows

        active, dim = self.batch.active, table.shape[-1]
        flat, weight = positives.flat[:active].numpy(), positives.weight[:active].numpy()
        spread_rows(table.view(-1, dim).numpy(), flat, weight, gradient.numpy(), np.float32(rate))


def _arrays(*tensors: Tensor) -> tuple[Array, ...]:
    return tuple(tensor.numpy() for tensor in tensors)

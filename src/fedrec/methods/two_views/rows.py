"""What a mini-batch and the prototypes do to two stacked tables, row by row where they lie (``rows_kernel.py``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from fedrec.methods.two_views.step import Batch, Positives, State


@dataclass(frozen=True)
class Slopes:
    """The recommendation loss of a mini-batch (Eq. 7, 11-13) and its gradients."""

    each: Tensor  # [active, width] loss of each sample
    slope: Tensor  # [active, width] derivative by the score, weighed
    people: Tensor  # [users, d] what a step on V needs
    turned: Tensor  # [users, d] W^T u
    to_users: Tensor  # [users, d] what users descend along
    to_bias: Tensor  # [users]
    to_matrix: Tensor | None  # [active, d, d]; None where W is the identity


@dataclass(frozen=True)
class RowsInPlace:
    """The row work of one step: sums over a user's samples instead of copies of rows (numba)."""

    state: State
    batch: Batch

    def _flat(self) -> tuple[object, object]:
        dim = self.state.users.shape[1]
        return self.state.shared.view(-1, dim).numpy(), self.state.private.view(-1, dim).numpy()

    def mean(self, table: Tensor, positives: Positives, name: str) -> Tensor:
        """Prototypes ``[active, 1, d]`` (Eq. 10)."""
        from fedrec.methods.two_views.rows_kernel import mean_rows

        active, dim = self.batch.active, table.shape[-1]
        out = self.state.scratch.take(name, active, 1, dim)
        flat, weight = positives.flat[:active].numpy(), positives.weight[:active].numpy()
        mean_rows(table.view(-1, dim).numpy(), flat, weight, out[:, 0].numpy())
        return out

    def slopes(self, matrix: Tensor | None, affine: bool) -> Slopes:
        """Losses and gradients of the mini-batch."""
        from fedrec.methods.two_views.rows_kernel import add_outer, sample_slopes, turn_users

        state, batch, take = self.state, self.batch, self.state.scratch.take
        dim = state.users.shape[1]
        people, client = state.users[: batch.users], state.client_of_user[: batch.users].numpy()
        turned = people
        if matrix is not None:
            turned = take("turned", batch.users, dim)
            turn_users(people.numpy(), client, matrix.numpy(), turned.numpy())
        each, slope = take("each", *batch.rows.shape), take("slope", *batch.rows.shape)
        to_shared, to_private = take("to_shared", batch.users, dim), take("to_private", batch.users, dim)
        to_bias = take("to_bias", batch.users)
        bias = state.networks["bias"] if affine else state.users.new_empty(0)
        sample_slopes(
            *self._flat(), batch.flat.numpy(), batch.owner.view(-1).numpy(), batch.label.view(-1).numpy(),
            batch.weight.view(-1).numpy(), people.numpy(), turned.numpy(), bias.numpy(), each.view(-1).numpy(),
            slope.view(-1).numpy(), to_shared.numpy(), to_private.numpy(), to_bias.numpy(),
        )  # fmt: skip
        if matrix is None:
            return Slopes(each, slope, people, turned, to_private.add_(to_shared), to_bias, None)
        to_matrix = take("to_matrix", batch.active, dim, dim)
        add_outer(people.numpy(), client, to_shared.numpy(), to_matrix.numpy())
        back = take("back", batch.users, dim)  # the sum of slope W c = W times the sum
        turn_users(to_shared.numpy(), client, matrix.transpose(1, 2).numpy(), back.numpy())
        return Slopes(each, slope, people, turned, to_private.add_(back), to_bias, to_matrix)

    def descend(self, found: Slopes, rate: float, own_rate: float) -> None:
        """The mini-batch's step on both tables."""
        from fedrec.methods.two_views.rows_kernel import descend_rows

        descend_rows(
            *self._flat(), self.batch.flat.numpy(), self.batch.owner.view(-1).numpy(), found.slope.view(-1).numpy(),
            found.people.numpy(), found.turned.numpy(), np.float32(rate), np.float32(own_rate),
        )  # fmt: skip

    def spread(self, table: Tensor, positives: Positives, gradient: Tensor, rate: float) -> None:
        """A step on the rows behind the prototypes, whose gradient is ``[active, 1, d]``."""
        from fedrec.methods.two_views.rows_kernel import spread_rows

        active, dim = self.batch.active, table.shape[-1]
        flat, weight = positives.flat[:active].numpy(), positives.weight[:active].numpy()
        spread_rows(table.view(-1, dim).numpy(), flat, weight, gradient[:, 0].contiguous().numpy(), np.float32(rate))

    def descend_users(self, found: Slopes, rate: float, affine: bool) -> None:
        """The step of user vectors and biases, after all else has read them."""
        self.state.users[: self.batch.users].sub_(found.to_users, alpha=rate)
        if affine:
            self.state.networks["bias"][: self.batch.users].sub_(found.to_bias, alpha=rate)

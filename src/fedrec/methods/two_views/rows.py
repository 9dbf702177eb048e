"""What a mini-batch and the prototypes do to two stacked tables, in two ways.

:class:`CopiedRows` is plain torch and runs on any device: rows are copied, worked on and added back.
:class:`RowsInPlace` runs on the CPU and reads and writes rows where they lie (``rows_kernel.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fedrec.methods.two_views.step import Batch, Positives, State


@dataclass(frozen=True)
class Slopes:
    """The recommendation loss of a mini-batch (Eq. 7, 11-13) and its gradients."""

    each: Tensor  # [active, width] loss of each sample
    slope: Tensor  # [active, width] derivative by the score, weighed
    people: Tensor  # vectors that a step on V needs: per sample, or per user
    turned: Tensor  # W^T u, likewise
    to_users: Tensor  # what users descend along: per sample, or per user
    to_bias: Tensor  # likewise
    to_matrix: Tensor | None  # [active, d, d]; None where W is the identity


class RowWork(Protocol):
    """The row work of one step."""

    def mean(self, table: Tensor, positives: Positives, name: str) -> Tensor:
        """Prototypes ``[active, 1, d]`` (Eq. 10)."""

    def slopes(self, matrix: Tensor | None, affine: bool) -> Slopes:
        """Losses and gradients of the mini-batch."""

    def descend(self, found: Slopes, rate: float, own_rate: float) -> None:
        """The mini-batch's step on both tables."""

    def spread(self, table: Tensor, positives: Positives, gradient: Tensor, rate: float) -> None:
        """A step on the rows behind the prototypes, whose gradient is ``[active, 1, d]``."""

    def descend_users(self, found: Slopes, rate: float, affine: bool) -> None:
        """The step of user vectors and biases, after all else has read them."""


@dataclass(frozen=True)
class CopiedRows:
    """Plain torch, on any device."""

    state: State
    batch: Batch

    def mean(self, table: Tensor, positives: Positives, name: str) -> Tensor:
        return positives.mean(table, self.batch.active)

    def slopes(self, matrix: Tensor | None, affine: bool) -> Slopes:
        state, batch = self.state, self.batch
        dim = state.users.shape[1]
        shape = (*batch.rows.shape, dim)
        owner = batch.owner.view(-1)
        people = state.users.index_select(0, owner).view(shape)
        shared = state.shared.view(-1, dim).index_select(0, batch.flat).view(shape)
        private = state.private.view(-1, dim).index_select(0, batch.flat).view(shape)
        turned = people if matrix is None else torch.bmm(people, matrix)  # W^T u
        logit = (turned * shared).sum(-1) + (people * private).sum(-1)
        if affine:
            logit = logit + state.networks["bias"].index_select(0, owner).view(batch.rows.shape)
        each = functional.binary_cross_entropy_with_logits(logit, batch.label, reduction="none")
        slope = (logit.sigmoid() - batch.label) * batch.weight
        fused = private + (shared if matrix is None else torch.bmm(shared, matrix.transpose(1, 2)))
        wide = slope.unsqueeze(-1)
        to_matrix = None if matrix is None else torch.bmm((wide * people).transpose(1, 2), shared)
        return Slopes(each, slope, people, turned, (wide * fused).view(-1, dim), slope.view(-1), to_matrix)

    def descend(self, found: Slopes, rate: float, own_rate: float) -> None:
        wide, dim = found.slope.unsqueeze(-1), self.state.users.shape[1]
        for table, vectors, pace in (
            (self.state.private, found.people, own_rate),
            (self.state.shared, found.turned, rate),
        ):
            table.view(-1, dim).index_add_(0, self.batch.flat, (wide * vectors).view(-1, dim), alpha=-pace)

    def spread(self, table: Tensor, positives: Positives, gradient: Tensor, rate: float) -> None:
        active = self.batch.active
        where = positives.flat[:active].reshape(-1)
        table.view(-1, table.shape[-1]).index_add_(0, where, positives.spread(gradient, active), alpha=-rate)

    def descend_users(self, found: Slopes, rate: float, affine: bool) -> None:
        owner = self.batch.owner.view(-1)
        self.state.users.index_add_(0, owner, found.to_users, alpha=-rate)
        if affine:
            self.state.networks["bias"].index_add_(0, owner, found.to_bias, alpha=-rate)


@dataclass(frozen=True)
class RowsInPlace:
    """Numba on the CPU: sums over a user's samples instead of copies of rows."""

    state: State
    batch: Batch

    def _flat(self) -> tuple[object, object]:
        dim = self.state.users.shape[1]
        return self.state.shared.view(-1, dim).numpy(), self.state.private.view(-1, dim).numpy()

    def mean(self, table: Tensor, positives: Positives, name: str) -> Tensor:
        from fedrec.methods.two_views.rows_kernel import mean_rows

        active, dim = self.batch.active, table.shape[-1]
        out = self.state.scratch.take(name, active, 1, dim)
        flat, weight = positives.flat[:active].numpy(), positives.weight[:active].numpy()
        mean_rows(table.view(-1, dim).numpy(), flat, weight, out[:, 0].numpy())
        return out

    def slopes(self, matrix: Tensor | None, affine: bool) -> Slopes:
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
        from fedrec.methods.two_views.rows_kernel import descend_rows

        descend_rows(
            *self._flat(), self.batch.flat.numpy(), self.batch.owner.view(-1).numpy(), found.slope.view(-1).numpy(),
            found.people.numpy(), found.turned.numpy(), np.float32(rate), np.float32(own_rate),
        )  # fmt: skip

    def spread(self, table: Tensor, positives: Positives, gradient: Tensor, rate: float) -> None:
        from fedrec.methods.two_views.rows_kernel import spread_rows

        active, dim = self.batch.active, table.shape[-1]
        flat, weight = positives.flat[:active].numpy(), positives.weight[:active].numpy()
        spread_rows(table.view(-1, dim).numpy(), flat, weight, gradient[:, 0].contiguous().numpy(), np.float32(rate))

    def descend_users(self, found: Slopes, rate: float, affine: bool) -> None:
        self.state.users[: self.batch.users].sub_(found.to_users, alpha=rate)
        if affine:
            self.state.networks["bias"][: self.batch.users].sub_(found.to_bias, alpha=rate)

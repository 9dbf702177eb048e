"""What a scoring model is: how it starts, how it scores in torch (training) and in numpy (evaluation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor


def dot_scores(users: Float32, table: Float32, owners: Int64, out: Float32 | None = None) -> Float32:
    """``u . v`` of every user and item: ``[users, n_items]``; clients' own tables are not copied."""
    if table.ndim == 2:
        return np.matmul(users, table.T, out=out)
    result = np.empty((len(users), table.shape[1]), np.float32) if out is None else out
    for user, client in enumerate(owners):
        np.dot(table[client], users[user], out=result[user])
    return result


class Backbone:
    """A scorer of (user, item) pairs. Instances hold layer sizes only; parameters go in and come out."""

    name: ClassVar[str]
    kernel: ClassVar[Literal["dot", "affine"] | None] = None
    """The fused kernel that trains it, where there is one."""
    per_user: ClassVar[frozenset[str]] = frozenset()
    """Network parameters that are stacked over users (others: shared, or stacked over clients)."""
    sequential: ClassVar[bool] = False
    """Whether a user's vector is read off the order of its items (``learn/torch/sequential.py``), not learnt."""

    def start(self, keys: U64, dim: int) -> dict[str, Array]:
        """Fresh network parameters, one per key: ``[len(keys), ...]`` each."""
        return {}

    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        """Logits ``[clients, batch]`` of ``users`` ``[clients, batch or 1, d]`` and ``items``
        ``[clients, batch, d]``; networks are ``[clients, ...]``, per-user ones ``[clients, batch or 1]``.
        The dot product, where a backbone has nothing of its own."""
        return (users * items).sum(-1)

    def scores(
        self,
        users: Float32,
        table: Float32,
        networks: Mapping[str, Array] | None = None,
        client_of_user: Int64 | None = None,
    ) -> Float32:
        """All scores ``[users, n_items]``; ``table`` and networks shared, or one each per client and then
        picked by ``client_of_user`` (default: client ``i`` holds user ``i``)."""
        owners = np.arange(len(users)) if client_of_user is None else client_of_user
        return self._scores(users, table, networks or {}, owners)

    def _scores(self, users: Float32, table: Float32, networks: Mapping[str, Array], owners: Int64) -> Float32:
        """What :meth:`scores` gives, user ``i`` being of client ``owners[i]``."""
        return dot_scores(users, table, owners)

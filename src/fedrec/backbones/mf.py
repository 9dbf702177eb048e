"""Matrix factorisation: the dot product, and its sibling with one affine layer per user (PFedRec)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fedrec.backbones.base import Backbone
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor


def dot_scores(users: Float32, table: Float32, client_of_user: Int64 | None = None) -> Float32:
    """``u . v`` of every user and item: ``[users, n_items]``; a personal table is never copied."""
    if table.ndim == 2:
        return users @ table.T
    owners = np.arange(len(users)) if client_of_user is None else client_of_user
    result = np.empty((len(users), table.shape[1]), np.float32)
    for user, client in enumerate(owners):
        np.dot(table[client], users[user], out=result[user])
    return result


class MatrixFactorisation(Backbone):
    """``score = u . v``."""

    name: ClassVar[str] = "mf"
    kernel: ClassVar[Literal["dot", "affine"] | None] = "dot"

    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        return (users * items).sum(-1)

    def scores(
        self,
        users: Float32,
        table: Float32,
        networks: Mapping[str, Array] | None = None,
        client_of_user: Int64 | None = None,
    ) -> Float32:
        return dot_scores(users, table, client_of_user)


class Affine(MatrixFactorisation):
    """``score = w . v + b``: PFedRec's score function, an affine layer per user; ``w`` is the user's row.

    ``networks["bias"]`` ``[users]`` holds ``b``.
    """

    name: ClassVar[str] = "affine"
    kernel: ClassVar[Literal["dot", "affine"] | None] = "affine"
    per_user: ClassVar[frozenset[str]] = frozenset({"bias"})

    def start(self, keys: U64, dim: int) -> dict[str, Array]:
        return {"bias": np.zeros(len(keys), np.float32)}

    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        return super().score(users, items, networks) + networks["bias"]

    def scores(
        self,
        users: Float32,
        table: Float32,
        networks: Mapping[str, Array] | None = None,
        client_of_user: Int64 | None = None,
    ) -> Float32:
        found = dot_scores(users, table, client_of_user)
        if networks is not None:
            found += networks["bias"][:, None]
        return found

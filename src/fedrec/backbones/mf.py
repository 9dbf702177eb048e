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


class MatrixFactorisation(Backbone):
    """``score = u . v``."""

    name: ClassVar[str] = "mf"
    kernel: ClassVar[Literal["dot", "affine"] | None] = "dot"


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

    def _scores(self, users: Float32, table: Float32, networks: Mapping[str, Array], owners: Int64) -> Float32:
        found = super()._scores(users, table, networks, owners)
        return found + networks["bias"][:, None] if networks else found

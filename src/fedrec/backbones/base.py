"""What a scoring model is: how it starts, how it scores in torch (training) and in numpy (evaluation)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Int64
from fedrec.keyed import U64

if TYPE_CHECKING:
    from torch import Tensor


class Backbone(ABC):
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

    @abstractmethod
    def score(self, users: Tensor, items: Tensor, networks: Mapping[str, Tensor]) -> Tensor:
        """Logits ``[clients, batch]`` of ``users`` ``[clients, batch or 1, d]`` and ``items``
        ``[clients, batch, d]``; networks are ``[clients, ...]``, per-user ones ``[clients, batch or 1]``."""

    @abstractmethod
    def scores(
        self,
        users: Float32,
        table: Float32,
        networks: Mapping[str, Array] | None = None,
        client_of_user: Int64 | None = None,
    ) -> Float32:
        """All scores ``[users, n_items]``; ``table`` and networks shared, or one each per client and then
        picked by ``client_of_user`` (default: client ``i`` holds user ``i``)."""

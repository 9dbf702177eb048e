"""Server steps: every table and network moves by the (weighted) mean of the clients' changes, as in most methods, or
the server descends along gradients of its item table, as in FedMF, and remembers what it needs from step to step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from fedrec.core.fold import Float64
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.core.sums import SumField, Summand, Summands, Sums
from fedrec.learn.adam import descended
from fedrec.methods._shared.embedding import ItemServer

Server = TypeVar("Server", bound=ItemServer)


def mean_fields(server: ItemServer, largest: float | None) -> dict[str, SumField]:
    """The sums that a mean of changes needs; ``largest`` is the largest weight, None where there are no weights."""
    found = {"items": SumField(server.items.shape, largest or 1.0)}
    found |= {network(name): SumField(layer.shape, largest or 1.0) for name, layer in server.networks.items()}
    if largest is not None:
        found["weight"] = SumField((), bound=largest, protected=False)
    return found


def weighed(upload: Any, weights: Array | None) -> Summands:
    """What clients add to these sums; ``weights`` ``[clients]``."""
    found = {"items": Summand(upload.rows, weights)}
    found |= {network(name): Summand(change, weights) for name, change in upload.networks.items()}
    if weights is not None:
        found["weight"] = Summand(weights)
    return found


def moved_by_mean(server: Server, sums: Sums) -> Server:
    """The server's state, moved by the mean of the changes in ``sums``."""
    weight = float(sums["weight"]) if "weight" in sums.totals else float(sums.count)
    if not weight:
        return server

    def moved(before: Array, total: Float64) -> Array:
        return (before + total / weight).astype(before.dtype)

    networks = {name: moved(layer, sums[network(name)]) for name, layer in server.networks.items()}
    return replace(server, items=moved(server.items, sums["items"]), networks=networks)


def network(name: str) -> str:
    """The sum of a network's layer."""
    return f"networks[{name}]"


class MeanOfChanges:
    """``Q <- Q + sum_u w_u (Q_u - Q) / sum_u w_u``, and the same for networks; every client counts the same.

    A method with weights gives them in :meth:`weights`, and in :meth:`largest_weight` how large they can be.
    """

    def weights(self, upload: Any) -> Array | None:
        """``[clients]`` w_u; None: 1."""
        return None

    def largest_weight(self, n_items: int, users: int) -> float | None:
        """The largest weight of a client with at most so many users; None where there are no weights."""
        return None

    def sum_fields(self, server: Any, users: int) -> dict[str, SumField]:
        return mean_fields(server, self.largest_weight(len(server.items), users))

    def summands(self, upload: Any, download: Any) -> Summands:
        return weighed(upload, self.weights(upload))

    def finish(self, server: Any, sums: Sums, keys: Keys) -> Any:
        return moved_by_mean(server, sums)


WHOLE = 2**31 - 1
"""A batch size that no client reaches: one step over all its samples."""


@dataclass(frozen=True)
class GradientServer(ItemServer):
    """The table and the server's own optimiser state."""

    mean: Float32 = field(default_factory=lambda: np.zeros(0, np.float32))  # [n_items, d] first moment
    square: Float32 = field(default_factory=lambda: np.zeros(0, np.float32))  # [n_items, d] second moment
    step: int = 0

    @classmethod
    def fresh(cls, server: ItemServer) -> GradientServer:
        """Before the first step."""
        return cls(server.items, server.networks, np.zeros_like(server.items), np.zeros_like(server.items))

    def descended(self, downhill: Array, rate: float, optimizer: Literal["adam", "sgd"] = "adam") -> GradientServer:
        """One step along a negative gradient ``[n_items, d]``; Adam takes a sum and a mean alike."""
        if optimizer == "sgd":
            return replace(self, items=np.asarray(self.items + rate * downhill, np.float32), step=self.step + 1)
        step = self.step + 1  # moments are those of the negative gradient, hence the negative rate
        items, mean, square = descended(self.items, self.mean, self.square, downhill, -rate, step)
        return replace(self, items=items, mean=mean, square=square, step=step)

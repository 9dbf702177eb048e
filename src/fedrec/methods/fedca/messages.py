"""What FedCA's server and clients keep, what crosses the wire, and the reports of a round put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core import messages
from fedrec.core.messages import Array, Float32, Limit, per_client, per_interaction, per_user, shared
from fedrec.core.method import Reply
from fedrec.data.ragged import Int64, offsets, segments
from fedrec.methods._shared.personal import PersonalDownload, lowest
from fedrec.methods.fedca.auto import Trials


@dataclass(frozen=True)
class FedCaServer:
    """What every client receives next, and how it came about."""

    tables: Float32  # [clients, n_items, d] Q_u^g
    networks: dict[str, Array]  # [clients, ...]
    first: Float32  # [n_items, d] the table everybody started from
    weights: Float32  # [clients, clients] W of the last round in which a client was aggregated
    common: Float32 | None = None  # [n_items, d] the average by p, where training starts from it
    common_networks: dict[str, Array] = field(default_factory=dict)
    trials: Trials | None = None  # of alpha=auto, beta=auto

    @property
    def sent(self) -> Float32:
        """What training starts from: ``[n_items, d]``, or one a client."""
        return self.tables if self.common is None else self.common


@dataclass(frozen=True)
class FedCaPrivate(messages.Private):
    """User vectors, and the client's own model after its last training (for the blend)."""

    users: Float32 = per_user()  # [users, d]
    tables: Float32 | None = per_client()  # [clients, n_items, d]; None where rho = 0
    networks: dict[str, Array] = per_client()  # [clients, ...]


@dataclass(frozen=True)
class FedCaDownload(PersonalDownload):
    """The client's own mixture, and the average where training starts from it."""

    common: Float32 | None = shared()  # [n_items, d]
    common_networks: dict[str, Array] = shared()


@dataclass(frozen=True)
class FedCaUpload(messages.Upload):
    """The whole table, and what stands for the data: |I_u| x k numbers (Table 7: m f + |I_u| k)."""

    tables: Float32 = per_client()  # [clients, n_items, d] Q_u
    networks: dict[str, Array] = per_client()  # [clients, ...]
    sizes: NDArray[np.int32] | None = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients] |D_u|
    tickets: NDArray[np.uint32] | None = per_client(
        protect=False, public=True
    )  # [clients] the lowest share r is aggregated
    # [interactions, k] X_u; has noise of its own
    subspaces: Float32 | None = per_interaction(protect=False, counted_by="sizes")
    components: Float32 | None = per_client(protect=False)  # [clients, k, d] instead of X_u, as coded
    gains: Float32 | None = per_client(protect=False)  # [clients, 2] of alpha=auto, beta=auto


@dataclass(frozen=True)
class Reported:
    """What clients reported beside their tables, stacked; client ``c`` has the rows ``start[c] .. start[c + 1]``."""

    clients: Int64  # [n]
    sizes: Int64  # [n] |D_u|
    start: Int64  # [n + 1]
    tickets: NDArray[np.uint32]  # [n]
    subspaces: Any  # [rows, k] or None
    components: Any  # [n, k, d] or None
    gains: Any  # [n, 2] or None

    @classmethod
    def of(cls, replies: Sequence[Reply[Any]]) -> Reported:
        """The small fields of all uploads, in the order in which they came."""

        def stacked(name: str) -> Any:
            parts = [getattr(reply.upload, name) for reply in replies]
            return None if parts[0] is None else np.concatenate(parts)

        sizes, tickets = np.asarray(stacked("sizes"), np.int64), stacked("tickets")
        if tickets is None:
            tickets = np.zeros(len(sizes), np.uint32)
        everyone = np.concatenate([reply.clients for reply in replies])
        others = (stacked(name) for name in ("subspaces", "components", "gains"))
        return cls(everyone, sizes, offsets(sizes), tickets, *others)

    def aggregated(self, share: float) -> Reported:
        """The share of the clients that is aggregated, by ascending number."""
        chosen = lowest(self.tickets, share)
        chosen = chosen[np.argsort(self.clients[chosen], kind="stable")]
        rows = None if self.subspaces is None else self.subspaces[segments(self.start, chosen)]
        components = None if self.components is None else self.components[chosen]
        gains = None if self.gains is None else self.gains[chosen]
        sizes = self.sizes[chosen]
        return Reported(self.clients[chosen], sizes, offsets(sizes), self.tickets[chosen], rows, components, gains)


@dataclass(frozen=True)
class Terms:
    """What the weights are made of, between the aggregated clients."""

    clients: Int64  # [n]
    proxy: Array  # [n] p up to scale
    similar: Any  # [n, n] s, or None
    complementary: Any  # [n, n] c, or None

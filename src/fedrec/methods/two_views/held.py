"""What a client with two views of every item keeps, and what it holds to score with."""

from __future__ import annotations

from dataclasses import dataclass

from fedrec.core import messages
from fedrec.core.messages import Array, Float32, Rows, per_client, per_user, shared


@dataclass(frozen=True)
class TwoViewPrivate(messages.Private):
    """User vectors (weights of an affine scorer), its biases, and V; never leave."""

    users: Float32 = per_user()  # [users, d]
    bias: Float32 = per_user()  # [users]
    tables: Float32 = per_client()  # [clients, n_items, d]


@dataclass(frozen=True)
class LocalViews(messages.Model):
    """What a client holds: the downloaded C, generator and score layers, with its own changes after training."""

    items: Float32 = shared()  # [n_items, d]
    changes: Rows | None = per_client()
    networks: dict[str, Array] = shared()
    network_changes: dict[str, Array] = per_client()  # [clients, ...]

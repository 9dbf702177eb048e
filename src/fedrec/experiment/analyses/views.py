"""How the two views of a finished run agree (Fed3CR, Figures 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput
from fedrec.experiment.open import opened

CHUNK = 64
"""Clients whose tables are looked at together."""


@dataclass(frozen=True)
class Views:
    """How a run's two views of the items agree."""

    name: str
    users: list[str]
    overlap: NDArray[np.float64]  # [users] rank-biased overlap of the two top lists
    client: str
    correlation: NDArray[np.float64]  # [d, d] of that client


def two_views(run: Path, client: str | None = None, depth: int = 50, p: float = 0.99) -> Views:
    """Agreement of the consensus and the private view for all users, their correlation on one client."""
    from fedrec.methods.two_views.reading import Reader
    from fedrec.methods.two_views.views import TwoViews

    prepared = opened(run).prepared
    method: Any = prepared.method
    if not isinstance(method, TwoViews):
        raise BadInput(
            f"{run} is a run of {method.name}, which has no two views of an item; give runs of fed3cr, fedrap"
        )
    ids = prepared.people.client_ids
    if client is not None and client not in ids:
        raise BadInput(f"{prepared.task.data.name} has no client {client!r}; its {len(ids)} start with {ids[0]!r}")
    shown = ids.index(client) if client is not None else 0
    overlaps = []
    for first in range(0, len(ids), CHUNK):
        private, download, block = prepared.runtime.at_home(np.arange(first, min(first + CHUNK, len(ids))))
        overlaps.append(Reader.of(method, private, method.model(download), block).overlap(depth, p))
    private, download, block = prepared.runtime.at_home(np.array([shown]))
    return Views(
        str(run),
        [str(name) for name in prepared.task.data.user_ids[prepared.people.users]],
        np.concatenate(overlaps),
        ids[shown],
        Reader.of(method, private, method.model(download), block).correlation(0),
    )

"""Items that an upload names: in a field of item numbers, or by the gradient of an output layer's bias."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen
from fedrec.core.messages import Limit, Rows


class NamedItems(Reader):
    """FedDAE's factors list the items; dense gradients of its last layer have the bias pi - r_u, below zero there."""

    name = "named"
    card = AttackCard(
        title="items listed in an upload, or with a negative gradient of the output bias",
        paper="this project's audit; after Zhao et al., iDLG: improved deep leakage from gradients, 2020",
        who="server",
        sees="one upload of one client",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = []
        for one in seen:
            chosen = _chosen(one.rounds[-1].upload, one.world.n_items)
            found.append(None if chosen is None else Found(chosen.astype(float), chosen, float(chosen.sum())))
        return found


def _chosen(upload: Any, m: int) -> NDArray[np.bool_] | None:
    for spec in dataclasses.fields(upload):
        content = getattr(upload, spec.name)
        if isinstance(content, np.ndarray) and getattr(spec.metadata.get("range"), "high", None) is Limit.ITEM:
            return np.isin(np.arange(m), content)
    for spec in dataclasses.fields(upload):
        content = getattr(upload, spec.name)
        if isinstance(content, Rows) or not isinstance(content, np.ndarray):
            continue
        if content.ndim == 3 and content.shape[2] == m and content.dtype.kind == "f":
            return np.asarray(content[:, -1].sum(0) < 0)  # the last row of the layer is its bias
    return None

"""Items from one upload: the rows that changed, the largest, those on one side of a direction, and items by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import Alone, AttackCard, Found, Seen
from fedrec.attacks.per_item import along_first_direction, main_table, touched
from fedrec.core.messages import Limit


class TouchedRows(Alone):
    """A row that changed belongs to an item the client has, or was trained against."""

    name = "touched"
    card = AttackCard(
        title="items whose rows in one upload are not zero",
        paper="folklore; Gao et al., Privacy threats against federated matrix factorization, 2020",
        who="server",
        sees="one upload of one client",
    )

    def one(self, seen: Seen) -> Found | None:
        table = main_table(seen)
        return None if table is None else Found.of(touched(table))


class RowNorms(Alone):
    """A client's own items move its table most."""

    name = "norms"
    card = AttackCard(
        title="items whose rows in one upload are largest",
        paper="Zhang et al., Comprehensive privacy analysis on federated recommender system, 2023",
        who="server",
        sees="one upload of one client; as many items are named as the client has",
    )

    def one(self, seen: Seen) -> Found | None:
        table = main_table(seen)
        return None if table is None else Found(np.linalg.norm(table, axis=1))


class PrincipalSign(Alone):
    """Every row moves along the user's vector, an item's own way and its negatives' the other.

    The vector itself need not be known: it is the first principal direction of the change, and the side with fewer
    rows are the items. Of a whole table the start is taken off first.
    """

    name = "sign"
    card = AttackCard(
        title="items on the smaller side of the first principal direction of one upload",
        paper="this project's audit; after Chai et al., IEEE Intelligent Systems 2020 (gradients reveal ratings)",
        who="server",
        sees="one upload of one client, what it was sent, and its upload before",
    )

    def one(self, seen: Seen) -> Found | None:
        table = main_table(seen)
        if table is None or table.shape[1] == len(table):
            return None
        scores = along_first_direction(table)
        return Found.of(scores > 0, scores)


class NamedItems(Alone):
    """FedDAE's factors list the items; dense gradients of its last layer have the bias pi - r_u, below zero there."""

    name = "named"
    card = AttackCard(
        title="items listed in an upload, or with a negative gradient of the output bias",
        paper="this project's audit; after Zhao et al., iDLG: improved deep leakage from gradients, 2020",
        who="server",
        sees="one upload of one client",
    )

    def one(self, seen: Seen) -> Found | None:
        chosen = _named(seen.rounds[-1].upload, seen.world.n_items)
        return None if chosen is None else Found.of(chosen)


def _named(upload: Any, m: int) -> NDArray[np.bool_] | None:
    """``[n_items]`` the items that a field of item numbers lists, or else an output layer gives away."""
    fields = [(spec, getattr(upload, spec.name)) for spec in dataclasses.fields(upload)]
    arrays = [(spec, content) for spec, content in fields if isinstance(content, np.ndarray)]
    for spec, content in arrays:
        if getattr(spec.metadata.get("range"), "high", None) is Limit.ITEM:
            return np.isin(np.arange(m), content)
    for _, content in arrays:
        if content.ndim == 3 and content.shape[2] == m and content.dtype.kind == "f":
            return np.asarray(content[:, -1].sum(0) < 0)  # the last row of the layer is its bias
    return None

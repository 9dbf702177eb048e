"""Promotion of a cold item by boosted gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Poison
from fedrec.attacks.crafted import BOOST, item_table, only_item, times, with_row
from fedrec.core.method import Keys


class Boost(Poison):
    """A dishonest client adds the item to its history, trains honestly, and sends what that did to the item's row,
    a hundred times. Nothing but its own work is needed, so it fits every method.

    Adaptive: it knows that changes and rows are bounded. It sends the item's row alone, at whatever length the bound
    leaves it, in the direction in which all users' scores rise (the mean of the popular items' rows), every round the
    same; and a history made of popular items, so that the item is seen beside them.
    """

    name = "boost"
    promotes = True
    card = AttackCard(
        title="promote a cold item: its row as honest training moves it, a hundred times",
        paper="Bagdasaryan et al., AISTATS 2020 (boosting); explicit promotion of Zhang et al., WSDM 2022",
        who="clients",
        sees="its own data and download; adaptive: also which items are popular, and the defence",
    )

    def history(self, own: NDArray[np.int32]) -> NDArray[np.int32]:
        kept = self.facts.popular[: max(1, len(own))].astype(np.int32) if self.facts.adaptive else own
        return np.unique(np.append(kept, np.int32(self.facts.target)))

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        m, target = self.facts.world.n_items, self.facts.target
        table = item_table(download, m) if self.facts.adaptive else None
        crafted = None if table is None else with_row(upload, target, _uphill(table, self.facts.popular), m)
        return times(only_item(upload, target, m), BOOST) if crafted is None else crafted


def _uphill(table: NDArray[np.float32], popular: NDArray[Any]) -> NDArray[np.float32]:
    """A long step towards the popular items' mean."""
    mean = table[popular[:20]].mean(0)
    return np.asarray(BOOST * mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)

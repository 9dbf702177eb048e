"""PipAttack: a cold item is moved to where the popular items are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Poison
from fedrec.attacks.crafted import BOOST, item_table, with_row
from fedrec.core.method import Keys


class PipAttack(Poison):
    """Popularity alignment with explicit boosting: the row is pulled towards the mean of the popular items' rows.

    The paper trains a popularity classifier on the item embeddings and descends its loss; the mean of the most popular
    is the point that such a classifier is surest of. Adaptive: the pull is as long as an honest row's change.
    """

    name = "pipattack"
    promotes = True
    card = AttackCard(
        title="promote a cold item: its row is pulled to the popular items' mean",
        paper="Zhang et al., PipAttack: poisoning federated recommender systems for manipulating item promotion, "
        "WSDM 2022",
        who="clients",
        sees="its download, and which items are popular",
    )

    length: ClassVar[float] = 1.0
    """How many times the popular items' mean the row is pulled to."""

    def popular(self, table: NDArray[np.float32]) -> NDArray[Any]:
        """The items to be like."""
        return self.facts.popular[:20]

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        m, target = self.facts.world.n_items, self.facts.target
        table = item_table(download, m)
        if table is None:
            return None
        pull = self.length * table[self.popular(table)].mean(0) - table[target]
        return with_row(upload, target, pull if self.facts.adaptive else BOOST * pull, m)

"""Promotion of a cold item: by boosted gradients, or by moving it to where the popular items are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Facts, Poison
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
        title="promote a cold item: its row as honest training moves it, times a hundred",
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
        crafted = None
        if table is not None:
            mean = table[self.facts.popular[:20]].mean(0)
            uphill = np.asarray(BOOST * mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)  # a long step
            crafted = with_row(upload, target, uphill, m)
        return times(only_item(upload, target, m), BOOST) if crafted is None else crafted


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


class Replacement(PipAttack):
    """The difference between the row that is wanted and the row that is there, a hundred times, so that it is still
    large after the mean over all clients. The wanted row points where the popular items' rows point on average, which
    is where nearly all users' vectors point, and is longer than they are. Unlike a boosted gradient, the push does
    not fade once the dishonest clients' own scores are right, and it stops where the row is long enough: a row without
    bounds drives away everybody who draws it as a negative. Adaptive: the difference once.
    """

    name = "replacement"
    card = AttackCard(
        title="promote a cold item: its row is replaced by a longer version of the popular items' mean",
        paper="Bagdasaryan et al., How to backdoor federated learning, AISTATS 2020 (model replacement), with the "
        "direction of PipAttack (Zhang et al., WSDM 2022)",
        who="clients",
        sees="its download, and which items are popular",
    )
    length = 20.0  # it must outbid each of them for nearly everybody


class Pieck(PipAttack):
    """PIECK-IPE: the items whose rows change most from round to round are the popular ones (popular item mining), and
    the item's row is aligned with theirs. The first round only watches.
    """

    name = "pieck"
    card = AttackCard(
        title="promote a cold item: its row is aligned with the rows that move most",
        paper="Zhang et al., Preventing the popular item embedding based attack in federated recommendations, "
        "ICDE 2024 (PIECK-IPE)",
        who="clients",
        sees="its downloads",
    )

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.before: NDArray[np.float32] | None = None
        self.moved = np.zeros(facts.world.n_items)

    def popular(self, table: NDArray[np.float32]) -> NDArray[Any]:
        if self.before is not None and self.before is not table:
            self.moved += np.linalg.norm(table - self.before, axis=1)
        self.before = table
        return np.argsort(-self.moved, kind="stable")[:20]

"""Promotion of a cold item by model replacement: its row becomes what the attacker wants it to be."""

from __future__ import annotations

from typing import Any

from fedrec.attacks.contract import AttackCard
from fedrec.attacks.crafted import BOOST, item_table, with_row
from fedrec.attacks.pipattack import PipAttack
from fedrec.core.method import Keys

LENGTH = 20.0
"""How many times the popular items' mean the wanted row is: it must outbid each of them for nearly everybody."""


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

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        m, target = self.facts.world.n_items, self.facts.target
        table = item_table(download, m)
        if table is None:
            return None
        missing = LENGTH * table[self.popular(table)].mean(0) - table[target]
        return with_row(upload, target, missing if self.facts.adaptive else BOOST * missing, m)

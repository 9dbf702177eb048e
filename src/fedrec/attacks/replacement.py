"""Promotion of a cold item by model replacement: its row becomes what the attacker wants it to be."""

from __future__ import annotations

from fedrec.attacks.contract import AttackCard
from fedrec.attacks.pipattack import PipAttack


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

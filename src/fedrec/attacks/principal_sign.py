"""Items from one upload: the sign of each row along the first principal direction of the change."""

from __future__ import annotations

from collections.abc import Sequence

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen
from fedrec.attacks.per_item import along_first_direction, main_table


class PrincipalSign(Reader):
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

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = []
        for one in seen:
            table = main_table(one)
            scores = None if table is None or table.shape[1] == len(table) else along_first_direction(table)
            found.append(None if scores is None else Found(scores, scores > 0, float((scores > 0).sum())))
        return found

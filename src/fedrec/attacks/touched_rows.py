"""Items from one upload: rows that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen
from fedrec.attacks.per_item import main_table, touched


class TouchedRows(Reader):
    """A row that changed belongs to an item the client has, or was trained against."""

    name = "touched"
    card = AttackCard(
        title="items whose rows in one upload are not zero",
        paper="folklore; Gao et al., Privacy threats against federated matrix factorization, 2020",
        who="server",
        sees="one upload of one client",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = []
        for one in seen:
            table = main_table(one)
            rows = None if table is None else touched(table)
            found.append(None if rows is None else Found(rows.astype(float), rows, float(rows.sum())))
        return found

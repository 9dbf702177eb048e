"""The size of a history: said in the upload, or counted from its rows."""

from __future__ import annotations

from collections.abc import Sequence

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen
from fedrec.attacks.per_item import main_table, size_field, touched


class HistorySize(Reader):
    """A size that rides along, or the rows that changed without those drawn as negatives."""

    name = "size"
    card = AttackCard(
        title="how many items a client has",
        paper="this project's audit",
        who="server",
        sees="one upload of one client and the method's settings",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = []
        for one in seen:
            size = size_field(one.rounds[-1])
            if size is None:
                table = main_table(one)
                drawn = float(getattr(one.method.settings, "negatives", 0))
                size = None if table is None else float(touched(table).sum()) / (1 + drawn)
            found.append(None if size is None else Found(size=size))
        return found

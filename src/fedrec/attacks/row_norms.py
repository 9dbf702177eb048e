"""Items from one upload: the largest rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen
from fedrec.attacks.per_item import main_table


class RowNorms(Reader):
    """A client's own items move its table most."""

    name = "norms"
    card = AttackCard(
        title="items whose rows in one upload are largest",
        paper="Zhang et al., Comprehensive privacy analysis on federated recommender system, 2023",
        who="server",
        sees="one upload of one client; as many items are named as the client has",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        tables = [main_table(one) for one in seen]
        return [None if table is None else Found(np.linalg.norm(table, axis=1)) for table in tables]

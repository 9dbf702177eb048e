"""Items over several rounds: what was touched every time, and what stands out on average."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrec.attacks.contract import AttackCard, Found, Reader, Seen
from fedrec.attacks.per_item import along_first_direction, tables, touched


class Intersection(Reader):
    """Negatives are drawn anew each round, a client's own items are there every time."""

    name = "intersection"
    rounds = 3
    card = AttackCard(
        title="items whose rows are not zero in every one of several uploads",
        paper="folklore; Yuan et al., WWW 2023 (section 5)",
        who="server",
        sees="several uploads of one client",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = []
        for one in seen:
            per_round = [next(iter(tables(one, place).values()), None) for place in range(len(one.rounds))]
            known = [touched(table) for table in per_round if table is not None]
            count = np.sum(known, axis=0) if known else None
            found.append(
                None if count is None else Found(count / len(known), count == len(known), (count == len(known)).sum())
            )
        return found


class Averaging(Reader):
    """Noise that is drawn anew each round averages out."""

    name = "averaging"
    rounds = 3
    card = AttackCard(
        title="items that stand out in the mean of several uploads",
        paper="this project's audit; Dwork and Roth, 2014 (averaging answers)",
        who="server",
        sees="several uploads of one client; as many items are named as the client has",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = []
        for one in seen:
            per_round = [next(iter(tables(one, place).values()), None) for place in range(len(one.rounds))]
            known = [table for table in per_round if table is not None]
            if not known:
                found.append(None)
                continue
            square = known[0].shape[1] == len(known[0])
            each = [np.linalg.norm(table, axis=1) if square else along_first_direction(table) for table in known]
            found.append(Found(np.mean([scores / max(scores.std(), 1e-12) for scores in each], axis=0)))
        return found

"""Items over several rounds: touched every time, outstanding on average, or in a download that is a mixture."""

from __future__ import annotations

import numpy as np

from fedrec.attacks.contract import Alone, AttackCard, Float64, Found, Seen
from fedrec.attacks.per_item import along_first_direction, main_table, touched
from fedrec.core.messages import Axis, fields_of


class Intersection(Alone):
    """Negatives are drawn anew each round, a client's own items are there every time."""

    name = "intersection"
    rounds = 3
    card = AttackCard(
        title="items whose rows are not zero in every one of several uploads",
        paper="folklore; Yuan et al., WWW 2023 (section 5)",
        who="server",
        sees="several uploads of one client",
    )

    def one(self, seen: Seen) -> Found | None:
        known = [touched(table) for table in _tables(seen)]
        if not known:
            return None
        count = np.sum(known, axis=0)
        return Found.of(count == len(known), count / len(known))


class Averaging(Alone):
    """Noise that is drawn anew each round averages out."""

    name = "averaging"
    rounds = 3
    card = AttackCard(
        title="items that stand out in the mean of several uploads",
        paper="this project's audit; Dwork and Roth, 2014 (averaging answers)",
        who="server",
        sees="several uploads of one client; as many items are named as the client has",
    )

    def one(self, seen: Seen) -> Found | None:
        known = _tables(seen)
        if not known:
            return None
        square = known[0].shape[1] == len(known[0])
        each = [np.linalg.norm(table, axis=1) if square else along_first_direction(table) for table in known]
        return Found(np.mean([scores / max(scores.std(), 1e-12) for scores in each], axis=0))


class Mixture(Alone):
    """A mixture made for one client is close to its nearest others: their items stand out in what it receives.

    The participant takes the first download off the last one and its own last change off that; what is left moved
    because of others.
    """

    name = "mixture"
    rounds = 3
    card = AttackCard(
        title="items of the nearest other client, from a personal download",
        paper="this project's audit; of FedCA (TOIS 2026), pFedGraph (ICML 2023), GPFedRec (KDD 2024)",
        who="participant",
        sees="its own downloads and uploads; it learns nothing where everybody receives the same",
    )

    def one(self, seen: Seen) -> Found | None:
        first, last = seen.rounds[0].download, seen.rounds[-1].download
        for name, axis, content in fields_of(last):
            personal = axis is Axis.CLIENT and isinstance(content, np.ndarray) and content.dtype.kind == "f"
            if personal and content.ndim == 3 and content.shape[1] == seen.world.n_items and len(seen.rounds) > 1:
                moved = np.asarray(content[0] - getattr(first, name)[0], np.float64)
                return Found(along_first_direction(moved) if moved.any() else np.zeros(len(moved)))
        return None


def _tables(seen: Seen) -> list[Float64]:
    """The main table of each round that has one."""
    each = (main_table(seen, place) for place in range(len(seen.rounds)))
    return [table for table in each if table is not None]

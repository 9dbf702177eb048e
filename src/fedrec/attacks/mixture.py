"""What a personal download tells a participant about others."""

from __future__ import annotations

import numpy as np

from fedrec.attacks.contract import Alone, AttackCard, Found, Seen
from fedrec.attacks.per_item import along_first_direction
from fedrec.core.messages import Axis, fields_of


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
        sees="its own downloads and uploads; nothing where everybody receives the same",
    )

    def one(self, seen: Seen) -> Found | None:
        first, last = seen.rounds[0].download, seen.rounds[-1].download
        for name, axis, content in fields_of(last):
            personal = axis is Axis.CLIENT and isinstance(content, np.ndarray) and content.dtype.kind == "f"
            if personal and content.ndim == 3 and content.shape[1] == seen.world.n_items and len(seen.rounds) > 1:
                moved = np.asarray(content[0] - getattr(first, name)[0], np.float64)
                return Found(along_first_direction(moved) if moved.any() else np.zeros(len(moved)))
        return None

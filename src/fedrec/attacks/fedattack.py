"""FedAttack: training on the hardest samples, the wrong way round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Float64, Poison
from fedrec.core.method import Keys


class FedAttack(Poison):
    """A dishonest client takes the items it likes least for its own, and so what it likes for negatives.

    Its upload has the length and the look of an honest one, so it is adaptive as it is.
    """

    name = "fedattack"
    wants_scores = True
    card = AttackCard(
        title="train honestly on the items one likes least (hardest samples)",
        paper="Wu et al., FedAttack: effective and covert poisoning attack on federated recommendation via hard "
        "sampling, KDD 2022",
        who="clients",
        sees="its own data and model",
    )

    def trains_on(self, scores: Float64, own: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.sort(np.argsort(scores, kind="stable")[: len(own)]).astype(np.int32)

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        return upload

"""Damage without a target, and clients that give nothing: sign flips, noise, hard samples, sizes, free riders."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import AttackCard, Float64, Poison
from fedrec.attacks.crafted import BOOST, noise_like, times
from fedrec.core.method import Keys
from fedrec.robust.fields import weight_fields


class Flip(Poison):
    """The honest change turned round, ten times as long; adaptive: as long as it was."""

    name = "flip"
    card = AttackCard(
        title="send the honest change with its sign reversed",
        paper="Li et al., RSA: Byzantine-robust stochastic aggregation methods, AAAI 2019 (sign flips)",
        who="clients",
        sees="its own data and download",
    )

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        return times(upload, -1.0 if self.facts.adaptive else -10.0)


class NoiseUpload(Poison):
    """Normal noise instead of a change, ten times as large; adaptive: as large."""

    name = "noise"
    card = AttackCard(
        title="send noise instead of a change",
        paper="Blanchard et al., NeurIPS 2017 (Gaussian attack)",
        who="clients",
        sees="its own data and download",
    )

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        draws = keys.server(f"noise attack {self.facts.seed}")
        return noise_like(upload, draws, 1.0 if self.facts.adaptive else 10.0)


class FedAttack(Poison):
    """A dishonest client takes the items it likes least for its own, and so what it likes for negatives.

    Its upload has the length and the look of an honest one, so it is adaptive as it is.
    """

    name = "fedattack"
    wants_scores = True
    card = AttackCard(
        title="train honestly on the items that its users like least (hardest samples)",
        paper="Wu et al., FedAttack: effective and covert poisoning attack on federated recommendation via hard "
        "sampling, KDD 2022",
        who="clients",
        sees="its own data and model",
    )

    def trains_on(self, scores: Float64, own: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.sort(np.argsort(scores, kind="stable")[: len(own)]).astype(np.int32)

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        return upload


class InflatedSizes(Poison):
    """An honest change turned round that claims to come from as many interactions as there can be."""

    name = "sizes"
    card = AttackCard(
        title="claim the largest possible history, so as to count more",
        paper="this project's audit",
        who="clients",
        sees="its own data and download, and the largest size that a server accepts as possible",
    )

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        most = self.facts.world.n_items
        fields = {name: np.full_like(getattr(upload, name), most) for name in weight_fields(upload)}
        return dataclasses.replace(times(upload, -1.0), **fields) if fields else None


class FreeRider(Poison):
    """Nothing, or (adaptive) a little noise that looks like work; the model is received all the same."""

    name = "free-rider"
    card = AttackCard(
        title="send nothing and receive the model",
        paper="Fraboni et al., Free-rider attacks on model aggregation in federated learning, AISTATS 2021",
        who="clients",
        sees="its download",
    )

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        if self.facts.adaptive:
            return noise_like(upload, keys.server(f"free rider {self.facts.seed}"), 1.0 / BOOST)
        return times(upload, 0.0)

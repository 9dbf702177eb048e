"""Damage without a target, and clients that give nothing: sign flips, noise, inflated sizes, free riders."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fedrec.attacks.contract import AttackCard, Poison
from fedrec.attacks.crafted import BOOST, noise_like, nothing, times
from fedrec.core.messages import Limit
from fedrec.core.method import Keys


class Flip(Poison):
    """The honest change turned round, ten times as long; adaptive: as long as it was."""

    name = "flip"
    card = AttackCard(
        title="send the honest change turned round",
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


class InflatedSizes(Poison):
    """An honest change turned round that claims to come from as many interactions as there can be."""

    name = "sizes"
    card = AttackCard(
        title="claim the largest possible history, so as to count more",
        paper="this project's audit",
        who="clients",
        sees="its own data and download; what a server takes for a possible size",
    )

    def sent(self, upload: Any, download: Any, clients: int, keys: Keys) -> Any | None:
        fields: dict[str, Any] = {}
        cutting = {spec.metadata.get("counted_by") for spec in dataclasses.fields(upload)}
        for spec in dataclasses.fields(upload):
            content = getattr(upload, spec.name)
            owned = getattr(spec.metadata.get("range"), "high", None) is Limit.OWNED
            if owned and content is not None and spec.name not in cutting:
                fields[spec.name] = np.full_like(content, self.facts.world.n_items)
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
        return nothing(upload)

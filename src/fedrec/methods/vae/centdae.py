"""CentDAE: FedDAE's two encoders and gate on collected histories (the paper's own control).

Li et al., AAAI 2025, section "Baselines".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedrec.backbones.vae import Sizes, combined, decode, divergence, encode, fresh_decoder, fresh_encoder
from fedrec.core.messages import Array
from fedrec.core.method import Card, Keys
from fedrec.core.reference import Central
from fedrec.methods.vae.central import Batch, CentralVae, likelihood

if TYPE_CHECKING:
    import torch

SECOND = "second_"


class CentDae(CentralVae):
    """Two encoders for everybody, weighed by softmax(r_u . psi)."""

    name = "centdae"
    card = Card(
        title="CentDAE: FedDAE's dual encoder and gate on collected histories",
        paper="Li et al., AAAI 2025 (the control CentDAE of FedDAE)",
        private="nothing: all histories are collected",
        upload="whole histories",
        sum_suffices=True,
        departures=("both encoders and the gate are common to all users: the paper does not say otherwise",),
    )

    def fresh(self, data: Central, keys: Keys) -> dict[str, Array]:
        sizes = Sizes(data.world.n_items, self.settings.dim)
        second = fresh_encoder(keys.server("second encoder"), sizes)
        return {
            **fresh_encoder(keys.server("encoder"), sizes),
            **{SECOND + name: array for name, array in second.items()},
            "gate": np.zeros((sizes.n_items, 2), np.float32),
            **fresh_decoder(keys.server("decoder"), sizes),
        }

    def code(self, nets: dict[str, torch.Tensor], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of the combined Gaussian (Eq. 5)."""
        import torch

        other = {name.removeprefix(SECOND): array for name, array in nets.items() if name.startswith(SECOND)}
        has = torch.ones_like(batch.values)
        weights = batch.bags.read(nets["gate"], has).softmax(1)
        return combined(encode(batch.bags, nets, batch.values), encode(batch.bags, other, batch.values), weights)

    def loss(self, nets: dict[str, torch.Tensor], batch: Batch, beta: float) -> torch.Tensor:
        mean, variance = self.code(nets, batch)
        logits = decode(mean + variance.sqrt() * batch.noise, nets)
        return (beta * divergence(mean, variance) - likelihood(logits, batch.bags)).mean()

    def logits(self, nets: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        return decode(self.code(nets, batch)[0], nets)

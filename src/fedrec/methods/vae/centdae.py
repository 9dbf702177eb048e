"""CentDAE: FedDAE's two encoders and gate on collected histories (the paper's own control).

Li et al., AAAI 2025, section "Baselines".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedrec.backbones.vae import Sizes, combined, encode, fresh_encoder
from fedrec.core.messages import Array
from fedrec.core.method import Keys
from fedrec.core.reference import Central, collected
from fedrec.methods.vae.central import Batch
from fedrec.methods.vae.multvae import MultVae

if TYPE_CHECKING:
    import torch

SECOND = "second_"


class CentDae(MultVae):
    """Two encoders for everybody, weighed by softmax(r_u . psi)."""

    name = "centdae"
    card = collected(
        "CentDAE: FedDAE's dual encoder and gate on collected histories",
        "Li et al., AAAI 2025 (the control CentDAE of FedDAE)",
        "both encoders and the gate are common to all users: the paper does not say otherwise",
    )

    def fresh(self, data: Central, keys: Keys) -> dict[str, Array]:
        second = fresh_encoder(keys.server("second encoder"), Sizes(data.world.n_items, self.settings.dim))
        gate = {"gate": np.zeros((data.world.n_items, 2), np.float32)}
        return {**super().fresh(data, keys), **{SECOND + name: array for name, array in second.items()}, **gate}

    def code(self, nets: dict[str, torch.Tensor], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of the combined Gaussian (Eq. 5)."""
        import torch

        other = {name.removeprefix(SECOND): array for name, array in nets.items() if name.startswith(SECOND)}
        has = torch.ones_like(batch.values)
        weights = batch.bags.read(nets["gate"], has).softmax(1)
        return combined(encode(batch.bags, nets, batch.values), encode(batch.bags, other, batch.values), weights)

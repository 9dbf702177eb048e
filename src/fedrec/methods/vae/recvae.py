"""RecVAE on collected histories: composite prior, per-user beta, alternating training.

Shenbin et al., "RecVAE: a new variational autoencoder for top-N recommendations with implicit feedback",
WSDM 2020.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from fedrec.backbones.vae import Bags, affine, fresh_layer, glorot, to_device
from fedrec.core.messages import Array
from fedrec.core.method import Keys
from fedrec.core.reference import Central, collected
from fedrec.methods.vae.central import Batch, CentralVae, CentralVaeSettings, VaeState, likelihood

if TYPE_CHECKING:
    import torch

DEPTH = 5
MIXTURE = (3 / 20, 3 / 4, 1 / 10)
"""Weights of the composite prior: standard normal, the old posterior, a wide normal."""
WIDE_LOG_VARIANCE = 10.0


class RecVaeSettings(CentralVaeSettings):
    """Settings of RecVAE."""

    hidden: int = Field(600, ge=1, description="width of the encoder's layers")
    lr: float = Field(5e-4, gt=0, description="learning rate of Adam")
    gamma: float = Field(0.005, ge=0, description="beta of a user is gamma times the number of its items")
    encoder_epochs: int = Field(3, ge=1, description="epochs of the encoder for each epoch of the decoder")
    batch_size: int = Field(500, ge=1, description="users in a mini-batch")


class RecVae(CentralVae):
    """Densely connected encoder with swish and layer norm, linear decoder."""

    name = "recvae"
    anew = ("old",)
    Settings = RecVaeSettings
    card = collected(
        "RecVAE: composite prior and alternating training, on collected histories",
        "Shenbin et al., WSDM 2020",
        "a round is three epochs of the encoder and one of the decoder",
        "beta and anneal do not apply: beta is gamma |x_u|",
    )

    def fresh(self, data: Central, keys: Keys) -> dict[str, Array]:
        width, dim, draw = self.settings.hidden, self.settings.dim, keys.server("encoder")
        nets: dict[str, Array] = {
            "table": glorot(draw, (data.world.n_items, width)),
            "bias": np.zeros(width, np.float32),
        }
        for layer in range(1, DEPTH):
            nets[f"layer_{layer}"] = fresh_layer(draw, width, width)
        for layer in range(DEPTH):  # gain, then shift, of the layer norm
            nets[f"norm_{layer}"] = np.stack([np.ones(width, np.float32), np.zeros(width, np.float32)])
        nets["coded"] = fresh_layer(draw, width, 2 * dim)
        nets["decoder"] = fresh_layer(keys.server("decoder"), dim, data.world.n_items)
        return nets

    def code(self, nets: dict[str, torch.Tensor], bags: Bags, values: torch.Tensor) -> torch.Tensor:
        """``[users, 2 d]`` mean and log variance; every layer also reads all before it."""
        from torch.nn.functional import layer_norm, silu

        def normed(hidden: torch.Tensor, layer: int) -> torch.Tensor:
            gain, shift = nets[f"norm_{layer}"]
            return layer_norm(silu(hidden), hidden.shape[1:], gain, shift, eps=0.1)

        made = normed(bags.read(nets["table"], values) + nets["bias"], 0)
        before = made
        for layer in range(1, DEPTH):
            made = normed(affine(made, nets[f"layer_{layer}"]) + before, layer)
            before = before + made
        return affine(made, nets["coded"])

    def step(self, state: VaeState, data: Central, keys: Keys) -> tuple[VaeState, float]:
        """Alternate: encoder (with dropout) against the old posterior, then decoder (without)."""
        encoder = tuple(name for name in state.nets if name != "decoder")
        old = to_device(state.old or state.nets, self.device)
        for number in range(self.settings.encoder_epochs):
            state, _ = self.epoch(
                state, data, keys, f"encoder {number}",
                lambda nets, batch: self.bound(nets, old, batch), self.settings.dropout, encoder,
            )  # fmt: skip
        state = replace(state, old={name: state.nets[name].copy() for name in encoder})
        now = to_device(state.old, self.device)
        return self.epoch(
            state, data, keys, "decoder", lambda nets, batch: self.bound(nets, now, batch), 0.0, ("decoder",)
        )

    def bound(self, nets: dict[str, torch.Tensor], old: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """The negated bound with the composite prior, KL by one sample."""
        import torch

        d = self.settings.dim
        coded = self.code(nets, batch.bags, batch.values)
        mean, log_variance = coded[:, :d], coded[:, d:]
        z = mean + (0.5 * log_variance).exp() * batch.noise
        with torch.no_grad():
            # the old posterior sees the inputs without dropout
            clean = torch.rsqrt(batch.bags.counts.clamp(min=1))[batch.bags.owners]
            before = self.code({**nets, **old}, batch.bags, clean)
        parts = torch.stack(
            [
                log_normal(z, torch.zeros_like(z), torch.zeros_like(z)) + math.log(MIXTURE[0]),
                log_normal(z, before[:, :d], before[:, d:]) + math.log(MIXTURE[1]),
                log_normal(z, torch.zeros_like(z), torch.full_like(z, WIDE_LOG_VARIANCE)) + math.log(MIXTURE[2]),
            ]
        )
        divergence = (log_normal(z, mean, log_variance) - parts.logsumexp(0)).sum(1)
        weight: torch.Tensor = self.settings.gamma * batch.bags.counts
        return (weight * divergence - likelihood(affine(z, nets["decoder"]), batch.bags)).mean()

    def loss(self, nets: dict[str, torch.Tensor], batch: Batch, beta: float) -> torch.Tensor:
        return self.bound(nets, {name: array.detach() for name, array in nets.items()}, batch)

    def logits(self, nets: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        return affine(self.code(nets, batch.bags, batch.values)[:, : self.settings.dim], nets["decoder"])


def log_normal(x: torch.Tensor, mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """Log density of independent normals, elementwise."""
    return -0.5 * (log_variance + math.log(2 * math.pi) + (x - mean) ** 2 / log_variance.exp())

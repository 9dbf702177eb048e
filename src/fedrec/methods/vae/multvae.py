"""Mult-VAE on collected histories.

Liang et al., "Variational autoencoders for collaborative filtering", WWW 2018; layers and batch as in FedDAE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrec.backbones.vae import Sizes, decode, divergence, encode, fresh_decoder, fresh_encoder
from fedrec.core.messages import Array
from fedrec.core.method import Keys
from fedrec.core.reference import Central, collected
from fedrec.methods.vae.central import Batch, CentralVae, likelihood

if TYPE_CHECKING:
    import torch


class MultVae(CentralVae):
    """One encoder, one decoder, multinomial likelihood, annealed beta."""

    name = "multvae"
    card = collected(
        "Mult-VAE: a variational autoencoder with a multinomial likelihood, on collected histories",
        "Liang et al., WWW 2018",
        "three layers m-3d-2d-d and batches of 2048 users, as FedDAE fixes them for its baselines",
    )

    def fresh(self, data: Central, keys: Keys) -> dict[str, Array]:
        sizes = Sizes(data.world.n_items, self.settings.dim)
        return {**fresh_encoder(keys.server("encoder"), sizes), **fresh_decoder(keys.server("decoder"), sizes)}

    def code(self, nets: dict[str, torch.Tensor], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of the latent variable ``[users, d]`` each."""
        coded = encode(batch.bags, nets, batch.values)
        return coded[:, : self.settings.dim], coded[:, self.settings.dim :].exp()

    def loss(self, nets: dict[str, torch.Tensor], batch: Batch, beta: float) -> torch.Tensor:
        mean, variance = self.code(nets, batch)
        logits = decode(mean + variance.sqrt() * batch.noise, nets)
        return (beta * divergence(mean, variance) - likelihood(logits, batch.bags)).mean()

    def logits(self, nets: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        return decode(self.code(nets, batch)[0], nets)

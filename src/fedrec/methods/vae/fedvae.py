"""FedVAE: Mult-VAE with federated gradients; every parameter is shared.

Polato, "Federated variational autoencoder for collaborative filtering", IJCNN 2021; as the baseline FedVAE of
the FedDAE paper (same layers, likelihood and schedule as FedDAE).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.method import Card, Keys, Reply
from fedrec.methods.vae.feddae import server_step
from fedrec.methods.vae.messages import VaeServer
from fedrec.methods.vae.method import VaeMethod


@dataclass(frozen=True)
class NothingPrivate(messages.Private):
    """The interactions alone stay on the client."""

    state_name = "fedvae.NothingPrivate"


class FedVae(VaeMethod[NothingPrivate]):
    """One encoder and one decoder for everybody."""

    name = "fedvae"
    Private = NothingPrivate
    card = Card(
        title="FedVAE: a variational autoencoder whose gradients are averaged; everything is shared",
        paper="Polato, IJCNN 2021; as the baseline FedVAE of FedDAE (AAAI 2025)",
        private="times and ratings, but not which items a user has",
        upload="gradients of encoder and decoder, accumulated over local epochs: as factors, which list each user's "
        "items and the activations of every layer, or whole (gradients=dense), which tell a client's items",
        sum_suffices=False,
        robust="bound",
        departures=(
            "layers m-3d-2d-d as FedDAE fixes them for all its baselines",
            "gradients cross the wire as factors unless gradients=dense (see feddae)",
        ),
    )

    def start_clients(self, world: World, block: Block, keys: Keys) -> NothingPrivate:
        return NothingPrivate()

    def aggregate(self, server: VaeServer, replies: Iterator[Reply[Any]], keys: Keys) -> VaeServer:
        """The mean of the gradients, then one step: lines 7 and 8 of FedDAE's Algorithm 1."""
        return server_step(server, replies, self.settings, keys, self.device)

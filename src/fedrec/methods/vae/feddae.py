"""FedDAE: a variational autoencoder with a global and a private encoder, weighed by a private gate.

Li et al., "Personalized federated collaborative filtering: a variational autoencoder approach", AAAI 2025.
Global encoder phi and decoder theta are shared: their gradients are accumulated over the local epochs and averaged
(Algorithm 1). Local encoder phi_u and gate psi_u stay with the user, for good.

:func:`objective` is what a client minimises, Eq. (2) to (6), as it is printed; :func:`server_step` is what the server
does, lines 7 and 8. ClientUpdate runs for many users at once with the objective's gradients written out
(:mod:`fedrec.methods.vae.client_update`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fedrec.backbones.vae import Bags, affine, combined, decode, divergence, fresh_encoder
from fedrec.core.block import Block, World
from fedrec.core.disk_array import forget_fields
from fedrec.core.fold import Float64
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Card, Keys, Reply
from fedrec.learn.adam import descended
from fedrec.methods.vae.gradients import add_dense, add_factored
from fedrec.methods.vae.messages import DenseUpload, Nets, Span, TwinNets, VaeServer
from fedrec.methods.vae.method import VaeMethod
from fedrec.methods.vae.plan import LocalPlan
from fedrec.methods.vae.private_encoder import PrivateEncoder, parts_of, start_encoders
from fedrec.methods.vae.settings import FedDaeSettings, VaeSettings

if TYPE_CHECKING:
    from torch import Tensor

    from fedrec.methods.vae.own_encoder import PrivateParts

    Tensors = dict[str, Tensor]


def objective(shared: Tensors, own: Tensors, items: Tensor, values: Tensor, noise: Tensor, plan: LocalPlan) -> Tensor:
    """``-L_beta(r_u; phi, phi_u, psi_u, theta)`` of one user: Eq. (6), negated, for autograd.

    ``items`` ``[n]`` are those the user has, ``values`` ``[n]`` the encoders' inputs at them (normalised r_u after
    dropout), ``noise`` ``[d]`` the epsilon of line 4. ``own`` has the user's layers, named as in ``PrivateParts``.
    """
    coded = encoded(
        values @ shared["items_in"][items] + shared["bias_in"], shared["encoder_mid"], shared["encoder_out"]
    )
    local = encoded(values @ own["rows"] + own["bias"], own["mid"], own["out"])
    mean, variance = combined(coded, local, gate_of(own, plan))  # Lemma 1, Eq. (5)
    z = mean + variance.sqrt() * noise  # reparametrisation (line 4)
    log_pi = decode(z, shared).log_softmax(1)  # Eq. (2)
    likelihood = log_pi[0, items].sum()  # log p_theta(r_u | z_u) (Eq. 3)
    return plan.beta * divergence(mean, variance)[0] - likelihood  # Eq. (6)


def encoded(first: Tensor, mid: Tensor, out: Tensor) -> Tensor:
    """Mean and log variance ``[1, 2 d]`` of an encoder whose first layer gives ``first`` (Eq. 4)."""
    return affine(affine(first.tanh()[None], mid).tanh(), out)


def gate_of(own: Tensors, plan: LocalPlan) -> Tensor:
    """``[w_u1, w_u2] = h_psi_u(r_u)``: softmax(r_u . psi_u), the public code's network, or fixed; ``[1, 2]``."""
    if plan.gate == "fixed":
        return own["bias"].new_tensor([[plan.weight, 1 - plan.weight]])
    scores = own["gate_rows"].sum(0)[None]  # r_u is one at the user's items
    if plan.gate == "mlp":
        scores = affine((scores + own["gate_bias"]).relu(), own["gate_out"])
    return scores.softmax(1)


def server_step(
    server: VaeServer, replies: Iterator[Reply[Any]], settings: VaeSettings, keys: Keys, device: str
) -> VaeServer:
    """``phi = phi - eta/n_s sum_u nabla_phi^(u)``, the same for theta (lines 7 and 8); by Adam unless plain."""
    total: dict[str, Float64] = {name: np.zeros(array.shape) for name, array in server.nets.items()}
    users = 0  # n_s
    for reply in replies:
        add = add_dense if isinstance(reply.upload, DenseUpload) else add_factored
        users += add(total, reply.upload, device)
    if not users:
        return server
    if settings.sum_noise:
        drawn = keys.server("noise of the sum")
        for sum_ in total.values():  # users times kappa^2 is the variance of the sum of their noise
            sum_ += settings.sum_noise * users**0.5 * drawn.standard_normal(sum_.shape)
    gradient = {name: (sum_ / users).astype(np.float32) for name, sum_ in total.items()}
    if settings.server_optimizer == "adam":
        return adam_step(server, gradient, settings.server_lr)
    nets = {
        name: (array - settings.server_lr * gradient[name]).astype(np.float32) for name, array in server.nets.items()
    }
    return replace(server, nets=nets, step=server.step + 1)


def adam_step(server: VaeServer, gradient: dict[str, Array], rate: float) -> VaeServer:
    """One step of the server's Adam."""
    step = server.step + 1
    nets, means, squares = {}, {}, {}
    for name, g in gradient.items():
        before = server.nets[name], server.mean[name], server.square[name]
        nets[name], means[name], squares[name] = descended(*before, g, rate, step)
    return VaeServer(nets, means, squares, server.alpha, step)


class FedDae(VaeMethod[PrivateEncoder]):
    """Global and local encoder, private gate, shared decoder."""

    name = "feddae"
    Settings = FedDaeSettings
    Private = PrivateEncoder
    card = Card(
        title="FedDAE: a shared and a private encoder, weighted by a private gate",
        paper="Li et al., Personalized federated collaborative filtering: a variational autoencoder approach, "
        "AAAI 2025",
        private="local encoder and gate of every user; times and ratings, but not which items a user has",
        upload="gradients of global encoder and decoder, accumulated over local epochs: as factors, which list each "
        "user's items and the activations of every layer, or whole (gradients=dense), which tell a client's items",
        sum_suffices=False,
        robust="bound",
        departures=(
            "local encoder and gate persist from round to round; the public code means to restore them but does "
            "not (it assigns into state_dict(), which has no effect), and averages local encoders on the server "
            "(local_encoder=averaged)",
            "beta rises linearly to its value over the first rounds (as in Mult-VAE); in the public code it is 1 "
            "in the first round and 0 ever after (schedule=first-round)",
            "the private parts learn by Adam (fresh each round); the clients' copies of the shared layers learn by "
            "plain gradient descent scaled by alpha_u = 1/n (Algorithm 1, lines 3 and 4, with Eq. 7; unscaled, it "
            "diverges); the server descends by Adam. The public code uses Adam everywhere (local_shared=adam) and "
            "never clears the clients' gradients between epochs (local_gradient=accumulated)",
            "the public code ends a run when the loss changes by less than 1 % (--settle 0.01, the recipe under "
            "paper-feddae); elsewhere all rounds are run and one is chosen on validation",
            "one sample of epsilon for the combined Gaussian, and one dropout mask for both encoders",
            "predicted scores stay on the client (Algorithm 1 uploads them)",
            "gradients cross the wire as the factors of their sum over epochs (gradients=dense sends them whole, so "
            "that a sum suffices); of one user both reveal equally much, of a client with several, factors reveal more",
            "a client that holds several users runs ClientUpdate for each and sends all their gradients",
            "no negative samples: the multinomial likelihood has none, though the paper's setting mentions four",
            "encoders read a user's items scaled to length one (1 / sqrt of their number), as in Mult-VAE and in the "
            "public code; the paper's r_u has zeros and ones, and the gate reads it in that form",
        ),
    )

    @property
    def shares_local_encoder(self) -> bool:
        averaged: bool = self.settings.local_encoder == "averaged"
        return averaged

    def start_clients(self, world: World, block: Block, keys: Keys) -> PrivateEncoder:
        return start_encoders(block, keys, self.settings)

    def plan(self, keys: Keys, alpha: float = 1.0) -> LocalPlan:
        return replace(super().plan(keys, alpha), gate=self.settings.gate, weight=self.settings.weight)

    def parts(self, private: PrivateEncoder, nets: Nets, bags: Bags, where: Span) -> PrivateParts:
        return parts_of(private, nets, bags, where, np.asarray)

    def training_parts(self, private: PrivateEncoder, nets: Nets, bags: Bags, where: Span) -> PrivateParts:
        """What training may write: the private state itself, or a copy that is then thrown away."""
        kept = self.settings.local_encoder == "kept"
        return parts_of(private, nets, bags, where, np.asarray if kept else np.array)

    def release(self, private: PrivateEncoder) -> None:
        forget_fields(private)

    def aggregate(self, server: VaeServer, replies: Iterator[Reply[Any]], keys: Keys) -> VaeServer:
        return server_step(server, replies, self.settings, keys, self.device)

    def encoders(
        self, private: PrivateEncoder, nets: Nets, block: Block, user: int, keys: Keys
    ) -> tuple[Float32, Float32, Float32]:
        """Item features ``[items, d]`` of the global encoder and of one user's own, and the gate's weights ``[2]``.

        ``keys`` are those of the start, which items that the user does not have still show in its encoder.
        """
        from fedrec.maths.item_map import item_features
        from fedrec.methods.vae.own_encoder import gate_weights

        bags, where = self.bags(block, slice(user, user + 1))
        own = self.parts(private, nets, bags, where)
        if isinstance(nets, TwinNets):
            table = nets.own_items_in
        else:
            table = fresh_encoder(keys.server("local encoder"), self.sizes(block.n_items))["items_in"]
            table[block.train.values[where.interactions]] = own.rows
        return (
            item_features(nets.items_in, nets.encoder_mid, nets.encoder_out),
            item_features(table, own.mid[0], own.out[0]),
            gate_weights(own, bags, self.plan(keys), self.device)[0],
        )

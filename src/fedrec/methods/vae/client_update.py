"""ClientUpdate of FedDAE's Algorithm 1 for many users at once: forward, backward and steps, written out.

The fast twin of :func:`fedrec.methods.vae.feddae.objective`, whose autograd it is tested against. One chunk of users
goes through all E epochs together. Shared layers are read by one matrix product for the whole chunk
(:mod:`fedrec.methods.vae.shared_layers`); private layers are each user's own (:mod:`fedrec.methods.vae.own_encoder`)
and change in place. Needs numpy and torch only, on any device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedrec.backbones.vae import Bags, combined, divergence
from fedrec.methods.vae.own_encoder import OwnEncoder, PrivateParts, read_once, with_bias
from fedrec.methods.vae.plan import LocalPlan
from fedrec.methods.vae.shared_layers import CopiedItems, CopiedLayer, SharedItems, SharedLayer

Tensors = dict[str, torch.Tensor]
Float32 = NDArray[np.float32]

ACTIVATIONS = ("hidden_wide", "hidden_narrow", "latent", "decoded_narrow", "decoded_wide")
"""Inputs of the five layers behind the first, ``[users, epochs, width]`` each."""
DELTAS = ("delta_in", "delta_mid", "delta_out", "delta_decoder_in", "delta_decoder_mid", "delta_decoder_out")
"""Gradients of the outputs of all six layers, ``[users, epochs, width]`` each."""

_DEEP = ("encoder_mid", "encoder_out", "decoder_in", "decoder_mid", "decoder_out")


@dataclass(frozen=True)
class Factors:
    """What is left of a chunk's local work beside private parts: all that the gradients are made of."""

    arrays: Tensors  # ACTIVATIONS and DELTAS, and those of the own encoder; [users, epochs, width]
    loss: torch.Tensor  # [users] mean over the epochs

    def at_home(self, names: Iterable[str] = (*ACTIVATIONS, *DELTAS)) -> dict[str, Float32]:
        """Factors as numpy arrays."""
        return {name: self.arrays[name].cpu().numpy() for name in names}


def train_chunk(
    shared: Tensors,
    parts: PrivateParts | None,
    bags: Bags,
    values: torch.Tensor,
    noise: torch.Tensor,
    plan: LocalPlan,
    *,
    copies: bool | None = None,
) -> Factors:
    """E epochs of all users of a chunk; ``parts`` (None without a local encoder) change in place.

    ``values`` ``[interactions, epochs]`` are normalised inputs after dropout, ``noise`` ``[users, epochs, d]``
    the epsilon of the reparametrisation. ``copies`` asks for full copies of shared layers where factors do.
    """
    users, device = bags.users, str(values.device)
    own = None if parts is None else OwnEncoder(parts, bags, plan, device)
    rate = plan.shared_rate if plan.shared == "descent" else 0.0
    if plan.shared == "adam" if copies is None else copies:
        items: SharedItems | CopiedItems
        items = CopiedItems(shared["items_in"], shared["bias_in"], bags, values, plan)
        deep = [CopiedLayer(shared[name], users, plan) for name in _DEEP]
    else:
        items = SharedItems(shared["items_in"], shared["bias_in"], bags, values, rate)
        deep = [SharedLayer(shared[name], users, plan.epochs, rate) for name in _DEEP]  # type: ignore[misc]
    mid, out, decoder_in, decoder_mid, decoder_out = deep
    d = noise.shape[2]
    loss = values.new_zeros(users)
    for epoch in range(plan.epochs):
        now = values[:, epoch]
        wide = items.forward(epoch).tanh()
        narrow = mid.forward(wide, epoch).tanh()
        coded = out.forward(narrow, epoch)  # [users, 2 x d]
        if own is None:
            local, weights = coded, None
            mean, variance = coded[:, :d], coded[:, d:].exp()
        else:
            local, weights = own.encode(now, epoch), own.weights(epoch)
            mean, variance = combined(coded, local, weights)  # Eq. (5)
        deviation = variance.sqrt()
        latent = mean + deviation * noise[:, epoch]  # reparametrisation

        decoded_narrow = decoder_in.forward(latent, epoch).tanh()
        decoded_wide = decoder_mid.forward(decoded_narrow, epoch).tanh()
        logits = decoder_out.forward(decoded_wide, epoch)  # [users, m]
        chances = logits.log_softmax(1)
        likelihood = bags.add_up(chances[bags.owners, bags.ids])  # Eq. (3)
        loss += (plan.beta * divergence(mean, variance) - likelihood) / plan.epochs  # Eq. (6), negated

        # gradient of the loss with respect to the logits: m_u pi - r_u
        back = chances.exp_().mul_(bags.counts[:, None])
        back[bags.owners, bags.ids] -= 1.0
        back = decoder_out.backward(back, epoch) * (1 - decoded_wide**2)
        back = decoder_mid.backward(back, epoch) * (1 - decoded_narrow**2)
        back = decoder_in.backward(back, epoch)  # [users, d]
        to_mean = back + plan.beta * mean
        to_variance = 0.5 * (back * noise[:, epoch] / deviation + plan.beta * (1 - 1 / variance))

        if own is not None and weights is not None:
            w_1, w_2 = weights[:, :1], weights[:, 1:]
            spread, own_spread = coded[:, d:].exp(), local[:, d:].exp()
            to_weights = torch.stack(
                [
                    (to_mean * coded[:, :d]).sum(1) + 2 * weights[:, 0] * (to_variance * spread).sum(1),
                    (to_mean * local[:, :d]).sum(1) + 2 * weights[:, 1] * (to_variance * own_spread).sum(1),
                ],
                dim=1,
            )
            own.weights_back(weights, to_weights, epoch)
            own.encode_back(torch.cat([w_2 * to_mean, w_2**2 * own_spread * to_variance], dim=1), epoch)
            to_coded = torch.cat([w_1 * to_mean, w_1**2 * spread * to_variance], dim=1)
        else:
            to_coded = torch.cat([to_mean, variance * to_variance], dim=1)
        back = out.backward(to_coded, epoch) * (1 - narrow**2)
        back = mid.backward(back, epoch) * (1 - wide**2)
        items.record(back, epoch)
    arrays = {name: layer.inputs[:, :, :-1] for name, layer in zip(ACTIVATIONS, deep, strict=True)}
    arrays |= {name: layer.deltas for name, layer in zip(DELTAS, [items, *deep], strict=True)}
    if own is not None:
        own.write_back()
        arrays |= own.factors()
    return Factors(arrays, loss.double())


def code_chunk(
    shared: Tensors,
    parts: PrivateParts | None,
    bags: Bags,
    values: torch.Tensor,
    plan: LocalPlan,
    trained: dict[str, torch.Tensor] | None = None,
) -> torch.Tensor:
    """Logits ``[users, m]`` at the mean of the latent variable, without dropout or noise.

    ``values`` ``[interactions]`` are normalised inputs. ``trained`` (ACTIVATIONS, DELTAS, ``values`` of each
    epoch) gives the users their own copies of the shared layers, as right after local descent.
    """
    users, device = bags.users, str(values.device)
    rate = 0.0 if trained is None else plan.shared_rate
    epochs = 0 if trained is None else int(trained["values"].shape[1])
    history = values.new_zeros((len(values), 0)) if trained is None else trained["values"]
    items: SharedItems | CopiedItems
    deep: dict[str, SharedLayer | CopiedLayer]
    if trained is not None and plan.shared == "adam":
        items = CopiedItems(shared["items_in"], shared["bias_in"], bags, history, plan).moved(trained[DELTAS[0]])
        records = zip(_DEEP, ACTIVATIONS, DELTAS[1:], strict=True)
        deep = {name: CopiedLayer(shared[name], users, plan).moved(trained[a], trained[d]) for name, a, d in records}
    else:
        items = SharedItems(shared["items_in"], shared["bias_in"], bags, history, rate)
        low = {name: SharedLayer(shared[name], users, epochs, rate) for name in _DEEP}
        if trained is not None:
            items.deltas = trained[DELTAS[0]]
            for layer, activation, delta in zip(low.values(), ACTIVATIONS, DELTAS[1:], strict=True):
                layer.inputs[:, :, :-1] = trained[activation]
                layer.deltas = trained[delta]
        deep = dict(low)

    def through(name: str, inputs: torch.Tensor) -> torch.Tensor:
        return deep[name].read(with_bias(inputs).reshape(users, -1), epochs)

    wide = items.read(values, epochs).tanh()
    coded = through("encoder_out", through("encoder_mid", wide).tanh())
    d = coded.shape[1] // 2
    latent = coded[:, :d]
    if parts is not None:
        own = read_once(parts, bags, plan, device)
        local, weights = own.encode(values, 0), own.weights(0)
        latent, _ = combined(coded, local, weights)
    return through("decoder_out", through("decoder_mid", through("decoder_in", latent).tanh()).tanh())

"""The private encoder and gate of FedDAE's users as state: their start, and the parts of it that a chunk trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedrec.backbones.vae import Bags, Sizes, fresh_encoder, glorot
from fedrec.core import disk_array, messages
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32, per_interaction, per_user
from fedrec.core.method import Keys
from fedrec.methods.vae.messages import Nets, Span, TwinNets
from fedrec.methods.vae.settings import FedDaeSettings

if TYPE_CHECKING:
    from fedrec.methods.vae.own_encoder import PrivateParts


@dataclass(frozen=True)
class PrivateEncoder(messages.Private):
    """phi_u and psi_u of every user; never leave.

    Of the layers that read items only the rows of the user's own items exist: no other row ever receives
    gradient or is read.
    """

    rows: Float32 = per_interaction()  # [interactions, 3d]
    bias: Float32 = per_user()  # [users, 3d]
    mid: Float32 = per_user()  # [users, 3d + 1, 2d]
    out: Float32 = per_user()  # [users, 2d + 1, 2 x d]
    gate_rows: Float32 = per_interaction()  # [interactions, 2 | d | 0] psi_u (linear), its first layer (mlp)
    gate_bias: Float32 = per_user()  # [users, d | 0]
    gate_out: Float32 = per_user()  # [users, d + 1 | 0, 2]


def start_encoders(block: Block, keys: Keys, chosen: FedDaeSettings) -> PrivateEncoder:
    """Every user starts from the same private encoder; what differs later is its own."""
    users, count = block.n_users, len(block.train.values)
    # where local encoders are averaged they come with the download: only the gate is here
    sizes = Sizes(block.n_items, 0 if chosen.local_encoder == "averaged" else chosen.dim)
    budget = disk_array.Budget(chosen.private_budget_mb, chosen.private_dir)
    encoder = fresh_encoder(keys.server("local encoder"), sizes)
    hidden = {"linear": 2, "mlp": chosen.dim, "fixed": 0}[chosen.gate]
    network = chosen.gate == "mlp"
    made = {
        "gate_rows": disk_array.zeros((count, hidden), budget),
        "gate_bias": disk_array.zeros((users, hidden if network else 0), budget),
        "gate_out": disk_array.zeros((users, hidden + 1 if network else 0, 2), budget),
        "bias": disk_array.zeros((users, sizes.wide), budget),
        "rows": disk_array.zeros((count, sizes.wide), budget),
        "out": disk_array.zeros((users, sizes.narrow + 1, 2 * sizes.dim), budget),
        "mid": disk_array.zeros((users, sizes.wide + 1, sizes.narrow), budget),
    }
    step = 1 << 14  # interactions at a time: the gathered rows are a temporary
    for first in range(0, count, step):
        ids = block.train.values[first : first + step]
        made["rows"][first : first + step] = encoder["items_in"][ids]
        if network:
            table = glorot(keys.server("gate"), (block.n_items, hidden))
            made["gate_rows"][first : first + step] = table[ids]
        disk_array.forget(made["rows"])
        disk_array.forget(made["gate_rows"])
    disk_array.fill(made["mid"], encoder["encoder_mid"])
    disk_array.fill(made["out"], encoder["encoder_out"])
    if network:
        made["gate_out"][:, :-1] = glorot(keys.server("gate out"), (hidden, 2))
    private = PrivateEncoder(**made)
    disk_array.forget_fields(private)
    return private


def parts_of(
    private: PrivateEncoder, nets: Nets, bags: Bags, where: Span, taken: Callable[[Array], Array]
) -> PrivateParts:
    """The layers of some users: ``taken`` from private state, or from the download where encoders are averaged."""
    from fedrec.methods.vae.own_encoder import PrivateParts

    def view(name: str, part: slice) -> Array:
        return taken(getattr(private, name)[part])

    def each(layer: Array) -> Array:
        return np.broadcast_to(layer, (bags.users, *layer.shape)).copy()

    if isinstance(nets, TwinNets):
        encoder = {
            "rows": nets.own_items_in[bags.ids.cpu().numpy()],
            "bias": each(nets.own_bias_in),
            "mid": each(nets.own_mid),
            "out": each(nets.own_out),
        }
    else:
        encoder = {name: view(name, where.users) for name in ("bias", "mid", "out")}
        encoder["rows"] = view("rows", where.interactions)
    return PrivateParts(
        **encoder,
        gate_rows=view("gate_rows", where.interactions),
        gate_bias=view("gate_bias", where.users),
        gate_out=view("gate_out", where.users),
    )

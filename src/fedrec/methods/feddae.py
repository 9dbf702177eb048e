"""FedDAE: a variational autoencoder with a global and a private encoder, weighed by a private gate.

Li et al., "Personalized federated collaborative filtering: a variational autoencoder approach", AAAI 2025.

    mu_u      = w_u1 mu_phi(r_u)        + w_u2 mu_phi_u(r_u)                                     (Eq. 5)
    sigma_u^2 = w_u1^2 sigma_phi^2(r_u) + w_u2^2 sigma_phi_u^2(r_u),    [w_u1, w_u2] = softmax(r_u . psi_u)
    maximise    E[log p_theta(r_u | z_u)] - beta KL(N(mu_u, sigma_u^2) || N(0, I))               (Eq. 6)

phi and theta are shared: their gradients are accumulated over the local epochs and averaged (Algorithm 1).
phi_u and psi_u stay with the user, for good. The work itself is in :mod:`fedrec.learn.dual_encoder`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from fedrec.backbones.vae import Bags, Sizes, fresh_encoder, glorot
from fedrec.core import disk_array, messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, fields_of, per_interaction, per_user
from fedrec.core.method import Card, Keys
from fedrec.core.settings import FOLDER, MEMORY
from fedrec.methods.vae_family import Span, VaeMethod, VaeSettings
from fedrec.methods.vae_messages import Nets, TwinNets

if TYPE_CHECKING:
    from fedrec.learn.dual_encoder import LocalPlan, PrivateParts


class FedDaeSettings(VaeSettings):
    """Settings of FedDAE."""

    gate: Literal["linear", "mlp", "fixed"] = Field(
        "linear",
        description="how the encoders are weighed: softmax(r_u . psi_u) (the paper), a network m-d-2 (the public "
        "code), or a fixed weight (Table 3)",
    )
    weight: float = Field(0.5, ge=0, le=1, description="weight w of the global encoder with gate=fixed (Table 3)")
    local_encoder: Literal["kept", "fresh", "averaged"] = Field(
        "kept",
        description="private encoder and gate from round to round: kept (the paper); started afresh in every round and "
        "judged so; or gates afresh and the encoder averaged on the server like the global one (the public code)",
    )
    private_budget_mb: int = Field(
        8192,
        ge=0,
        description="memory for private encoders; what exceeds it lives on disk (memory-mapped)",
        json_schema_extra=MEMORY,
    )
    private_dir: str | None = Field(
        None, description="where that is [the system's temporary folder]", json_schema_extra=FOLDER
    )


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


class FedDae(VaeMethod[PrivateEncoder]):
    """Global and local encoder, private gate, shared decoder."""

    name = "feddae"
    Settings = FedDaeSettings
    Private = PrivateEncoder
    card = Card(
        title="FedDAE: a shared and a private encoder, weighed by a private gate",
        paper="Li et al., Personalized federated collaborative filtering: a variational autoencoder approach, "
        "AAAI 2025",
        private="local encoder and gate of every user, interactions",
        upload="gradients of global encoder and decoder, accumulated over local epochs",
        sum_suffices=False,
        departures=(
            "local encoder and gate persist from round to round; the public code means to restore them but does "
            "not (it assigns into state_dict(), which has no effect), and averages local encoders on the server "
            "(local_encoder=averaged)",
            "beta rises linearly to its value over the first rounds (as in Mult-VAE); in the public code it is 1 "
            "in the first round and 0 ever after (schedule=first-round)",
            "the private parts learn by Adam (fresh each round), the clients' copies of the shared layers by plain "
            "gradient descent scaled by alpha_u = 1/n (Algorithm 1, lines 3 and 4, with Eq. 7; unscaled it diverges), "
            "the server descends by Adam; the public code uses Adam "
            "everywhere (local_shared=adam) and never clears the clients' gradients between epochs "
            "(local_gradient=accumulated)",
            "the public code ends a run when the loss changes by less than 1 % (--settle 0.01, the recipe under "
            "paper-feddae); elsewhere all rounds are run and one is chosen on validation",
            "one sample of epsilon for the combined Gaussian, and one dropout mask for both encoders",
            "predicted scores stay on the client (Algorithm 1 uploads them)",
            "gradients cross the wire as the factors of their sum over epochs (gradients=dense sends them whole, "
            "so that a sum suffices); both give away as much",
            "a client that holds several users runs ClientUpdate for each and sends all their gradients",
            "no negative samples: the multinomial likelihood has none, though the paper's setting mentions four",
        ),
    )

    def plan(self, keys: Keys, alpha: float = 1.0) -> LocalPlan:
        return replace(super().plan(keys, alpha), gate=self.settings.gate, weight=self.settings.weight)

    def start_clients(self, world: World, block: Block, keys: Keys) -> PrivateEncoder:
        """Every user starts from the same private encoder; what differs later is its own."""
        chosen = self.settings
        sizes, users, count = self.sizes(world.n_items), block.n_users, len(block.train.values)
        if self.shares_local_encoder:
            sizes = Sizes(world.n_items, 0)  # the encoder comes with the download, only the gate is here
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
                table = glorot(keys.server("gate"), (world.n_items, hidden))
                made["gate_rows"][first : first + step] = table[ids]
        for first in range(0, users, chosen.chunk):
            made["mid"][first : first + chosen.chunk] = encoder["encoder_mid"]
            made["out"][first : first + chosen.chunk] = encoder["encoder_out"]
            disk_array.forget(made["mid"])
        if network:
            made["gate_out"][:, :-1] = glorot(keys.server("gate out"), (hidden, 2))
        private = PrivateEncoder(**made)
        self.release(private)
        return private

    @property
    def shares_local_encoder(self) -> bool:
        return self.settings.local_encoder == "averaged"

    def parts(self, private: Any, nets: Nets, bags: Bags, where: Span) -> PrivateParts:
        return self._parts(private, nets, bags, where, np.asarray)

    def training_parts(self, private: Any, nets: Nets, bags: Bags, where: Span) -> PrivateParts:
        """What training may write: the private state itself, or a copy that is then thrown away."""
        return self._parts(
            private, nets, bags, where, np.asarray if self.settings.local_encoder == "kept" else np.array
        )

    def _parts(
        self, private: Any, nets: Nets, bags: Bags, where: Span, taken: Callable[[Array], Array]
    ) -> PrivateParts:
        from fedrec.learn.dual_encoder import PrivateParts

        def view(name: str, part: slice) -> Array:
            return taken(getattr(private, name)[part])

        if isinstance(nets, TwinNets):

            def each(layer: Array) -> Array:
                return np.broadcast_to(layer, (bags.users, *layer.shape)).copy()

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

    def release(self, private: Any) -> None:
        for _, _, array in fields_of(private):
            disk_array.forget(array)

    def encoders(
        self, private: PrivateEncoder, nets: Nets, block: Block, user: int, keys: Keys
    ) -> tuple[Float32, Float32, Float32]:
        """Item features ``[items, d]`` of the global encoder and of one user's own, and the gate's weights ``[2]``.

        ``keys`` are those of the start, which items that the user does not have still show in its encoder.
        """
        from fedrec.learn.dual_encoder import gate_weights
        from fedrec.maths.item_map import item_features

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

    def private_bytes(self, world: World, interactions: int) -> int:
        """Size of the private state of all users."""
        sizes = self.sizes(world.n_items)
        layers = (sizes.wide + 1) * sizes.narrow + (sizes.narrow + 1) * 2 * sizes.dim + sizes.wide
        return 4 * (world.n_users * layers + interactions * sizes.wide)

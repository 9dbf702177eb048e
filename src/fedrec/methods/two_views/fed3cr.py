"""Fed3CR: a consensus that every client adapts to itself, and two constraints between the two views.

Mi et al., "Federated consistency- and complementarity-aware consensus-enhanced recommendation". Client ``i`` holds u_i,
V_i (private), its copy C_i of the consensus and the parameters theta_i of the transfer-matrix generator F; C_i and
theta_i are averaged. :func:`loss` is LocalUpdate of Algorithm 1, in the order of section IV; its fast twin is
:mod:`fedrec.methods.two_views.closed`. The mechanism plugs into other methods (``base``, Figure 8).

Table III as settings (transfer, beta_a, beta_o): C0 none,0,0; C1 ace,0,0; C2 none,b,0; C3 none,0,b; C4 none,b,b;
C5 ace,b,0; C6 ace,0,b. Table IV: transfer=consensus, transfer=unified. Figure 4: consistency=similarity, contrast;
complementarity=l2, mutual-information.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec.core.method import Card, Keys
from fedrec.core.sums import Sums
from fedrec.methods._shared.embedding import ItemServer
from fedrec.methods._shared.server_steps import GradientServer
from fedrec.methods.two_views.fedrap import regularisers
from fedrec.methods.two_views.settings import TwoViewSettings
from fedrec.methods.two_views.step import Batch, Objective, Positives, Transfer, recommendation
from fedrec.methods.two_views.views import BASES, Base, TwoViews

if TYPE_CHECKING:
    from torch import Tensor

    from fedrec.backbones.base import Backbone
    from fedrec.methods.two_views.step import Leaves, Loss


def loss(
    own: Leaves, batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone
) -> tuple[Tensor, Tensor]:
    """Lines 4-11 of LocalUpdate: Eq. 19 of a mini-batch, summed over clients, and each sample's L_rec.

    ``own`` holds C_i (``shared``) and V_i (``private``) ``[clients, m, d]``, u_i (``users``) and theta_i.
    """
    from fedrec.methods.two_views.overshoot import weight_of_tables

    consensus, personal = own["shared"], own["private"]
    matrix, read = transfer_matrix(own, positives, chosen, batch.active)
    enhanced = consensus
    if matrix is not None:
        enhanced = consensus @ matrix.mT  # Eq. 11: every row is W c_j
        personal = personal @ matrix.mT if chosen.transfer == "unified" else personal
    fused = enhanced + personal  # Eq. 12
    each = recommendation(fused, own, batch, backbone)  # Eq. 13 and 7
    total = (each * batch.weight).sum()
    if chosen.beta_a:
        total = total + chosen.beta_a * consistency(enhanced, personal, batch, positives, chosen).sum()
    if chosen.beta_o:
        weight: float | Tensor = chosen.beta_o
        if chosen.complementarity == "orthogonal":  # beta_o, or less where a full step would overshoot
            weight = weight_of_tables(consensus, own["private"], matrix, read, chosen)
        total = total + (weight * complementarity(enhanced, personal, chosen)).sum()
    if chosen.lambda_ or chosen.mu:  # plugged into FedRAP
        total = total + regularisers(consensus, own["private"], chosen)
    return total, each  # Eq. 19


def transfer_matrix(
    own: Leaves, positives: Positives, chosen: Objective, active: int
) -> tuple[Tensor | None, list[Tensor]]:
    """W_i ``[clients, d, d]``, None for the identity, and what the generator's layers read."""
    import torch

    from fedrec.methods.two_views.generator import MATRIX, generate

    if chosen.transfer == "none":
        return None, []
    if chosen.transfer != "ace":
        return own[MATRIX], []  # a matrix of its own (Table IV)
    p_global = positives.mean(own["shared"], active)  # Eq. 10, [clients, 1, d]
    p_personal = positives.mean(own["private"], active)
    return generate(torch.cat([p_global, p_personal], 2), own)  # Eq. 9


def top_one(prototype: Tensor, table: Tensor, chosen: Objective) -> Tensor:
    """Eq. 15 as logarithms ``[clients, m]``: how probably each item is the nearest to a prototype ``[clients, 1, d]``.

    A vector shorter than ``norm_floor`` counts as that long: an untrained row is near to nothing, and the gradient,
    which grows with the inverse length, stays bounded.
    """
    lengths = table.norm(dim=2).clamp(min=chosen.norm_floor)
    reach = prototype.norm(dim=2).clamp(min=chosen.norm_floor)
    cosines: Tensor = (table @ prototype.mT)[:, :, 0] / (lengths * reach)
    if chosen.consistency == "ranking":
        return (chosen.length_scale * cosines).log_softmax(1)
    return (cosines / cosines.sum(1, keepdim=True)).clamp(min=1e-12).log()  # as printed, cut off at zero


def consistency(enhanced: Tensor, personal: Tensor, batch: Batch, positives: Positives, chosen: Objective) -> Tensor:
    """L_a ``[clients]``: both views rank the items alike around their prototypes (Eq. 16)."""
    if chosen.consistency in ("similarity", "contrast"):  # Figure 4a
        from fedrec.methods.two_views import alternatives

        if chosen.consistency == "similarity":
            return alternatives.similarity(enhanced, personal)
        return alternatives.contrast(enhanced, personal, batch)
    log_p = top_one(positives.mean(personal, batch.active), personal, chosen)
    log_q = top_one(positives.mean(enhanced, batch.active), enhanced, chosen)
    return -0.5 * (log_p.exp() * log_q + log_q.exp() * log_p).sum(1)


def complementarity(enhanced: Tensor, personal: Tensor, chosen: Objective) -> Tensor:
    """L_o ``[clients]``: the two feature spaces are orthogonal (Eq. 18)."""
    if chosen.complementarity != "orthogonal":  # Figure 4b
        from fedrec.methods.two_views import alternatives

        l2 = chosen.complementarity == "l2"
        return (alternatives.distance if l2 else alternatives.mutual_information)(enhanced, personal)
    correlation = enhanced.mT @ personal  # Eq. 17, [clients, d, d]
    return correlation.square().sum((1, 2)) / enhanced.shape[2]


class Fed3crSettings(TwoViewSettings):
    transfer: Transfer = Field(
        "ace",
        description="how the consensus is enhanced: ace (Eq. 9-12), not at all, by a learnt matrix (Figure 5a), or "
        "by one matrix for both views (Figure 5b)",
    )
    beta_a: float = Field(0.5, ge=0, description="weight of consistency (Eq. 19; searched in 0.1 .. 1)")
    beta_o: float = Field(0.5, ge=0, description="weight of complementarity (Eq. 19; searched in 0.1 .. 1)")
    base: Literal["none", "fedmf", "fedncf", "pfedrec", "fedrap"] = Field(
        "none",
        description="method whose algorithm the mechanism is plugged into (Figure 8)",
    )
    server_lr: float = Field(0.05, gt=0, description="with base=fedmf: the server's rate along the gradients")
    lambda_: float = Field(0.01, ge=0, description="with base=fedrap: weight of the tables' difference")
    mu: float = Field(0.01, ge=0, description="with base=fedrap: weight of the shared table's sparsity")


class Fed3cr(TwoViews):
    """Adaptive consensus enhancement with consistency and complementarity.

    LocalUpdate of Algorithm 1: E epochs of gradient descent on C_i, V_i, theta_i and u_i. Lines 7-8 are a mean of
    changes: C (Eq. 8) and theta become the means over the clients of the round.
    """

    name = "fed3cr"
    plain: ClassVar[Loss] = staticmethod(loss)
    Settings = Fed3crSettings
    small = {"layers": 2, "lr_items": 0.05}  # noqa: RUF012
    enough = {"layers": 2, "lr": 0.05, "lr_items": 3.0, "decay": 1.0, "private_rate": 0.003}  # noqa: RUF012
    enough_rounds = 10
    card = Card(
        title="Fed3CR: the consensus adapted by each client, consistent with and orthogonal to its private view",
        paper="Mi et al., Federated consistency- and complementarity-aware consensus-enhanced recommendation",
        private="user vector, private item table, interactions",
        upload="changes of the consensus table (all rows) and of the transfer-matrix generator",
        sum_suffices=True,
        robust="rows",
        departures=(
            "Eq. 15 as printed divides cosines by their sum and can be negative; here it is a softmax over cosines "
            "times the length scale (consistency=ranking-printed for the quotient, cut off at zero)",
            "Eq. 7 is a sum over samples, and so is our loss; with FedRAP's mean and its rates in the hundreds, the "
            "orthogonality constraint, a sum over all items, diverges",
            "the step along L_o is shortened where a full one would overshoot (clients with many items), and vectors "
            "shorter than norm_floor count as that long in cosines: both gradients are unbounded otherwise",
            "the last bias of the generator starts at the identity, so that an untrained W passes the consensus on "
            "unchanged",
            "user vectors and tables start small and uniform on both sides of zero (init); the paper does not say how "
            "they start, nor the rates",
            "a client with several users has one W, made from the prototypes of all its interactions",
            "the alternatives of Figure 4 are the usual forms (cosine, InfoNCE among the mini-batch, mean squared "
            "distance, mutual information of Gaussian dimensions): the paper gives no formulas",
            "plugged into a method without a private item table (base=fedmf, fedncf, pfedrec), it gives the client "
            "one, because the constraints need two views. The rest is as in that method: base=fedmf improves what is "
            "private with the consensus fixed and sends its gradient, which the server descends with Adam; "
            "base=pfedrec takes turns between score function and tables; base=fedrap adds FedRAP's regularisers. "
            "Generators, and with base=fedncf tables and layers, are averaged as in Eq. 8, with equal weights for all "
            "clients",
            'section V-A4 sets a length scale alpha = 10 "in ACE", but no equation there has one; here it multiplies '
            "the cosines of Eq. 15, which without one give a nearly flat distribution",
            "rates fall from round to round (decay), or from one local step to the next (decay_step): the paper says "
            "ExponentialLR during clients' learning, but not which of the two",
        ),
    )

    def finish(self, server: ItemServer, sums: Sums, keys: Keys) -> ItemServer:
        """Plugged into FedMF the rows are gradients, and the server makes FedMF's step."""
        if not isinstance(server, GradientServer):
            moved: ItemServer = super().finish(server, sums, keys)
            return moved
        nothing = replace(server, items=np.zeros_like(server.items))
        mean = super().finish(nothing, sums, keys)
        if mean is nothing:
            return server
        return replace(server, networks=mean.networks).descended(mean.items, self.settings.server_lr)

    def base(self) -> Base:
        return BASES[self.settings.base]

    def extra(self, number: int) -> dict[str, Any]:
        if self.settings.base != "fedrap":
            return {}
        return {"lambda_": self.settings.lambda_, "mu": self.settings.mu}

"""The fast twin of the plain objectives of Fed3CR and FedRAP: one step of descent with gradients written out.

For dot-product and affine scorers on the CPU; tested against torch's own gradients of what stands in the papers' files.
With ``G = W^T W`` and ``K = C^T V`` (both d x d) the losses of Fed3CR need no enhanced table:

    rec   s = (W^T u) . c_j + u . v_j + b                                                        (Eq. 11-13)
    L_a   cos(p^E, c^E_j) = c_j^T G p^G / (|p^E| sqrt(c_j^T G c_j)),   |p^E|^2 = p^G^T G p^G     (Eq. 15-16)
    L_o   |C^E^T V|^2 / d = |W K|^2 / d,    dC = V (2/d G K)^T,  dV = C (2/d G K),  dW = 2/d W K K^T  (Eq. 17-18)

so ``C G``, ``C^T V``, ``V (GK)^T``, ``C (GK)`` and ``C^T diag(.) C`` are the only products over whole tables.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fedrec.backbones.base import Backbone
from fedrec.methods.two_views.autograd import rate_of
from fedrec.methods.two_views.generator import MATRIX, descend_generator, generate
from fedrec.methods.two_views.overshoot import generator_gain, orthogonal_weight
from fedrec.methods.two_views.rows import RowsInPlace
from fedrec.methods.two_views.step import Batch, Objective, Positives, State


def closed_step(state: State, batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone) -> Tensor:
    """Change ``state`` by one step; returns each sample's recommendation loss ``[active, width]``."""
    with torch.no_grad():
        return _step(state, batch, positives, chosen, backbone.kernel == "affine")


def ranking_slopes(personal: Tensor, enhanced: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Gradients of L_a (Eq. 16) with respect to the two lists of cosines ``[clients, m]``."""
    log_p = functional.log_softmax(scale * personal, 1)
    log_q = functional.log_softmax(scale * enhanced, 1)
    p, q = log_p.exp(), log_q.exp()
    half = -0.5 * scale
    at_p = half * (p * (log_q - (p * log_q).sum(1, keepdim=True)) + q - p)
    at_q = half * (q * (log_p - (q * log_p).sum(1, keepdim=True)) + p - q)
    return at_p, at_q


def _step(state: State, batch: Batch, positives: Positives, chosen: Objective, affine: bool) -> Tensor:
    active, rate, own_rate = batch.active, rate_of("shared", chosen), rate_of("private", chosen)
    shared, private = state.shared[:active], state.private[:active]  # [active, m, d]
    n_items, dim = shared.shape[1:]
    rows = RowsInPlace(state, batch)

    def spare(name: str = "spare") -> Tensor:  # [active, m, d] for a temporary
        return state.scratch.take(name, active, n_items, dim)

    # the transfer matrix (Eq. 9-10)
    read: list[Tensor] = []
    prototypes = chosen.transfer == "ace" or bool(chosen.beta_a)
    to_shared = to_private = None  # gradients of the prototypes [active, 1, d]
    if prototypes:
        global_view, personal_view = rows.mean(shared, positives, "p^G"), rows.mean(private, positives, "p^P")
    if chosen.transfer == "ace":
        own = {name: value[:active] for name, value in state.networks.items() if name.startswith("transfer_")}
        matrix, read = generate(torch.cat([global_view, personal_view], 2), own)
    elif chosen.transfer == "consensus":
        matrix = state.networks[MATRIX][:active].clone()
    else:
        matrix = torch.eye(dim, device=shared.device).expand(active, dim, dim)
    plain = chosen.transfer == "none"

    # recommendation (Eq. 7, 11-13) on the rows of the mini-batch
    found = rows.slopes(None if plain else matrix, affine)
    to_matrix = found.to_matrix

    # whole tables: what is added to each, worked out before either changes
    add_shared, back = None, None  # [active, m, d], [active, d, d]
    scale_private = None  # [active, m, 1]
    if chosen.beta_a:
        gram = torch.bmm(matrix.transpose(1, 2), matrix)
        turned_shared = torch.bmm(shared, gram, out=spare("C G"))
        floor = chosen.norm_floor  # a shorter vector counts as this long: its length has no gradient then
        lengths = torch.mul(turned_shared, shared, out=spare()).sum(2).clamp_(min=floor**2).sqrt_()  # |c^E_j|
        target = torch.bmm(global_view, gram)  # [active, 1, d] G p^G
        reach = (target * global_view).sum(2).clamp_(min=floor**2).sqrt_()  # [active, 1] |p^E|
        enhanced = torch.bmm(shared, target.transpose(1, 2))[:, :, 0] / (lengths * reach)
        own_lengths = torch.linalg.vector_norm(private, dim=2)
        size_private = torch.linalg.vector_norm(own_lengths, dim=1)
        own_lengths.clamp_(min=floor)
        own_reach = personal_view.norm(dim=2).clamp_(min=floor)
        personal = torch.bmm(private, personal_view.transpose(1, 2))[:, :, 0] / (own_lengths * own_reach)
        at_private, at_shared = ranking_slopes(personal, enhanced, chosen.length_scale)
        at_private, at_shared = chosen.beta_a * at_private, chosen.beta_a * at_shared
        # the personal view
        out = (at_private / own_lengths)[:, None]  # [active, 1, m]
        pull = ((at_private * personal).sum(1)[:, None] * (own_reach > floor))[:, :, None]
        scale_private = (at_private * personal / own_lengths**2 * (own_lengths > floor)).unsqueeze(2)
        towards_private = (out / own_reach[:, :, None], personal_view)
        to_private = (torch.bmm(out, private) - pull * personal_view / own_reach[:, :, None]) / own_reach[:, :, None]
        # the enhanced view, through G
        out = (at_shared / lengths)[:, None] / reach[:, :, None]
        pull = ((at_shared * enhanced).sum(1)[:, None] / reach**2 * (reach > floor))[:, :, None]
        bend = (at_shared * enhanced / lengths**2 * (lengths > floor)).unsqueeze(2)
        carried = torch.bmm(out, shared)  # [active, 1, d]
        to_shared = torch.bmm(carried, gram) - pull * target
        if to_matrix is not None:
            weighed = torch.bmm(torch.mul(bend, shared, out=spare()).transpose(1, 2), shared)  # C^T diag(.) C
            both = torch.bmm(carried.transpose(1, 2), global_view)
            square = torch.bmm(global_view.transpose(1, 2), global_view)
            to_gram = both + both.transpose(1, 2) - weighed - pull * square
            to_matrix = to_matrix + torch.bmm(matrix, to_gram)
        towards_shared = (out, target)
        add_shared = turned_shared.mul_(-bend)
    if chosen.beta_o:
        cross = torch.bmm(shared.transpose(1, 2), private)  # K
        mapped = torch.bmm(matrix, cross)
        gain = None if plain else generator_gain(read) if read else torch.ones_like(matrix[:, 0, 0])
        sizes = (
            size_private if chosen.beta_a else torch.linalg.vector_norm(private, dim=(1, 2)),
            torch.linalg.vector_norm(shared, dim=(1, 2)),
        )
        weight = orthogonal_weight(sizes, matrix, cross, gain, chosen)[:, None, None] * (2 / dim)
        back = weight * torch.bmm(matrix.transpose(1, 2), mapped)  # 2/d G K
        if add_shared is None:
            add_shared = torch.bmm(private, back.transpose(1, 2), out=spare())
        else:
            add_shared.baddbmm_(private, back.transpose(1, 2))
        if to_matrix is not None:
            to_matrix = to_matrix + weight * torch.bmm(mapped, cross.transpose(1, 2))
    apart = None
    if chosen.lambda_ or chosen.mu:
        size = float(n_items * dim)
        if chosen.lambda_:
            apart = torch.sub(private, shared, out=spare("V - C"))
            apart.mul_(2 * chosen.lambda_ / size)
        if chosen.mu:
            signs = torch.sign(shared, out=spare("sign C")).mul_(chosen.mu / size)
            add_shared = signs if add_shared is None else add_shared.add_(signs)

    # what made W makes its step, and gives the prototypes their gradient
    if chosen.transfer == "ace" and to_matrix is not None:
        inputs = descend_generator(to_matrix, read, state.networks, active, chosen.lr_transfer)
        to_shared = inputs[:, :, :dim] if to_shared is None else to_shared + inputs[:, :, :dim]
        to_private = inputs[:, :, dim:] if to_private is None else to_private + inputs[:, :, dim:]
    elif chosen.transfer == "consensus" and to_matrix is not None:
        state.networks[MATRIX][:active].sub_(to_matrix, alpha=chosen.lr_transfer)

    # both tables, the private one first: its change needs the shared one as it was
    if scale_private is not None:
        private.mul_(1 + own_rate * scale_private)
    if back is not None:
        private.baddbmm_(shared, back, alpha=-own_rate)
    if add_shared is not None:
        shared.sub_(add_shared, alpha=rate)
    if apart is not None:
        private.add_(apart, alpha=own_rate)
        shared.sub_(apart, alpha=rate)
    if chosen.beta_a:
        private.baddbmm_(towards_private[0].transpose(1, 2), towards_private[1], alpha=-own_rate)
        shared.baddbmm_(towards_shared[0].transpose(1, 2), towards_shared[1], alpha=-rate)
    rows.descend(found, rate, own_rate)
    if to_shared is not None and to_private is not None:
        rows.spread(shared, positives, to_shared, rate)
        rows.spread(private, positives, to_private, own_rate)
    rows.descend_users(found, chosen.lr, affine)
    return found.each

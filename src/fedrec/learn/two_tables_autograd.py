"""One step of gradient descent on both tables with torch's own gradients: every variant, the plain formulas.

Slower than :mod:`fedrec.learn.two_tables_closed` because the enhanced table and its gradient exist; it is the
reference, and the only engine for the alternatives of Figure 4 and Table IV and for scorers with layers.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fedrec.backbones.base import Backbone
from fedrec.learn.transfer import MATRIX, generate
from fedrec.learn.two_tables import Batch, Objective, Positives, State
from fedrec.learn.two_tables_closed import generator_gain, orthogonal_weight

EPS = 1e-8
TEMPERATURE = 0.2
"""Of the contrastive alternative L_c."""


def autograd_step(state: State, batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone) -> Tensor:
    """Change ``state`` by one step; returns each sample's recommendation loss ``[active, width]``."""
    active = batch.active
    leaves = {
        "shared": state.shared[:active].detach().requires_grad_(),
        "private": state.private[:active].detach().requires_grad_(),
        "users": state.users[: batch.users].detach().requires_grad_(),
        **{
            name: value[: batch.users if name == "bias" else active].detach().requires_grad_()
            for name, value in state.networks.items()
        },
    }
    total, each = losses(leaves, batch, positives, chosen, backbone)
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    with torch.no_grad():
        for (name, leaf), gradient in zip(leaves.items(), found, strict=True):
            if gradient is not None:
                leaf.detach().sub_(gradient, alpha=_rate(name, chosen))
    return each.detach()


def _rate(name: str, chosen: Objective) -> float:
    if name in ("shared", "private"):
        return chosen.lr_items * (chosen.private_rate if name == "private" else 1.0)
    return chosen.lr_transfer if name.startswith("transfer_") else chosen.lr


def views(
    leaves: dict[str, Tensor], positives: Positives, chosen: Objective, active: int
) -> tuple[Tensor, Tensor, Tensor | None, list[Tensor]]:
    """The enhanced consensus C^E (Eq. 11), the personal view as it is fused (Eq. 12), W, what its layers read."""
    shared, private = leaves["shared"], leaves["private"]
    read: list[Tensor] = []
    if chosen.transfer == "none":
        return shared, private, None, read
    if chosen.transfer == "ace":
        both = torch.cat([positives.mean(shared, active), positives.mean(private, active)], 2)
        matrix, read = generate(both, leaves)
    else:
        matrix = leaves[MATRIX]
    turn = matrix.transpose(1, 2)
    personal = torch.bmm(private, turn) if chosen.transfer == "unified" else private
    return torch.bmm(shared, turn), personal, matrix, read


def losses(
    leaves: dict[str, Tensor], batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone
) -> tuple[Tensor, Tensor]:
    """The sum over clients of Eq. 19 (with FedRAP's terms), and each sample's recommendation loss."""
    active, shared, private = batch.active, leaves["shared"], leaves["private"]
    enhanced, personal, matrix, read = views(leaves, positives, chosen, active)
    fused = (enhanced + personal).reshape(-1, shared.shape[-1])
    items = fused.index_select(0, batch.flat).view(*batch.rows.shape, -1)
    owner = batch.owner.view(-1)
    people = leaves["users"].index_select(0, owner).view_as(items)
    inputs = {name: value for name, value in leaves.items() if name in backbone_names(leaves)}
    if "bias" in leaves:
        inputs["bias"] = leaves["bias"].index_select(0, owner).view(batch.rows.shape)
    logit = backbone.score(people, items, inputs)
    each = functional.binary_cross_entropy_with_logits(logit, batch.label, reduction="none")
    total = (each * batch.weight).sum()
    if chosen.beta_a:
        total = total + chosen.beta_a * consistency(enhanced, personal, batch, positives, chosen).sum()
    if chosen.beta_o:
        weight = chosen.beta_o * torch.ones(active, device=shared.device)
        if chosen.complementarity == "orthogonal":
            with torch.no_grad():
                weight = _orthogonal_weight(shared, private, matrix, read, chosen)
        total = total + (weight * complementarity(enhanced, personal, chosen)).sum()
    if chosen.lambda_:
        total = total - chosen.lambda_ * (private - shared).square().mean((1, 2)).sum()
    if chosen.mu:
        total = total + chosen.mu * shared.abs().mean((1, 2)).sum()
    return total, each


def _orthogonal_weight(
    shared: Tensor, private: Tensor, matrix: Tensor | None, read: list[Tensor], chosen: Objective
) -> Tensor:
    cross = torch.bmm(shared.transpose(1, 2), private)
    sizes = torch.linalg.vector_norm(private, dim=(1, 2)), torch.linalg.vector_norm(shared, dim=(1, 2))
    if matrix is None:
        return orthogonal_weight(sizes, torch.zeros_like(cross), cross, None, chosen)
    gain = generator_gain(read) if read else torch.ones_like(matrix[:, 0, 0])
    return orthogonal_weight(sizes, matrix, cross, gain, chosen)


def backbone_names(leaves: dict[str, Tensor]) -> list[str]:
    """Parameters that belong to the score function."""
    own = ("shared", "private", "users", "bias")
    return [name for name in leaves if name not in own and not name.startswith("transfer_")]


def cosines(prototype: Tensor, table: Tensor, floor: float) -> Tensor:
    """Cosine of a prototype ``[clients, 1, d]`` with every row of a table: ``[clients, m]``.

    A vector shorter than ``floor`` counts as that long: an untrained row is near to nothing, and the
    gradient, which grows with the inverse length, stays bounded.
    """
    lengths = table.norm(dim=2).clamp(min=floor)
    reach = prototype.norm(dim=2).clamp(min=floor)
    return torch.bmm(table, prototype.transpose(1, 2))[:, :, 0] / (lengths * reach)


def top_one(prototype: Tensor, table: Tensor, chosen: Objective) -> Tensor:
    """Logarithms of Eq. 15: a softmax over scaled cosines, or the printed quotient cut off at zero."""
    found = cosines(prototype, table, chosen.norm_floor)
    if chosen.consistency == "ranking":
        return functional.log_softmax(chosen.length_scale * found, 1)
    return (found / found.sum(1, keepdim=True)).clamp(min=1e-12).log()


def consistency(enhanced: Tensor, personal: Tensor, batch: Batch, positives: Positives, chosen: Objective) -> Tensor:
    """``[clients]``: L_a (Eq. 16), or the alternatives L_s and L_c of Figure 4a."""
    if chosen.consistency in ("ranking", "ranking-printed"):
        active = batch.active
        log_p = top_one(positives.mean(personal, active), personal, chosen)
        log_q = top_one(positives.mean(enhanced, active), enhanced, chosen)
        return -0.5 * (log_p.exp() * log_q + log_q.exp() * log_p).sum(1)
    if chosen.consistency == "similarity":  # the two views of an item are to point the same way
        return 1.0 - functional.cosine_similarity(enhanced, personal, dim=2, eps=EPS).mean(1)
    # contrast: among the mini-batch's items, an item's own other view is to be the nearest
    shape = (*batch.rows.shape, enhanced.shape[-1])
    left = enhanced.reshape(-1, shape[-1]).index_select(0, batch.flat).view(shape)
    right = personal.reshape(-1, shape[-1]).index_select(0, batch.flat).view(shape)
    left, right = functional.normalize(left, dim=2, eps=EPS), functional.normalize(right, dim=2, eps=EPS)
    alike = torch.bmm(left, right.transpose(1, 2)) / TEMPERATURE
    alike = alike.masked_fill(~batch.inside[:, None], -1e9)
    same = torch.diagonal(functional.log_softmax(alike, 2), dim1=1, dim2=2)
    return -(same * batch.inside).sum(1) / batch.inside.sum(1)


def complementarity(enhanced: Tensor, personal: Tensor, chosen: Objective) -> Tensor:
    """``[clients]``: L_o (Eq. 18), or the alternatives L_2 and L_m of Figure 4b."""
    if chosen.complementarity == "orthogonal":
        return torch.bmm(enhanced.transpose(1, 2), personal).square().sum((1, 2)) / enhanced.shape[2]
    if chosen.complementarity == "l2":  # FedRAP's: the further apart the better
        return -(enhanced - personal).square().mean((1, 2))
    # mutual information of the two views if each dimension were Gaussian: -1/2 sum log(1 - correlation^2)
    left, right = enhanced - enhanced.mean(1, keepdim=True), personal - personal.mean(1, keepdim=True)
    product = (left * right).sum(1)
    size = left.square().sum(1) * right.square().sum(1)
    squared = (product.square() / size.clamp(min=EPS**2)).clamp(max=1 - 1e-6)
    return -0.5 * torch.log1p(-squared).sum(1)

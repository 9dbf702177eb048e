"""How much of Fed3CR's orthogonality constraint one step can take without overshooting; see the method's card."""

from __future__ import annotations

import torch
from torch import Tensor

from fedrec.methods.two_views.step import Objective

EPS = 1e-8


def orthogonal_weight(
    sizes: tuple[Tensor, Tensor], matrix: Tensor, cross: Tensor, gain: Tensor | None, chosen: Objective
) -> Tensor:
    """``[clients]`` the weight of L_o in this step: beta_o, or less where a full step would overshoot.

    A step on V is ``V - rate beta 2/d C^E C^E^T V``: it contracts only while ``rate beta 2/d |C^E|^2 <= 1``; likewise
    for C, and for W with ``K K^T`` in that place. L_o sums over all items, so large clients would diverge at rates
    that suit small ones. ``sizes`` are |V| and |C| ``[clients]``; ``cross`` is K; ``gain`` ``[clients]`` how far a
    step of the generator moves W for a unit gradient (about ``1 + `` the squared lengths of what its layers read),
    None where W is fixed.
    """
    turn = matrix.square().sum((1, 2)) if gain is not None else torch.ones_like(matrix[:, 0, 0])
    size = torch.maximum(*sizes) ** 2 * turn  # |C W^T| <= |C| |W|
    curvature = chosen.lr_items * size
    if gain is not None:
        curvature = torch.maximum(curvature, chosen.lr_transfer * gain * cross.square().sum((1, 2)))
    return (cross.shape[2] / (2 * curvature).clamp(min=EPS)).clamp(max=chosen.beta_o)


def generator_gain(read: list[Tensor]) -> Tensor:
    """``[clients]``: one and the squared lengths of what the generator's layers read."""
    return 1.0 + torch.stack([state.square().flatten(1).sum(1) for state in read]).sum(0)


def weight_of_tables(
    shared: Tensor, private: Tensor, matrix: Tensor | None, read: list[Tensor], chosen: Objective
) -> Tensor:
    """:func:`orthogonal_weight` from whole tables ``[clients, m, d]``; ``read`` is what the generator's layers read."""
    with torch.no_grad():
        cross = torch.bmm(shared.transpose(1, 2), private)
        sizes = torch.linalg.vector_norm(private, dim=(1, 2)), torch.linalg.vector_norm(shared, dim=(1, 2))
        if matrix is None:
            return orthogonal_weight(sizes, torch.zeros_like(cross), cross, None, chosen)
        gain = generator_gain(read) if read else torch.ones_like(matrix[:, 0, 0])
        return orthogonal_weight(sizes, matrix, cross, gain, chosen)

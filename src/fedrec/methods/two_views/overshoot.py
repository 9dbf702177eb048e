"""How much of Fed3CR's orthogonality constraint one step can take without overshooting; see the method's card."""

from __future__ import annotations

import torch
from torch import Tensor

from fedrec.methods.two_views.step import Objective

EPS = 1e-8


def weight_of_tables(
    shared: Tensor, private: Tensor, matrix: Tensor | None, read: list[Tensor], chosen: Objective
) -> Tensor:
    """``[clients]`` the weight of L_o in this step: beta_o, or less where a full step would overshoot.

    A step on V is ``V - rate beta 2/d C^E C^E^T V``: it contracts only while ``rate beta 2/d |C^E|^2 <= 1``; likewise
    for C, and for W with ``K K^T`` in that place. L_o sums over all items, so large clients would diverge at rates
    that suit small ones. Tables are ``[clients, m, d]``; ``read`` is what the generator's layers read, nothing where
    W is a parameter of its own.
    """
    with torch.no_grad():
        own_size, size = (torch.linalg.vector_norm(table, dim=(1, 2)) for table in (private, shared))
        size = torch.maximum(own_size, size) ** 2
        curvature = chosen.lr_items * size
        if matrix is not None:
            cross = torch.bmm(shared.transpose(1, 2), private)  # K
            gain = generator_gain(read) if read else torch.ones_like(size)
            curvature = torch.maximum(
                chosen.lr_items * (size * matrix.square().sum((1, 2))),  # |C W^T| <= |C| |W|
                chosen.lr_transfer * gain * cross.square().sum((1, 2)),
            )
        return (shared.shape[2] / (2 * curvature).clamp(min=EPS)).clamp(max=chosen.beta_o)


def generator_gain(read: list[Tensor]) -> Tensor:
    """``[clients]`` how far a step of the generator moves W for a unit gradient: about one and the squared lengths of
    what its layers read."""
    return 1.0 + torch.stack([state.square().flatten(1).sum(1) for state in read]).sum(0)

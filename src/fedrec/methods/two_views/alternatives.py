"""What Fed3CR's constraints are compared with in its Figure 4: L_s and L_c for consistency, L_2 and L_m for
complementarity. The paper gives no formulas; these are the usual ones, ``[clients]`` each."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fedrec.methods.two_views.step import Batch

EPS = 1e-8
TEMPERATURE = 0.2
"""Of the contrast."""


def similarity(enhanced: Tensor, personal: Tensor) -> Tensor:
    """L_s: the two views of an item point the same way."""
    return 1.0 - functional.cosine_similarity(enhanced, personal, dim=2, eps=EPS).mean(1)


def contrast(enhanced: Tensor, personal: Tensor, batch: Batch) -> Tensor:
    """L_c: among the mini-batch's items, an item's own other view is the nearest (InfoNCE)."""
    left, right = batch.of(enhanced), batch.of(personal)
    left, right = functional.normalize(left, dim=2, eps=EPS), functional.normalize(right, dim=2, eps=EPS)
    alike = torch.bmm(left, right.transpose(1, 2)) / TEMPERATURE
    alike = alike.masked_fill(~batch.inside[:, None], -1e9)
    same = torch.diagonal(functional.log_softmax(alike, 2), dim1=1, dim2=2)
    return -(same * batch.inside).sum(1) / batch.inside.sum(1)


def distance(enhanced: Tensor, personal: Tensor) -> Tensor:
    """L_2: the further apart the better, as FedRAP has it."""
    return -(enhanced - personal).square().mean((1, 2))


def mutual_information(enhanced: Tensor, personal: Tensor) -> Tensor:
    """L_m: mutual information if each dimension were Gaussian, ``-1/2 sum log(1 - correlation^2)``."""
    left, right = enhanced - enhanced.mean(1, keepdim=True), personal - personal.mean(1, keepdim=True)
    product = (left * right).sum(1)
    size = left.square().sum(1) * right.square().sum(1)
    squared = (product.square() / size.clamp(min=EPS**2)).clamp(max=1 - 1e-6)
    return -0.5 * torch.log1p(-squared).sum(1)

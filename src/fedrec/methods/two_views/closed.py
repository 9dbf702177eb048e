"""The fast twin of the plain objectives of Fed3CR and FedRAP: one step of descent with gradients written out.

For dot-product and affine scorers on the CPU; tested against torch's own gradients of what stands in the papers' files.
With ``G = W^T W`` and ``K = C^T V`` (both d x d) the losses of Fed3CR need no enhanced table:

    rec   s = (W^T u) . c_j + u . v_j + b                                                        (Eq. 11-13)
    L_a   cos(p^E, c^E_j) = c_j^T G p^G / (|p^E| sqrt(c_j^T G c_j)),   |p^E|^2 = p^G^T G p^G     (Eq. 15-16)
    L_o   |C^E^T V|^2 / d = |W K|^2 / d,    dC = V (2/d G K)^T,  dV = C (2/d G K),  dW = 2/d W K K^T  (Eq. 17-18)

so ``C G``, ``C^T V``, ``V (GK)^T``, ``C (GK)`` and ``C^T diag(.) C`` are the only products over whole tables, which
:mod:`fedrec.methods.two_views.clients_kernel` makes while a client's tables are in cache.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedrec.backbones.base import Backbone
from fedrec.methods.two_views.autograd import rate_of
from fedrec.methods.two_views.generator import MATRIX
from fedrec.methods.two_views.in_place import InPlace
from fedrec.methods.two_views.overshoot import generator_gain
from fedrec.methods.two_views.step import Batch, Objective, Positives, State


def closed_step(state: State, batch: Batch, positives: Positives, chosen: Objective, backbone: Backbone) -> Tensor:
    """Change ``state`` by one step; returns each sample's recommendation loss ``[active, width]``."""
    active, dim = batch.active, state.users.shape[1]
    tables, prototypes = InPlace(state, batch), chosen.transfer == "ace" or chosen.beta_a
    views = own_views = torch.zeros(active, dim)
    if prototypes:  # Eq. 10
        views, own_views = tables.mean(state.shared, positives), tables.mean(state.private, positives)

    # the transfer matrix (Eq. 9)
    read: list[Tensor] = []
    matrix = None
    if state.generator is not None:
        matrix, read = state.generator.matrix(torch.cat([views, own_views], 1))
    elif chosen.transfer == "consensus":
        matrix = state.networks[MATRIX][:active]

    gain = generator_gain(read) if read else torch.ones(active)
    found = tables.descend(chosen, backbone.kernel == "affine", matrix, gain, views, own_views)

    # what made W makes its step, and gives the prototypes their gradient
    if state.generator is not None:
        inputs = state.generator.descend(found.to_matrix, read, chosen.lr_transfer)
        found.to_views.add_(inputs[:, :dim])
        found.to_own_views.add_(inputs[:, dim:])
    elif matrix is not None:
        matrix.sub_(found.to_matrix, alpha=chosen.lr_transfer)
    if prototypes:
        tables.spread(state.shared, positives, found.to_views, rate_of("shared", chosen))
        tables.spread(state.private, positives, found.to_own_views, rate_of("private", chosen))
    return found.each

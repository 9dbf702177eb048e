"""Calling the fused kernel, for dot-product and affine scorers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrec.errors import BadInput
from fedrec.learn.kernel.call import batches, on_all_cores
from fedrec.learn.kernel.clients import train_clients
from fedrec.learn.trained import Trained, Work


def train_fused(work: Work) -> Trained:
    """Train on all cores; see :func:`fedrec.learn.train.train_block`."""
    block, samples, settings, networks = work.block, work.samples.on_host(), work.settings, work.networks
    affine = work.backbone.kernel == "affine"
    if affine and ("bias" not in networks or networks["bias"].shape != (block.n_users,)):
        raise BadInput("the affine scorer needs networks['bias'] with one number per user")
    if len(networks) > affine:
        raise BadInput(f"backbone {work.backbone.name} has no network parameters {sorted(networks)}")
    size, plan = batches(samples, settings)
    bias = np.ascontiguousarray(networks["bias"], np.float32) if affine else np.zeros(0, np.float32)
    bias_out = np.empty_like(bias)
    own = (
        bias, bias_out, np.float32(work.lr_users), np.float32(work.lr_items), settings.optimizer == "adam",
        affine, samples.pairs, np.float32(work.proximal), plan,
    )  # fmt: skip
    trained = on_all_cores(
        train_clients, block, samples, work.users, work.table, work.keys, settings.epochs, size, own, work.threads
    )
    return replace(trained, networks={"bias": bias_out - bias}) if affine else trained

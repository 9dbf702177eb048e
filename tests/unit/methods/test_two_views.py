"""Fed3CR and FedRAP: every equation against a plain reference, every gradient against torch's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedrec.backbones import find as find_backbone
from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.data.ragged import Ragged, offsets
from fedrec.learn.samples import draw
from fedrec.learn.transfer import MATRIX, generate, generator_sizes, start_generator
from fedrec.learn.two_tables import Objective, train_two_tables

D, M = 4, 23


def made_block(users_each=(1, 1, 2, 1), seed=0) -> Block:
    rng = np.random.default_rng(seed)
    n_users = sum(users_each)
    lists = [np.sort(rng.choice(M, rng.integers(2, 9), replace=False)) for _ in range(n_users)]
    train = Ragged(offsets(np.array([len(x) for x in lists])), np.concatenate(lists).astype(np.int32))
    clients = len(users_each)
    return Block(
        M, np.arange(clients), np.arange(clients, dtype=np.uint64) + np.uint64(11), offsets(np.array(users_each)),
        np.arange(n_users, dtype=np.uint64) + np.uint64(99), train, train,
    )  # fmt: skip


def parameters(block: Block, transfer: str, affine: bool, layers: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    networks: dict[str, np.ndarray] = {}
    if transfer == "ace":
        networks = start_generator(5, D, layers)
    elif transfer != "none":
        networks[MATRIX] = (np.eye(D) + 0.3 * rng.normal(size=(D, D))).astype(np.float32)
    if affine:
        networks["bias"] = rng.normal(size=block.n_users).astype(np.float32)
    return {
        "users": rng.normal(size=(block.n_users, D)).astype(np.float32),
        "shared": rng.normal(size=(M, D)).astype(np.float32),
        "private": rng.normal(size=(block.n_clients, M, D)).astype(np.float32),
        "networks": networks,
    }


def trained(block, objective, scorer="mf", engine="auto", layers=3):
    given = parameters(block, objective.transfer, scorer == "affine", layers)
    if scorer == "ncf":
        one = find_backbone("ncf").start(np.array([3], np.uint64), D)
        given["networks"] |= {name: array[0] for name, array in one.items()}
    samples = draw(block, 4, np.arange(block.n_clients, dtype=np.uint64))
    keys = Keys(3, 1).clients(block, "batches")
    out = train_two_tables(
        block, samples, given["users"], given["shared"], given["private"], given["networks"],
        find_backbone(scorer), objective, keys, engine=engine,
    )  # fmt: skip
    return out, given["private"]


FULL = Objective(transfer="ace", beta_a=0.7, beta_o=0.3, epochs=3, batch_size=16, lr=0.02, lr_items=0.02, lr_transfer=0.01)
VARIANTS = {
    "rec only": replace(FULL, transfer="none", beta_a=0, beta_o=0),
    "C1": replace(FULL, beta_a=0, beta_o=0),
    "C2": replace(FULL, transfer="none", beta_o=0),
    "C3": replace(FULL, transfer="none", beta_a=0),
    "C4": replace(FULL, transfer="none"),
    "C5": replace(FULL, beta_o=0),
    "C6": replace(FULL, beta_a=0),
    "full": FULL,
    "most vectors below the floor": replace(FULL, norm_floor=2.0),
    "no vector below the floor": replace(FULL, norm_floor=1e-6),
    "consensus transfer": replace(FULL, transfer="consensus"),
    "fedrap": replace(FULL, transfer="none", beta_a=0, beta_o=0, lambda_=2.0, mu=3.0, reduction="mean", lr_items=0.5),
    "full on fedrap": replace(FULL, lambda_=2.0, mu=3.0),
}


@pytest.mark.parametrize("scorer", ["mf", "affine"])
@pytest.mark.parametrize("name", list(VARIANTS))
def test_gradients_written_out_equal_torchs_own(name, scorer):
    block = made_block()
    fast, fast_private = trained(block, VARIANTS[name], scorer)
    plain, plain_private = trained(block, VARIANTS[name], scorer, "torch")
    np.testing.assert_allclose(fast.shared, plain.shared, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(fast_private, plain_private, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(fast.users, plain.users, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(fast.loss, plain.loss, rtol=1e-4)
    assert fast.networks.keys() == plain.networks.keys()
    for key in fast.networks:
        np.testing.assert_allclose(fast.networks[key], plain.networks[key], rtol=2e-4, atol=2e-5, err_msg=key)
    assert np.abs(fast.shared).max() > 1e-3

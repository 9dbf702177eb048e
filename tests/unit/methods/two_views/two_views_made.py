"""A small block of clients, random parameters and trainings, for the tests of methods with two views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.backbones import find as find_backbone
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.data.ragged import Ragged, offsets
from fedrec.learn.samples import draw
from fedrec.methods.two_views.fed3cr import loss
from fedrec.methods.two_views.generator import MATRIX, start_generator
from fedrec.methods.two_views.step import Objective
from fedrec.methods.two_views.train import TwoViewsTrained, train_two_views

D, M = 4, 23


def made_block(users_each: tuple[int, ...] = (1, 1, 2, 1), seed: int = 0) -> Block:
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
    networks: dict[str, Array] = {}
    if transfer == "ace":
        networks |= start_generator(5, D, layers)
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


def trained(
    block: Block,
    objective: Objective,
    scorer: str = "mf",
    engine: str = "auto",
    layers: int = 3,
    plain: Any = loss,
) -> tuple[TwoViewsTrained, Float32]:
    """A training from random parameters, and the private tables that it wrote."""
    given = parameters(block, objective.transfer, scorer == "affine", layers)
    if scorer == "ncf":
        one = find_backbone("ncf").start(np.array([3], np.uint64), D)
        given["networks"] |= {name: array[0] for name, array in one.items()}
    samples = draw(block, 4, np.arange(block.n_clients, dtype=np.uint64))
    keys = Keys(3, 1).clients(block, "batches")
    out = train_two_views(
        block, samples, given["users"], given["shared"], given["private"], given["networks"],
        find_backbone(scorer), (objective,), plain, keys, engine=engine,
    )  # fmt: skip
    return out, given["private"]


FULL = Objective(
    transfer="ace", beta_a=0.7, beta_o=0.3, epochs=3, batch_size=16, lr=0.02, lr_items=0.02, lr_transfer=0.01
)
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
    "a slower private table": replace(FULL, private_rate=0.3, lambda_=1.0),
    "consensus transfer": replace(FULL, transfer="consensus"),
    "fedrap": replace(FULL, transfer="none", beta_a=0, beta_o=0, lambda_=2.0, mu=3.0, reduction="mean", lr_items=0.5),
    "full on fedrap": replace(FULL, lambda_=2.0, mu=3.0),
    "rates that fall from step to step": replace(FULL, decay_step=0.8),
}


def assert_alike(
    one: tuple[TwoViewsTrained, Float32],
    other: tuple[TwoViewsTrained, Float32],
    *,
    rtol: float,
    atol: float,
    loss: float,
) -> None:
    """Two trainings, each what it gives and the private tables that it wrote."""
    (left, left_private), (right, right_private) = one, other
    np.testing.assert_allclose(left.shared, right.shared, rtol=rtol, atol=atol)
    np.testing.assert_allclose(left_private, right_private, rtol=rtol, atol=atol)
    np.testing.assert_allclose(left.users, right.users, rtol=rtol, atol=atol)
    np.testing.assert_allclose(left.loss, right.loss, rtol=loss)
    assert left.networks.keys() == right.networks.keys()
    for key in left.networks:
        np.testing.assert_allclose(left.networks[key], right.networks[key], rtol=rtol, atol=atol, err_msg=key)

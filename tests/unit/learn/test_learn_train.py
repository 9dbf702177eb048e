"""Law 9: the kernel and the batched engine equal one plain torch.optim loop per client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learn_reference import Plan, random_block, train_plainly

from fedrec.backbones.base import Backbone
from fedrec.backbones.mf import Affine, MatrixFactorisation
from fedrec.backbones.ncf import NeuralCollaborativeFiltering
from fedrec.backbones.neumf import NeuMf
from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.core.settings import TrainingSettings
from fedrec.errors import BadInput
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.learn.trained import Trained

ENGINES = ("kernel", "torch")


def values(rng: np.random.Generator, *shape: int) -> Float32:
    return (rng.standard_normal(shape) * 0.3).astype(np.float32)


def compare(
    block: Block,
    plan: Plan,
    backbone: Backbone,
    personal: bool = False,
    dim: int = 5,
    negatives: int = 2,
    seed: int = 0,
    shared_networks: bool = False,
    **extra: Any,
) -> Trained:
    rng = np.random.default_rng(seed)
    samples = draw(block, negatives, block.client_keys, objective=plan.objective)
    users = values(rng, block.n_users, dim)
    table = values(rng, *([block.n_clients] if personal else []), block.n_items, dim)
    networks = backbone.start(block.user_keys if backbone.per_user else block.client_keys, dim)
    if shared_networks:
        networks = {name: array[0] for name, array in networks.items()}
    if "bias" in networks:
        networks["bias"] = values(rng, block.n_users)
    before = [array.copy() for array in (users, table, *networks.values())]
    arguments = (block, samples, users, table, plan, block.client_keys, backbone, networks)
    found = train_block(*arguments, **extra)
    for array, old in zip((users, table, *networks.values()), before, strict=True):
        np.testing.assert_array_equal(array, old)

    extra.pop("device", None)
    want_users, want_tables, want_networks, want_loss = train_plainly(*arguments, **extra)
    close: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(found.users, want_users, **close)
    np.testing.assert_allclose(found.rows.dense() + table, want_tables, **close)
    np.testing.assert_allclose(found.loss, want_loss, rtol=1e-4, atol=1e-6)
    assert set(found.networks) == set(networks)
    for name, change in found.networks.items():
        np.testing.assert_allclose(change + networks[name], want_networks[name], **close)
    return found


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    holdings=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=3), min_size=1, max_size=5),
    objective=st.sampled_from(["bce", "bpr"]),
    optimizer=st.sampled_from(["adam", "sgd"]),
    backbone=st.sampled_from([MatrixFactorisation(), Affine()]),
    engine=st.sampled_from(ENGINES),
    personal=st.booleans(),
    dim=st.sampled_from([1, 5, 8, 16, 19]),
    proximal=st.sampled_from([0.0, 0.5]),
    batch_size=st.sampled_from([1, 4, 64]),
    seed=st.integers(0, 1000),
)
def test_engines_equal_the_plain_loop(
    holdings: list[list[int]],
    objective: str,
    optimizer: str,
    backbone: Backbone,
    engine: str,
    personal: bool,
    dim: int,
    proximal: float,
    batch_size: int,
    seed: int,
) -> None:
    block = random_block(seed, holdings, n_items=20)
    plan = Plan(objective=objective, optimizer=optimizer, engine=engine, batch_size=batch_size)
    compare(block, plan, backbone, personal, dim, seed=seed, proximal=proximal)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("holdings", [[[0]], [[1]], [[0], [7], [0]], [[5, 0, 9], [3]], [[20], [20, 4]]], ids=str)
@pytest.mark.parametrize("objective", ["bce", "bpr"])
def test_edges(engine: str, holdings: list[list[int]], objective: str) -> None:
    """No samples, one sample, several users, a user who has every item."""
    found = compare(random_block(1, holdings, 20), Plan(engine=engine, objective=objective), Affine())
    assert np.isfinite(found.users).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_training_with_gaps(engine: str) -> None:
    """Rows wait many steps between gradients; the closed form must make up for all of them."""
    block = random_block(3, [[60], [25]], 400)
    compare(block, Plan(engine=engine, batch_size=3, epochs=4, lr=0.02), MatrixFactorisation(), dim=8, negatives=4)


@pytest.mark.parametrize("engine", ENGINES)
def test_rates_of_users_and_items_differ(engine: str) -> None:
    plan = Plan(engine=engine, optimizer="sgd")
    compare(random_block(4, [[9], [12]], 30), plan, Affine(), lr_users=0.01, lr_items=3.0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("objective", ["bce", "bpr"])
def test_networks(engine: str, optimizer: str, shared: bool, objective: str) -> None:
    plan = Plan(engine=engine, optimizer=optimizer, objective=objective, weight_decay=0.01, batch_size=16)
    block = random_block(5, [[9], [0], [12, 3], [4]], 30)
    compare(block, plan, NeuralCollaborativeFiltering((6, 4)), shared_networks=shared)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("hidden", [(), (8,), (19, 3), (32, 16, 8)], ids=str)
@pytest.mark.parametrize("personal", [True, False])
def test_layers_of_any_width(engine: str, hidden: tuple[int, ...], personal: bool) -> None:
    """Widths that fill vectors and that do not; rows that wait many steps for their next gradient."""
    block = random_block(11, [[60], [25, 30, 2]], 400)
    plan = Plan(engine=engine, batch_size=3, epochs=2, lr=0.01)
    rates: dict[str, Any] = {"lr_users": 0.02, "lr_items": 0.005}
    compare(block, plan, NeuralCollaborativeFiltering(hidden), personal, dim=9, negatives=4, **rates)


def test_a_pull_towards_the_download_is_for_torch() -> None:
    """The kernel of layers has none; who scores in a way of its own is not taken for a perceptron."""

    class Twice(NeuralCollaborativeFiltering):
        def score(self, users: torch.Tensor, items: torch.Tensor, networks: Any) -> torch.Tensor:
            return 2 * super().score(users, items, networks)

    block = random_block(5, [[9], [12, 3]], 30)
    compare(block, Plan(), NeuralCollaborativeFiltering((6, 4)), proximal=0.5)
    compare(block, Plan(), Twice((6, 4)))
    with pytest.raises(BadInput, match=r"with proximal 0\.5"):
        compare(block, Plan(engine="kernel"), NeuralCollaborativeFiltering((6, 4)), proximal=0.5)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("backbone", [MatrixFactorisation(), NeuralCollaborativeFiltering()], ids=lambda one: one.name)
def test_threads_do_not_matter(engine: str, backbone: Backbone) -> None:
    block = random_block(6, [[count % 17] for count in range(40)], 30)
    samples = draw(block, 4, block.client_keys)
    rng = np.random.default_rng(0)
    users, table = values(rng, 40, 16), values(rng, 30, 16)
    arguments = (Plan(engine=engine), block.client_keys, backbone, backbone.start(block.client_keys, 16))
    one, two = (train_block(block, samples, users, table, *arguments, threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.users, two.users)
    np.testing.assert_array_equal(one.rows.values, two.rows.values)
    np.testing.assert_array_equal(one.loss, two.loss)
    for name, change in one.networks.items():
        np.testing.assert_array_equal(change, two.networks[name])


@pytest.mark.parametrize("backbone", [MatrixFactorisation(), NeuralCollaborativeFiltering()], ids=lambda one: one.name)
def test_a_block_equals_its_clients_one_by_one(backbone: Backbone) -> None:
    block = random_block(7, [[3], [15], [8, 2]], 30)
    rng = np.random.default_rng(0)
    users, table = values(rng, 4, 16), values(rng, 30, 16)
    networks = {name: array[0] for name, array in backbone.start(block.client_keys, 16).items()}
    whole = train_block(
        block, draw(block, 4, block.client_keys), users, table, Plan(), block.client_keys, backbone, networks
    )
    for c in range(3):
        one = block.take(np.array([c]))
        own = slice(block.user_start[c], block.user_start[c + 1])
        samples = draw(one, 4, one.client_keys)
        alone = train_block(one, samples, users[own], table, Plan(), one.client_keys, backbone, networks)
        np.testing.assert_array_equal(alone.users, whole.users[own])
        np.testing.assert_array_equal(alone.rows.values, whole.rows.take(np.array([c])).values)
        for name, change in alone.networks.items():
            np.testing.assert_array_equal(change[0], whole.networks[name][c])


def test_read_only_and_strided_inputs_are_fine() -> None:
    block = random_block(8, [[3], [15]], 30)
    rng = np.random.default_rng(0)
    users, table = values(rng, 2, 4), values(rng, 2, 60, 4)[:, ::2]
    users.flags.writeable = table.flags.writeable = False
    samples = draw(block, 4, block.client_keys)
    plan = (Plan(), block.client_keys, MatrixFactorisation())
    got = train_block(block, samples, users, table, *plan)
    same = train_block(block, samples, users.copy(), np.ascontiguousarray(table), *plan)
    np.testing.assert_array_equal(got.rows.values, same.rows.values)


def test_the_products_own_settings_fit() -> None:
    block = random_block(9, [[3]], 30)
    settings_ = TrainingSettings(dim=4, epochs=1)
    users, table = np.zeros((1, 4), np.float32), np.ones((30, 4), np.float32)
    samples = draw(block, settings_.negatives, block.client_keys)
    got = train_block(block, samples, users, table, settings_, block.client_keys, MatrixFactorisation())
    assert got.users.any()
    assert got.loss == pytest.approx(np.log(2))


def test_bad_input_is_one_line() -> None:
    block = random_block(10, [[3], [4]], 30)
    samples = draw(block, 2, block.client_keys)
    users, table = np.zeros((2, 4), np.float32), np.ones((30, 4), np.float32)
    rest = (block.client_keys, MatrixFactorisation())
    with pytest.raises(BadInput, match=r"needs \[2, d\]"):
        train_block(block, samples, users[:1], table, Plan(), *rest)
    with pytest.raises(BadInput, match="item table"):
        train_block(block, samples, users, table[:7], Plan(), *rest)
    with pytest.raises(BadInput, match="objective=bpr"):
        train_block(block, samples, users, table, Plan(objective="bpr"), *rest)
    ncf = NeuralCollaborativeFiltering()
    with pytest.raises(BadInput, match="engine=kernel"):
        train_block(block, samples, users, table, Plan(engine="kernel"), block.client_keys, NeuMf())
    for engine in ENGINES:
        with pytest.raises(BadInput, match="needs networks"):
            train_block(block, samples, users, table, Plan(engine=engine), block.client_keys, ncf)
    with pytest.raises(BadInput, match="bias"):
        train_block(block, samples, users, table, Plan(), block.client_keys, Affine())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("backbone", [Affine(), NeuralCollaborativeFiltering((6, 4))])
@pytest.mark.parametrize("objective", ["bce", "bpr"])
def test_cuda_equals_the_plain_loop(backbone: Backbone, objective: str) -> None:
    plan = Plan(objective=objective, engine="torch", batch_size=4)
    compare(random_block(5, [[9], [0], [12, 3], [4]], 30), plan, backbone, device="cuda")


def test_torch_engine_needs_neither_numba_nor_pydantic() -> None:
    here = Path(__file__).parent
    code = (
        "import sys; sys.modules['numba'] = sys.modules['pydantic'] = None\n"
        f"sys.path.insert(0, {str(here)!r})\n"
        "import numpy as np\n"
        "from learn_reference import Plan, random_block\n"
        "from fedrec.learn.samples import draw\n"
        "from fedrec.learn.train import train_block\n"
        "from fedrec.backbones.mf import MatrixFactorisation\n"
        "block = random_block(0, [[3], [5]], 20)\n"
        "samples = draw(block, 2, block.client_keys)\n"
        "got = train_block(block, samples, np.ones((2, 4), 'f4'), np.ones((20, 4), 'f4'), Plan(),\n"
        "                  block.client_keys, MatrixFactorisation())\n"
        "assert got.rows.values.any()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

"""Backbones: numpy scores equal torch scores, gradients are right, tables equal their dense selves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.backbones.mf import Affine, MatrixFactorisation
from fedrec.backbones.ncf import NeuralCollaborativeFiltering
from fedrec.backbones.tables import ItemTable
from fedrec.core.messages import Array, Float32, Rows

RNG = np.random.default_rng(0)
USERS = RNG.standard_normal((6, 4)).astype(np.float32)
SHARED = RNG.standard_normal((9, 4)).astype(np.float32)
PERSONAL = RNG.standard_normal((3, 9, 4)).astype(np.float32)
OWNERS = np.array([0, 0, 1, 2, 2, 2])
ROWS = Rows(
    np.array([0, 2, 2, 5]),
    np.array([1, 8, 0, 4, 5], np.int32),
    RNG.standard_normal((5, 4)).astype(np.float32),
    n_items=9,
)


def networks_of(backbone: Backbone) -> dict[str, Array]:
    networks = backbone.start(keyed.keys_of(range(6 if backbone.per_user else 3)), 4)
    return {name: array + np.float32(0.1) for name, array in networks.items()}


@pytest.mark.parametrize("backbone", [MatrixFactorisation(), Affine(), NeuralCollaborativeFiltering((5, 3))])
@pytest.mark.parametrize("table", [SHARED, PERSONAL], ids=["shared", "personal"])
def test_numpy_scores_equal_torch_scores(backbone: Backbone, table: Float32) -> None:
    networks = networks_of(backbone)
    found = backbone.scores(USERS, table, networks, OWNERS)
    tables = np.broadcast_to(table, (3, 9, 4))[OWNERS]
    inputs = {
        name: torch.from_numpy(array[:, None] if name in backbone.per_user else array[OWNERS])
        for name, array in networks.items()
    }
    want = backbone.score(torch.from_numpy(USERS)[:, None], torch.from_numpy(tables.copy()), inputs)
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-5, atol=1e-6)


def test_a_shared_network_scores_as_its_copies() -> None:
    backbone = NeuralCollaborativeFiltering()
    one = {name: array[0] for name, array in networks_of(backbone).items()}
    many = {name: np.stack([array] * 3) for name, array in one.items()}
    for table in (SHARED, PERSONAL):
        np.testing.assert_allclose(
            backbone.scores(USERS, table, one, OWNERS), backbone.scores(USERS, table, many, OWNERS), rtol=1e-5
        )


def test_ncf_by_hand() -> None:
    """[u; v] = [1, 2], one hidden unit 3 * 1 - 1 * 2 + 0.5 = 1.5, output 2 * 1.5 - 1 = 2."""
    networks = {
        "weight_0": np.array([[3.0, -1.0]], np.float32),
        "bias_0": np.array([0.5], np.float32),
        "weight_1": np.array([[2.0]], np.float32),
        "bias_1": np.array([-1.0], np.float32),
    }
    found = NeuralCollaborativeFiltering((1,)).scores(
        np.array([[1.0]], np.float32), np.array([[2.0], [9.0]], np.float32), networks
    )
    # the second item makes the hidden unit negative: relu leaves the output's bias
    np.testing.assert_allclose(found, [[2.0, -1.0]])


def test_ncf_gradients_are_the_numerical_ones() -> None:
    backbone = NeuralCollaborativeFiltering((5, 3))
    networks = {k: torch.from_numpy(v).double().requires_grad_() for k, v in networks_of(backbone).items()}
    users = torch.from_numpy(USERS[:3, None]).double().requires_grad_()
    items = torch.from_numpy(PERSONAL).double().requires_grad_()

    def score(users: torch.Tensor, items: torch.Tensor, *layers: torch.Tensor) -> torch.Tensor:
        return backbone.score(users, items, dict(zip(networks, layers, strict=True)))

    assert torch.autograd.gradcheck(score, (users, items, *networks.values()))


def test_ncf_starts_within_the_bound_and_by_key() -> None:
    backbone = NeuralCollaborativeFiltering()
    start = backbone.start(keyed.keys_of(range(4)), 16)
    assert [start[f"weight_{i}"].shape for i in range(4)] == [(4, 32, 32), (4, 16, 32), (4, 8, 16), (4, 1, 8)]
    assert np.abs(start["weight_3"]).max() <= 8**-0.5
    np.testing.assert_array_equal(backbone.start(keyed.keys_of([2]), 16)["bias_1"][0], start["bias_1"][2])
    assert not np.array_equal(start["weight_0"][0], start["weight_0"][1])


@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "numpy"])
@pytest.mark.parametrize("base", [SHARED, PERSONAL], ids=["shared", "personal"])
@pytest.mark.parametrize("backbone", [None, Affine(), NeuralCollaborativeFiltering((5, 3))])
def test_table_equals_its_dense_self(
    base: Float32, backbone: Backbone | None, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedrec.backbones.tables.installed", lambda package: kernel)
    table = ItemTable(base, ROWS)
    dense = ROWS.dense() + base
    networks = networks_of(backbone) if backbone else None
    want = (backbone or MatrixFactorisation()).scores(USERS, dense, networks, OWNERS)
    found = table.scores(USERS, OWNERS, backbone=backbone, networks=networks)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    for client in range(3):
        np.testing.assert_allclose(table.of(client), dense[client], rtol=1e-6)
    items = RNG.integers(0, 9, (6, 5))
    some = table.scores(USERS, OWNERS, items=items, backbone=backbone, networks=networks)
    np.testing.assert_allclose(some, np.take_along_axis(want, items, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "numpy"])
def test_table_in_pieces(kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrec.backbones.tables.installed", lambda package: kernel)
    whole = ItemTable(SHARED, ROWS).scores(USERS, OWNERS)
    monkeypatch.setattr("fedrec.backbones.tables._NUMBERS", 12)
    np.testing.assert_allclose(ItemTable(SHARED, ROWS).scores(USERS, OWNERS), whole, rtol=1e-4, atol=1e-6)


def test_table_without_changes() -> None:
    np.testing.assert_allclose(ItemTable(SHARED).scores(USERS), USERS @ SHARED.T, rtol=1e-6)

"""FedRAP: its objective by hand, and Fed3CR's mechanism plugged into it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from two_views_made import VARIANTS, D, M, assert_alike, made_block, parameters, trained

from fedrec.core.block import World
from fedrec.core.method import Keys
from fedrec.learn.lockstep import Lockstep
from fedrec.methods.two_views import fed3cr, fedrap
from fedrec.methods.two_views.autograd import Patience
from fedrec.methods.two_views.fedrap import FedRap, FedRapSettings, regularisers
from fedrec.methods.two_views.step import Objective


def test_the_regularisers_by_hand() -> None:
    rng = np.random.default_rng(0)
    shared, private = rng.normal(size=(2, M, D)), rng.normal(size=(2, M, D))
    found = regularisers(torch.from_numpy(shared), torch.from_numpy(private), Objective(lambda_=0.3, mu=0.7))
    wanted = sum(-0.3 * ((private[c] - shared[c]) ** 2).mean() + 0.7 * np.abs(shared[c]).mean() for c in range(2))
    assert float(found) == pytest.approx(wanted, rel=1e-12)
    assert float(regularisers(torch.from_numpy(shared), torch.from_numpy(private), Objective())) == 0.0


def test_fed3crs_objective_with_nothing_switched_on_is_fedraps() -> None:
    block, chosen = made_block(), VARIANTS["fedrap"]
    own = trained(block, chosen, "affine", "torch", plain=fedrap.loss)
    other = trained(block, chosen, "affine", "torch", plain=fed3cr.loss)
    assert_alike(own, other, rtol=0, atol=0, loss=0)


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_the_mechanism_of_fed3cr_can_be_plugged_in(engine: str) -> None:
    """Its alternatives too, which no gradients are written out for."""
    block = made_block()
    world, changes = World("w", M, block.n_users, block.n_clients), []
    for consistency in ("ranking", "similarity"):
        more = {"transfer": "ace", "beta_a": 0.5, "layers": 2, "consistency": consistency, "lr_items": 1.0}
        method = FedRap(FedRapSettings(dim=D, epochs=1, engine=engine, **more))
        server, private = method.start_server(world, Keys(1, 0)), method.start_clients(world, block, Keys(1, 0))
        update = method.local_update(private, method.download(server, block.clients), block, Keys(1, 1))
        assert "transfer_weight_0" in update.upload.networks
        assert np.isfinite(update.upload.rows.values).all()
        changes.append(update.upload.rows.values)
    assert np.abs(changes[0] - changes[1]).max() > 0


@pytest.mark.parametrize("start", ["common", "own"])
def test_score_functions_start_alike_or_apart(start: str) -> None:
    block = made_block()
    method = FedRap(FedRapSettings(dim=D, scorer_start=start))
    users = method.start_clients(World("w", M, block.n_users, block.n_clients), block, Keys(1, 0)).users
    assert (users[0] == users[1:]).all() == (start == "common")
    assert (users != 0).all()


def test_one_score_function_and_the_public_weights_are_the_default() -> None:
    chosen = FedRapSettings()
    assert (chosen.scorer_start, chosen.lambda_, chosen.mu) == ("common", 0.1, 0.1)


def test_weight_decay_shrinks_everything_that_a_client_trains() -> None:
    """A single step: what is added to the change is minus rate times decay times the value before."""
    block, one = made_block((1,)), replace(VARIANTS["fedrap"], epochs=1, batch_size=4096, private_rate=0.5)
    plain, plain_private = trained(block, one, "affine", "torch", plain=fedrap.loss)
    decayed, private = trained(block, replace(one, weight_decay=0.1), "affine", plain=fedrap.loss)
    given = parameters(block, "none", True)
    np.testing.assert_allclose(decayed.shared - plain.shared, -0.5 * 0.1 * given["shared"][None], atol=1e-6)
    np.testing.assert_allclose(private - plain_private, -0.25 * 0.1 * given["private"], atol=1e-6)
    np.testing.assert_allclose(decayed.users - plain.users, -0.02 * 0.1 * given["users"], atol=1e-6)
    bias = decayed.networks["bias"] - plain.networks["bias"]
    np.testing.assert_allclose(bias, -0.02 * 0.1 * given["networks"]["bias"], atol=1e-6)


def test_a_client_ends_its_epochs_when_its_loss_hardly_changes() -> None:
    """A tolerance above every change ends all clients after their second epoch, one below every change nobody."""
    block, chosen = made_block(), replace(VARIANTS["fedrap"], epochs=5, batch_size=8, tolerance=1e9)
    assert_alike(
        trained(block, chosen, "affine", plain=fedrap.loss),
        trained(block, replace(chosen, epochs=2, tolerance=0), "affine", "torch", plain=fedrap.loss),
        rtol=0, atol=1e-6, loss=1e6,
    )  # fmt: skip
    assert_alike(
        trained(block, replace(chosen, tolerance=1e-12), "affine", plain=fedrap.loss),
        trained(block, replace(chosen, tolerance=0), "affine", "torch", plain=fedrap.loss),
        rtol=0, atol=1e-6, loss=1e-6,
    )  # fmt: skip


def test_patience_looks_back_at_the_end_of_each_clients_own_epochs() -> None:
    """Two clients of three and one mini-batches: the second ends with its second epoch, the first goes on."""
    patience = Patience(0.1, np.array([3, 1]), "cpu")
    for step in Lockstep(np.array([3, 1]), 1, 3):
        now = step.on("cpu")
        losses = torch.tensor([1.0 / (step.number + 1), 0.5])[: step.active]
        patience.after(now, losses)
        assert patience.working[1] == (step.number == 0)
    assert patience.working[0] == 1

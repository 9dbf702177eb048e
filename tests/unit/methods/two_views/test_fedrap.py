"""FedRAP: its objective by hand, and Fed3CR's mechanism plugged into it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from two_views_made import VARIANTS, D, M, assert_alike, made_block, trained

from fedrec.core.block import World
from fedrec.core.method import Keys
from fedrec.methods.two_views import fed3cr, fedrap
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

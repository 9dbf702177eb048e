"""Scores of the two views by themselves: they add up, and each is what its table says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from two_views_made import D, M, made_block

from fedrec.core.block import World
from fedrec.core.method import Keys
from fedrec.errors import BadInput
from fedrec.methods.two_views.fed3cr import Fed3cr, Fed3crSettings
from fedrec.methods.two_views.fediar import FedIar
from fedrec.methods.two_views.fediar_state import FedIarSettings
from fedrec.methods.two_views.fedrap import FedRap, FedRapSettings
from fedrec.methods.two_views.parts import parts
from fedrec.methods.two_views.reading import Reader
from fedrec.methods.two_views.settings import LocalViews
from fedrec.methods.two_views.views import TwoViews

BLOCK = made_block()
WORLD = World("w", M, BLOCK.n_users, BLOCK.n_clients)


@pytest.mark.parametrize(
    "method",
    [FedRap(FedRapSettings(dim=D, lr_items=5.0)), Fed3cr(Fed3crSettings(dim=D, layers=2, lr_items=0.05))],
    ids=["fedrap", "fed3cr"],
)
def test_the_parts_of_a_sum_add_up_and_are_their_tables(method: TwoViews) -> None:
    server, private = method.start_server(WORLD, Keys(1, 0)), method.start_clients(WORLD, BLOCK, Keys(1, 0))
    update = method.local_update(private, method.download(server, BLOCK.clients), BLOCK, Keys(1, 1))
    assert isinstance(update.local, LocalViews)
    found = parts(method, update.private, update.local, BLOCK)
    bias = update.private.bias[:, None]
    np.testing.assert_allclose(found["full"] + bias, found["shared"] + found["private"], rtol=1e-4, atol=1e-5)
    read = Reader.of(method, update.private, update.local, BLOCK)
    for user, client in enumerate(BLOCK.client_of_user):
        shared, own = read.views(int(client))
        vector = update.private.users[user]
        np.testing.assert_allclose(found["shared"][user], shared @ vector + bias[user], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found["private"][user], own @ vector + bias[user], rtol=1e-4, atol=1e-5)


def test_fediars_parts_are_its_tables_and_there_is_no_private_one_in_warm_up() -> None:
    method = FedIar(FedIarSettings(dim=D, warmup=1))
    server, private = method.start_server(WORLD, Keys(1, 0)), method.start_clients(WORLD, BLOCK, Keys(1, 0))
    held = method.model(method.download(server, BLOCK.clients))
    assert set(parts(method, private, held, BLOCK)) == {"full", "shared"}
    private.tables[:] = np.random.default_rng(0).normal(size=private.tables.shape).astype(np.float32)
    found = parts(method, replace(private, own=np.ones_like(private.own)), held, BLOCK)
    theta = private.users[:, D:]
    np.testing.assert_allclose(found["shared"], theta @ server.items.T, rtol=1e-4, atol=1e-6)
    own = np.einsum("ud,uid->ui", theta, private.tables[BLOCK.client_of_user])
    np.testing.assert_allclose(found["private"], own, rtol=1e-4, atol=1e-6)


def test_a_scorer_with_layers_has_no_parts() -> None:
    method = Fed3cr(Fed3crSettings(dim=D, layers=2, base="fedncf"))
    server, private = method.start_server(WORLD, Keys(1, 0)), method.start_clients(WORLD, BLOCK, Keys(1, 0))
    with pytest.raises(BadInput, match="does not score as a sum"):
        parts(method, private, method.model(method.download(server, BLOCK.clients)), BLOCK)

"""Unlike models in one FedCIA federation (Figure 5), and its rival that averages parameters within one architecture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec.core import wire
from fedrec.core.method import Keys, Reply
from fedrec.core.settings import build
from fedrec.data.partition import partition
from fedrec.errors import BadInput
from fedrec.laws.checking import LAWS, Check
from fedrec.laws.equal_runs import same_in_any_blocks
from fedrec.laws.nodes import nodes_give_the_same
from fedrec.laws.small_runs import simulator, world
from fedrec.methods.fedcia import models
from fedrec.methods.fedcia.method import FedCia
from fedrec.methods.fedcia.settings import FedCiaSettings
from fedrec.robust.centre import Centre
from fedrec.robust.fields import View

CLIENTS, DIM = 20, 8
CHECKS = [
    (check, "architectures")
    for law in LAWS
    for check in law.checks
    if law.number != 8 and check is not same_in_any_blocks  # settings of its own; tried in test_fedcia_family.py
]


def started(mixed: str, **more: Any) -> Any:
    chosen = {"mixed": mixed, "aggregate": "within", "dim": DIM, "lr": 0.05, "init_scale": 0.1, **more}
    return simulator("fedcia", partition(world("demo"), CLIENTS), settings=chosen)


def groups(sim: Any) -> list[int]:
    return [models.group(sim.method.exchange.settings, sim.people.block, client) for client in range(CLIENTS)]


@pytest.mark.parametrize(("check", "mixed"), [*CHECKS, (nodes_give_the_same, "dims")])
def test_the_laws_hold(check: Check, mixed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FedCia, "small", {**FedCia.small, "mixed": mixed, "aggregate": "within"})
    check("fedcia")


def test_every_architecture_has_the_weighted_mean_of_its_own_clients() -> None:
    sim = started("dims")
    everyone = np.arange(CLIENTS)
    sim.round(1, everyone, everyone, False)
    own, sizes, start = np.array(groups(sim)), sim.people.block.sizes, 0
    for group, width in enumerate((2, 4, 8)):
        members = own == group
        wanted = np.average(sim.private.tables[members, :, :width], axis=0, weights=sizes[members])
        np.testing.assert_allclose(sim.server.tables[:, start : start + width], wanted, atol=1e-6)
        assert (sim.private.tables[members, :, width:] == 0).all()
        start += width
    assert sim.server.tables.shape[1] == start
    sim.round(2, everyone, everyone, False)
    assert all((sim.private.tables[c, :, (2, 4, 8)[g] :] == 0).all() for c, g in enumerate(own))


def test_networks_are_averaged_among_those_who_have_one() -> None:
    sim = started("architectures")
    before = {name: layer.copy() for name, layer in sim.server.networks.items()}
    everyone = np.arange(CLIENTS)
    sim.round(1, everyone, everyone, False)
    members = np.array(groups(sim)) == models.KINDS.index("mlp")
    for name, layer in sim.server.networks.items():
        wanted = np.average(sim.private.networks[name][members], axis=0, weights=sim.people.block.sizes[members])
        np.testing.assert_allclose(layer, wanted, atol=1e-6)
    assert not np.allclose(sim.server.networks["weight_0"], before["weight_0"])


def test_an_architecture_of_which_nobody_took_part_stays() -> None:
    sim = started("architectures")
    before = sim.server
    some = np.flatnonzero(np.array(groups(sim)) == models.KINDS.index("mf"))
    sim.round(1, some, some, False)
    moved = (sim.server.tables != before.tables).any(0)
    assert moved[:DIM].all()
    assert not moved[DIM:].any()
    assert all((sim.server.networks[name] == layer).all() for name, layer in before.networks.items())


@pytest.mark.parametrize("more", [{}, {"noise": 0.01}, {"compress": "int8"}, {"upload_form": "rows"}], ids=str)
def test_a_small_client_sends_a_small_table(more: dict[str, Any]) -> None:
    """Neither the dense form nor noise nor compression fills a narrow table up."""
    sim = started("dims", **more)
    n_items = sim.people.world.n_items
    for client, group in enumerate(groups(sim)):
        block = sim.people.block.take(np.array([client]))
        private = sim.method.start_clients(sim.people.world, block, Keys(0, 0))
        upload = sim.method.local_update(private, sim.method.download(sim.server, block.clients), block, Keys(0, 1))
        sent = sim.chain.apply(upload.upload, block, Keys(0, 1))
        width = (2, 4, 8)[group]
        each = 1 if more.get("compress") else 4
        numbers = width * n_items * each + 4 * width
        assert numbers <= wire.payload(sent, wire.Form.of(sim.method.settings)) <= numbers + 32


def test_a_median_is_that_of_each_architecture() -> None:
    """Not of all clients, most of whom have other tables: the mean of one with the others' nothing would shrink it."""
    sim = started("dims")
    server, block = sim.server, sim.people.block
    update = sim.method.local_update(sim.private, sim.method.download(server, block.clients), block, Keys(0, 1))
    view = View(sim.method, server, np.diff(block.user_start), block.n_items)
    sent = Centre().guarded([Reply(block.clients, update.upload)], view, Keys(0, 1))
    found = sim.method.aggregate(server, iter(sent), Keys(0, 1))
    small = np.array(groups(sim)) == 0
    np.testing.assert_allclose(found.tables[:, :2], np.median(update.private.tables[small, :, :2], axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mixed": "sizes"}, "mixed='sizes' is out of range"),
        ({"mixed": "dims", "dim": 3}, "dim=3 has none; use dim=4 or more"),
        ({"mixed": "dims", "backbone": "mlp"}, "use backbone=mf or lightgcn"),
        ({"aggregate": "within"}, "gfcf has no parameters to average"),
        ({"aggregate": "within", "backbone": "mf", "align": "none"}, "leave align and form out"),
        ({"aggregate": "within", "backbone": "mf", "form": "truncated"}, "leave align and form out"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said) as problem:
        FedCia(build(FedCiaSettings, given, "fedcia"))
    assert "\n" not in str(problem.value)

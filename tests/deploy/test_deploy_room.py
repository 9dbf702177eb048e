"""A node may claim any number of clients: what the server would keep for them is known before memory is taken."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedrec.core.block import World
from fedrec.core.state import flatten
from fedrec.deploy.messages.letters import Hello
from fedrec.deploy.server import room
from fedrec.deploy.server.roster import Roster
from fedrec.errors import BadInput
from fedrec.methods.registry import federated, find

WORLD = World("made", 30, 50, 50)


def made(name: str, **settings: Any) -> Any:
    kind = find(name)
    return kind(kind.Settings(**settings))


@pytest.mark.parametrize("name", federated())
def test_growth_is_what_the_state_grows_by(name: str) -> None:
    method = made(name)

    def stored(clients: int) -> int:
        state = room.state_of(method, WORLD, clients)
        return sum(array.nbytes for array in flatten(state)[0].values())

    assert room.growth(method, WORLD) == stored(50) - stored(2)


def hellos(**claims: int) -> list[Hello]:
    numbers = iter(range(10**7))
    keys = {name: np.array([next(numbers) for _ in range(count)], np.uint64) for name, count in claims.items()}
    return [Hello(name, own, np.ones(len(own), np.int64)) for name, own in keys.items()]


def test_who_claims_most_is_named_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_mb", lambda: 1000.0)
    roster = Roster.of(hellos(honest=40, liar=300_000))
    world = roster.world("made", 3000)
    with pytest.raises(
        BadInput, match=r"perfedrec keeps .* for the 300040 clients .*; liar says 300000: if that is not so"
    ):
        room.refuse_too_many(made("perfedrec", dim=512), roster, world)
    room.refuse_too_many(made("fedavg", dim=512), roster, world)  # keeps nothing for a client
    room.refuse_too_many(made("perfedrec", dim=512), roster, replace(world, n_clients=340))


def test_tables_that_may_lie_on_disk_have_the_disk_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_mb", lambda: 1000.0)
    asked: list[Path] = []

    def usage(place: Path) -> SimpleNamespace:
        asked.append(place)
        return SimpleNamespace(free=50 * 2**30)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    roster = Roster.of(hellos(a=2000))
    method = made("pfedgraph", dim=32, tables_dir=str(tmp_path / "not" / "yet"))
    room.refuse_too_many(method, roster, roster.world("made", 6000))
    assert asked == [tmp_path]
    with pytest.raises(BadInput, match="a says 2000"):
        room.refuse_too_many(method, roster, roster.world("made", 600_000))

"""What is called private starts from randomness that the server does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.core.method import Keys
from fedrec.deploy.messages.letters import Meet
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.experiment.resolve import resolve

RUN = "run-1"


@pytest.fixture
def node(tmp_path: Path) -> Any:
    def made(repeatable: bool, name: str = "a") -> Node:
        found = Node(NodeOptions(name, tmp_path / f"{name}{repeatable}", hosted="demo", repeatable=repeatable), RUN)
        found.meet(Meet(RUN, resolve("fedavg", {"settings": {"dim": 4}}).model_dump_json(exclude={"data_dir"}), ()))
        return found

    return made


def started(node: Node, keys: Keys) -> Any:
    return node.method.start_clients(node.share.world, node.share.block, keys).users


def test_a_server_that_knows_seed_and_client_keys_cannot_draw_a_node_s_starts(node: Any) -> None:
    here, there = node(False), node(False, "b")
    guessed = started(here, Keys(here.settings.seed, 0))
    own = started(here, here.keys(0))
    assert not np.isclose(own, guessed).any(1).all()
    assert np.abs(np.corrcoef(own.ravel(), guessed.ravel())[0, 1]) < 0.2
    assert not np.array_equal(own, started(there, there.keys(0)))  # another node, another secret


def test_a_node_that_comes_back_draws_the_same_and_keeps_its_secret_to_itself(node: Any) -> None:
    here = node(False)
    own = started(here, here.keys(0))
    assert np.array_equal(own, started(here, Node(here.options, RUN).keys(0)))
    file = here.store.path / "secret.json"
    assert file.stat().st_mode & 0o077 == 0
    assert here.keys(0).secret not in repr(here.keys(0))


def test_a_repeatable_node_draws_as_a_simulation_does(node: Any) -> None:
    here = node(True)
    assert np.array_equal(started(here, here.keys(0)), started(here, Keys(here.settings.seed, 0)))
    assert not (here.store.path / "secret.json").exists()


def test_one_purpose_says_nothing_about_another() -> None:
    """Tickets leave the client: mixed in by a function that can be inverted, they would give the secret away."""
    keys = Keys(0, 1, "secret")
    bases = {keys._base(purpose) for purpose in ("aggregated", "users", "negatives")}
    assert len(bases) == 3
    assert keys._base("users") != Keys(0, 1, "other")._base("users") != Keys(0, 1)._base("users")

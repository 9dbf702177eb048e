"""A server's state and a node's folder belong to one process: a second one would write over the first one's secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedrec.deploy import steps
from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.ports import free_ports
from fedrec.errors import BadInput
from fedrec.runs.alone import alone


def said(line: str) -> None:
    raise AssertionError(line)


def test_a_second_server_leaves_the_first_ones_state_alone(tmp_path: Path) -> None:
    make_server(tmp_path / "keys", ["127.0.0.1"])
    state = tmp_path / "server"
    with (
        alone(state),
        pytest.raises(BadInput, match=re.escape(f"works in {state}; wait for it, or choose another --state")),
    ):
        steps.server(state, tmp_path / "keys", "127.0.0.1", free_ports(1)[0], said)
    assert not list(state.iterdir())


def test_a_second_node_leaves_the_first_ones_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("user,item\n" + "".join(f"u{u},i{u + i}\n" for u in range(4) for i in range(5)))
    ca = make_server(tmp_path / "keys", ["127.0.0.1"])[0]
    key = next(path for path in make_node(tmp_path / "key", "a") if path.suffix != ".pub")
    folder = tmp_path / "node"
    with alone(folder / "flower"), pytest.raises(BadInput, match="choose another --folder"):
        steps.node("a", tmp_path / "own.csv", folder, "127.0.0.1:9", ca, key, None, said)
    assert not list((folder / "flower").iterdir())

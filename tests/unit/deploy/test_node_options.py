"""A node's configuration says its options, and is read back as them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedrec.cli.main import app
from fedrec.deploy import steps
from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.worker import config_of, options_of
from fedrec.deploy.server.rules import Rules
from fedrec.errors import BadInput
from fedrec.runs.settings import RunSettings


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    plain = NodeOptions("a", tmp_path, hosted="demo", part=1, parts=3, memory_mb=7, repeatable=True)
    sums = NodeOptions("b", tmp_path, data="x.csv", members=tmp_path / "m", sums_key=tmp_path / "k", secure_least=4)
    for options in (plain, sums):
        assert options_of(config_of(options)) == options
    assert "data" not in config_of(plain), "what is not there is not written"


def test_an_empty_name_is_none_and_an_empty_number_is_refused() -> None:
    least = {"name": "a", "folder": "f"}
    assert options_of({**least, "data": "", "members": ""}) == NodeOptions("a", Path("f"))
    assert options_of({**least, "part": 0, "secure-colluding": 0}) == NodeOptions("a", Path("f"), secure_colluding=0.0)
    for key in ("secure-least", "min_noise"):
        with pytest.raises(ValueError, match=r"''|convert"):
            options_of({**least, key: ""})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"server_address": "server.example.org"}, "is not HOST:PORT"),
        ({"server_address": "https://server:8000"}, "is not HOST:PORT"),
        ({"server_address": "server:port"}, "is not HOST:PORT"),
        ({"key": "ca.key"}, "is not a node's private key"),
        ({"key": "a.pub"}, "is not a node's private key"),
        ({"folder": "a"}, "choose another --folder"),
    ],
    ids=str,
)
def test_what_a_node_cannot_be_started_with_is_one_line(
    changed: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with exit status 1 and the end of Flower's log."""
    make_server(tmp_path, [])
    make_node(tmp_path, "a")
    monkeypatch.setattr(steps, "apart", lambda work: lambda data: (1, 1))
    given: dict[str, Any] = {"server_address": "[::1]:8000", "key": "a", "folder": "node"} | changed
    given |= {name: tmp_path / given[name] for name in ("key", "folder")}
    with pytest.raises(BadInput, match=said):
        steps.node("a", tmp_path / "a.csv", ca=tmp_path / "ca.crt", port=None, say=print, **given)
    assert not (tmp_path / "node").exists()


@pytest.mark.parametrize("method", ["mf", "ease"])
def test_a_centralised_method_is_not_tried_on_nodes(method: str, tmp_path: Path) -> None:
    """Nodes were started, and waited for."""
    done = CliRunner().invoke(app, ["deploy", "try", method, "--out", str(tmp_path / "t")])
    assert isinstance(done.exception, BadInput)
    assert "centralised" in str(done.exception)
    (tmp_path / "items.txt").write_text("a\nb\n")
    with pytest.raises(BadInput, match="centralised"):
        steps.create_run(RunSettings(method=method), tmp_path / "items.txt", Rules(), tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["items.txt"]

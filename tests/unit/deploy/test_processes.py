"""Processes are looked for where they listen."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from fedrec.deploy import steps
from fedrec.deploy.credentials import make_server
from fedrec.deploy.flower.superlink import Settings
from fedrec.deploy.ports import listening
from fedrec.deploy.processes import Crew
from fedrec.errors import BadInput

LISTENS = """\
import socket, sys, time
held = [socket.create_server((host, int(port))) for host, port in zip(sys.argv[1::2], sys.argv[2::2])]
time.sleep(15)
"""


class Ready(Exception):
    pass


def said(line: str) -> None:
    raise Ready(line)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "0.0.0.0"])
def test_a_server_is_ready_on_the_address_it_was_given(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(crew: Crew, name: str, command: list[str]) -> Any:
        given = Settings.read(Path(command[-1]))
        places = ["127.0.0.1", str(given.port), str(given.public_host), str(given.public_port)]
        return real(crew, name, [sys.executable, "-c", LISTENS, *places])

    real = Crew.start
    monkeypatch.setattr(Crew, "start", start)
    make_server(tmp_path / "keys", [])
    with socket.create_server((host, 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Ready, match=f"server ready on {host}:{port}"):
        steps.server(tmp_path / "server", tmp_path / "keys", host, port, said)


def test_who_listens_on_one_address_does_not_on_another() -> None:
    with socket.create_server(("127.0.0.2", 0)) as one:
        port = one.getsockname()[1]
        assert listening(port, "127.0.0.2")
        assert not listening(port)
    assert not listening(port, "127.0.0.2")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a machine without IPv6")
def test_all_addresses_of_ipv6_are_looked_for_on_its_loopback() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6) as one:
        assert listening(one.getsockname()[1], "::")


@pytest.mark.parametrize("port", [0, -1, 99_999])
def test_a_port_that_is_none_is_said_before_a_server_is_started(port: int, tmp_path: Path) -> None:
    """It was looked for there for five minutes."""
    make_server(tmp_path / "keys", [])
    with pytest.raises(BadInput, match="is not a port"):
        steps.server(tmp_path / "server", tmp_path / "keys", "127.0.0.1", port, said)
    assert not (tmp_path / "server").exists()


def test_a_port_of_somebody_else_is_not_ours(tmp_path: Path) -> None:
    """Whoever listened there was taken for the server, which was called ready."""
    make_server(tmp_path / "keys", [])
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(BadInput, match="cannot listen on"):
        steps.server(tmp_path / "server", tmp_path / "keys", "127.0.0.1", other.getsockname()[1], said)


def test_a_server_whose_folder_is_a_file_is_bad_input(tmp_path: Path) -> None:
    make_server(tmp_path / "keys", [])
    (tmp_path / "server").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    with pytest.raises(BadInput, match="choose another --state"):
        steps.server(tmp_path / "server", tmp_path / "keys", "127.0.0.1", free, said)

"""Compose file and unit files: what they start exists, and their own tools accept them where these are installed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from command_line import Cli

PACKAGING = Path(__file__).parents[3] / "packaging"
UNITS = sorted((PACKAGING / "systemd").glob("*.service"))


def commands() -> list[list[str]]:
    services = yaml.safe_load((PACKAGING / "docker" / "compose.yaml").read_text())["services"]
    found = [shlex.split(service["command"]) for service in services.values()]
    for unit in UNITS:
        line = re.search(r"^ExecStart=\S+/fedrec (.*)$", unit.read_text(), re.M)
        assert line is not None
        found.append(shlex.split(line[1]))
    return found


@pytest.mark.parametrize("command", commands(), ids=lambda c: " ".join(c[:4]))
def test_every_option_that_is_used_exists(command: list[str], fedrec: Cli) -> None:
    shown = fedrec(*command[:2], "--help")
    assert shown.status == 0
    for option in (word for word in command if word.startswith("--")):
        assert option in shown.out


def test_containers_keep_their_kernels_where_they_may_write() -> None:
    """All else is read-only there: nothing could be trained, and a restart compiles what is not in a volume."""
    image = (PACKAGING / "docker" / "Dockerfile").read_text()
    kept = re.search(r"NUMBA_CACHE_DIR=(\S+)", image)
    assert kept is not None
    services = yaml.safe_load((PACKAGING / "docker" / "compose.yaml").read_text())["services"].values()
    assert all(service["read_only"] for service in services)
    for service in services:
        places = [volume.split(":") for volume in service["volumes"]]
        assert any(len(where) == 2 and kept[1].startswith(f"{where[1]}/") for where in places)
    assert "VOLUME /data" in image
    assert "chmod 700 /data" in image  # what lies there is executed


def test_compose_accepts_its_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    done = subprocess.run(
        [docker, "compose", "-f", str(PACKAGING / "docker" / "compose.yaml"), "config", "-q"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_systemd_accepts_its_units(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:  # the program is elsewhere on this machine, and that alone may be said
        text = re.sub(r"^ExecStart=\S+/fedrec", f"ExecStart={shutil.which('true')}", unit.read_text(), flags=re.M)
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(
        [analyse, "verify", *(str(tmp_path / unit.name) for unit in UNITS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "fedrec" not in done.stderr, done.stderr

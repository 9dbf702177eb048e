"""What memory is free: the machine's, or what a container's limit leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedrec.memory import MIB, available_mb, kept_mb, resident_mb


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "meminfo").write_text("MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n")
    return tmp_path


def test_the_machines_free_memory(machine: Path) -> None:
    assert available_mb(machine / "meminfo", machine) == 4096


def test_a_container_has_what_its_limit_leaves(machine: Path) -> None:
    (machine / "memory.max").write_text(f"{1000 * MIB}\n")
    (machine / "memory.current").write_text(f"{700 * MIB}\n")
    (machine / "memory.stat").write_text(f"anon 1\ninactive_file {200 * MIB}\n")
    assert available_mb(machine / "meminfo", machine) == 500  # pages of files go when somebody needs the room
    (machine / "memory.max").write_text("max\n")
    assert available_mb(machine / "meminfo", machine) == 4096


def test_the_first_version_of_control_groups(machine: Path) -> None:
    own = machine / "memory"
    own.mkdir()
    (own / "memory.limit_in_bytes").write_text(f"{1000 * MIB}\n")
    (own / "memory.usage_in_bytes").write_text(f"{1200 * MIB}\n")
    (own / "memory.stat").write_text(f"total_inactive_file {300 * MIB}\n")
    assert available_mb(machine / "meminfo", machine) == 100
    (own / "memory.stat").write_text("\n".join(("total_inactive_file 0", "odd")))
    assert available_mb(machine / "meminfo", machine) == 4096  # not what we know: nothing is said by it


def test_a_system_without_either_is_taken_for_small(tmp_path: Path) -> None:
    assert available_mb(tmp_path / "none", tmp_path) == 4096


def test_more_is_kept_where_much_is_free() -> None:
    assert kept_mb(1024, 100) == 512
    assert kept_mb(64, 32768) == 64
    assert kept_mb(1024) >= 512


def test_a_process_holds_something() -> None:
    if Path("/proc/self/statm").exists():
        assert resident_mb(os.getpid()) > 1
    assert resident_mb(-1) == 0

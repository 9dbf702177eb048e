"""Private state on disk: the same numbers, and memory for a piece of it at a time."""

from __future__ import annotations

import copy
import errno
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.core import disk_array
from fedrec.core.messages import Float32, Private, per_client
from fedrec.core.method import Reply
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.robust.spool import spooled


@dataclass(frozen=True)
class Tables(Private):
    tables: Float32 = per_client()
    networks: dict[str, Float32] = per_client()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_array, "PIECE_BYTES", 1 << 14)


def resident(array: Any) -> int:
    """Bytes of an array on disk that this process holds in memory, as the system counts them."""
    array = np.asarray(array)
    place, found, inside = array.__array_interface__["data"][0], 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            first, last = (int(end, 16) for end in head.split("-"))
            inside = first <= place < last
        elif inside and head == "Rss:":
            found = int(line.split()[1]) * 1024
    return found


def test_filled_and_copied_piece_by_piece(tmp_path: Path) -> None:
    array = disk_array.on_disk((100, 64, 8), np.float32, tmp_path)
    table = np.arange(512, dtype=np.float32).reshape(64, 8)
    disk_array.fill(array, table)
    array[7] += 1
    twin = copy.deepcopy(array)
    array[8] -= 1
    wanted = np.tile(table, (100, 1, 1))
    wanted[7] += 1
    np.testing.assert_array_equal(twin, wanted)
    wanted[8] -= 1
    np.testing.assert_array_equal(array, wanted)
    assert not list(tmp_path.iterdir())  # files without a name


@pytest.mark.skipif(not Path("/proc/self/smaps").exists() or not hasattr(mmap, "MADV_DONTNEED"), reason="Linux alone")
def test_a_copy_takes_disk_and_not_memory(tmp_path: Path) -> None:
    array = disk_array.on_disk((256, 1024, 8), np.float32, tmp_path)  # 8 MiB
    disk_array.fill(array, 1.0)
    assert resident(array) < 1 << 20
    twin = copy.deepcopy(array)
    assert resident(array) < 1 << 20
    assert resident(twin) < 1 << 20
    assert float(np.asarray(array).sum()) == array.size
    assert resident(array) > 4 << 20  # read as a whole
    disk_array.forget_fields(Tables(array, {"w": np.ones(3, np.float32)}))
    assert resident(array) < 1 << 20
    assert float(np.asarray(twin).sum()) == twin.size


@pytest.mark.parametrize("rows", [None, np.array([5, 2, 77])])
def test_columns_are_read_and_written_as_those_of_an_array(rows: Any, tmp_path: Path) -> None:
    plain = np.arange(100 * 64 * 8, dtype=np.float32).reshape(100, 64, 8)
    array = disk_array.copied(plain, disk_array.Budget(0, str(tmp_path)))
    assert isinstance(array, disk_array.DiskArray)
    assert not isinstance(disk_array.copied(plain, disk_array.Budget(1)), disk_array.DiskArray)
    place = slice(3, 9)
    found = disk_array.columns(array, place, rows)
    np.testing.assert_array_equal(found, disk_array.columns(plain, place, rows))
    for one in (plain, array):
        disk_array.put_columns(one, place, rows, -found)
    np.testing.assert_array_equal(array, plain)
    assert (plain[2, place] <= 0).all()


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("feddae", "private"),
        ("fed3cr", "private"),
        ("fediar", "private"),
        ("pfedgraph", "tables"),
        ("gpfedrec", "tables"),
    ],
)
def test_a_run_on_disk_is_the_run_in_memory(method: str, kind: str, tmp_path: Path) -> None:
    found = []
    for more in ({}, {f"{kind}_budget_mb": 0, f"{kind}_dir": str(tmp_path)}):
        given = {"data": "demo", "rounds": 2, "memory_mb": 16, "settings": {"dim": 4, "epochs": 1, **more}}
        prepared = prepare(resolve(method, given))  # memory for a few clients at a time
        runtime = prepared.runtime
        everybody = np.arange(prepared.people.world.n_clients)
        for number in (1, 2):
            runtime.round(number, everybody, everybody, False)
        found.append(runtime.scores(everybody[:9]))
    np.testing.assert_array_equal(*found)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="not on macOS and Windows")
def test_room_that_will_be_written_is_taken_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    really = os.posix_fallocate

    def counted(file: int, first: int, size: int) -> None:
        really(file, first, size)
        taken.append(os.fstat(file).st_blocks * 512)

    monkeypatch.setattr(os, "posix_fallocate", counted)
    array = disk_array.on_disk((64, 64, 64), np.float32, tmp_path)
    assert not taken  # a table of which few rows are ever written takes room for those alone
    copy.deepcopy(array)
    spooled([Reply(np.arange(2), Tables(np.ones((2, 64, 8), np.float32), {}))], 0)
    assert taken[0] >= 64**3 * 4
    assert len(taken) == 2


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="not on macOS and Windows")
def test_a_full_disk_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, first: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def unable(file: int, first: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(BadInput, match=r"12 MB do not fit into .* MB are free; set TMPDIR"):
        disk_array.on_disk((1000, 1000, 3), np.float32, tmp_path, reserve=True)
    monkeypatch.setattr(os, "posix_fallocate", unable)
    assert disk_array.on_disk((3, 2), np.float32, tmp_path, reserve=True).shape == (3, 2)

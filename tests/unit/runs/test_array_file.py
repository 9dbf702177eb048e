"""Arrays as a safetensors file, written a piece at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from fedrec.core import disk_array
from fedrec.runs.array_file import KINDS, write_arrays


def test_the_librarys_own_reader_reads_every_kind_and_shape(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    arrays = {f"kind {kind}": (draw.random((3, 5)) * 2).astype(kind) for kind in KINDS}
    arrays |= {
        "one number": np.array(7.5),
        "none": np.zeros((0, 4), np.float32),
        "no columns": np.zeros((4, 0), np.int64),
        "turned": draw.random((4, 6)).T,
        "every other": draw.random(20)[::2],
        "other end first": np.arange(5, dtype=">f8"),
        'a "name"\n': np.arange(3, dtype=np.uint8),
    }
    write_arrays(tmp_path / "a", arrays, {"words": 'so "and" so'})
    found = load_file(tmp_path / "a")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
        assert found[name].dtype == array.dtype.newbyteorder("="), name
    with safe_open(tmp_path / "a", framework="numpy") as file:
        assert file.metadata() == {"words": 'so "and" so'}


def test_of_an_array_on_disk_a_piece_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_array, "PIECE_BYTES", 64)
    array = disk_array.on_disk((10, 4), np.float32, tmp_path)
    array[:] = np.arange(40).reshape(10, 4)
    forgotten: list[object] = []
    monkeypatch.setattr("fedrec.runs.array_file.forget", forgotten.append)
    write_arrays(tmp_path / "a", {"x": array}, {})
    assert len(forgotten) == 3  # ten rows of 16 bytes, four at a time
    np.testing.assert_array_equal(load_file(tmp_path / "a")["x"], array)

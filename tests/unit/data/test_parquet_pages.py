"""A Parquet file is believed in nothing that it says of its size; the headers of its pages are what counts."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fedrec.core.state import BadState
from fedrec.data import limits
from fedrec.data.compact import BadStruct
from fedrec.data.compact import struct as compact_struct
from fedrec.data.parquet_pages import pages_of
from fedrec.data.readers import parquet_table
from fedrec.errors import BadInput
from fedrec.runs.users_table import read_users


def varint(value: int, length: int = 0) -> bytes:
    """A number as Thrift writes it, made as long as another is."""
    value, found = value << 1, bytearray()
    while value >= 128 or len(found) + 1 < length:
        found.append((value & 127) | 128)
        value >>= 7
    return bytes([*found, value])


def belittled(path: Path) -> Path:
    """The same file, whose footer says that nothing in it is large."""
    data, meta = path.read_bytes(), parquet.read_metadata(path)
    length = struct.unpack("<I", data[-8:-4])[0]
    footer, sizes = data[-8 - length : -8], set[int]()
    for number in range(meta.num_row_groups):
        group = meta.row_group(number)
        sizes |= {group.total_byte_size, *(group.column(n).total_uncompressed_size for n in range(group.num_columns))}
    for size in sorted(sizes, reverse=True):
        if size > 1 << 20:
            footer = footer.replace(varint(size), varint(1_000, len(varint(size))))
    path.write_bytes(data[: -8 - length] + footer + data[-8:])
    return path


def bomb(path: Path, **more: Any) -> Path:
    """A few KB that unpack to 90 MB of ids."""
    ids = pa.array([f"{'a' * 30_000_000}{n}" for n in range(3)])
    table = pa.table({"user": ids, **more})
    kinds: dict[str, Any] = {"use_dictionary": ["user"], "dictionary_pagesize_limit": 1 << 30}
    parquet.write_table(table, path, compression="zstd", write_statistics=False, store_schema=False, **kinds)
    assert path.stat().st_size < 1 << 16
    assert parquet.read_metadata(belittled(path)).row_group(0).total_byte_size < 1 << 20
    return path


def test_users_whose_footer_lies_are_refused_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bomb(tmp_path / "users.parquet", m=np.zeros(3))
    monkeypatch.setattr(parquet.ParquetFile, "read", never)
    with pytest.raises(BadState, match="holds more than 64 MiB"):
        read_users(path)


def test_data_whose_footer_lies_is_refused_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bomb(tmp_path / "data.parquet", item=["1", "2", "3"])
    monkeypatch.setattr(parquet.ParquetFile, "read", never)
    with pytest.raises(BadInput, match="holds more than 64 MiB"):
        parquet_table.read(path)


def never(*_: object, **__: object) -> None:
    raise AssertionError("the file is read")


@pytest.mark.parametrize("size", [10, 90_000_000 - 1])
def test_a_page_takes_no_more_than_its_header_says(tmp_path: Path, size: int) -> None:
    """What this rests on: pyarrow gives a page the room that its header asks for, and no more."""
    path = bomb(tmp_path / "users.parquet", m=np.zeros(3))
    data = path.read_bytes()
    real = 3 * (30_000_000 + 1 + 4)
    assert data[:200].count(varint(real)) == 1
    path.write_bytes(data.replace(varint(real), varint(size, len(varint(real))), 1))
    with parquet.ParquetFile(path) as file:
        assert pages_of(path, file.schema, ["user"]).size < size + 5_000  # packed bytes count too
        with pytest.raises((OSError, pa.ArrowException)):
            file.read()


@pytest.mark.parametrize(
    ("version", "packed", "dictionary"), [*itertools.product(["1.0", "2.0"], ["none", "gzip", "zstd"], [True, False])]
)
def test_the_pages_of_sound_files_add_up(tmp_path: Path, version: Any, packed: str, dictionary: bool) -> None:
    path, rng = tmp_path / "data.parquet", np.random.default_rng(0)
    table = pa.table({"user": rng.integers(0, 500, 50_000).astype(str), "item.id": rng.integers(0, 1 << 40, 50_000)})
    more: dict[str, Any] = {"data_page_size": 1 << 12, "row_group_size": 20_000, "write_page_checksum": True}
    parquet.write_table(table, path, compression=packed, use_dictionary=dictionary, data_page_version=version, **more)
    meta = parquet.read_metadata(path)
    groups = [meta.row_group(number) for number in range(meta.num_row_groups)]
    whole = pages_of(path, meta.schema).size
    said = sum(group.total_byte_size for group in groups)  # with headers
    assert 0.95 * said < whole <= said or packed != "none"
    assert whole <= said
    parts = [pages_of(path, meta.schema, [name]).size for name in ("user", "item", "item.id")]
    assert parts[1] == parts[2]  # as pyarrow takes a name with a dot for a part of another
    assert parts[0] + parts[1] == whole


def test_differences_of_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pa.table({"user": ["a", "b"], "item": [1, 2]})
    parquet.write_table(table, path, use_dictionary=False, column_encoding={"user": "DELTA_BYTE_ARRAY"})
    with pytest.raises(BadInput, match="the column 'user' is stored as differences of texts"):
        parquet_table.read(path)


def test_damaged_headers_are_refused_or_read_alike(tmp_path: Path) -> None:
    """Whatever the bytes at the beginning of a page are, it is one line or the pages' sizes."""
    path, rng = tmp_path / "data.parquet", np.random.default_rng(0)
    parquet.write_table(pa.table({"user": ["a", "b"] * 50, "item": list(range(100))}), path)
    sound = path.read_bytes()
    meta = parquet.read_metadata(path)
    refused = 0
    for _ in range(2_000):
        data = bytearray(sound)
        data[int(rng.integers(4, 40))] = int(rng.integers(256))
        path.write_bytes(data)
        try:
            assert pages_of(path, meta.schema).size < 1 << 33
        except BadStruct:
            refused += 1
    assert refused > 200
    path.write_bytes(sound[:4] + b"\x1c" * 400 + sound[404:])
    with pytest.raises(BadInput, match=r"cannot read .*data\.parquet: a part of its description"):
        parquet_table.read(path)


def test_a_person_may_raise_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "200M")
    with pytest.raises(BadInput, match="longer than"):  # it is read, and its ids are refused
        parquet_table.read(bomb(tmp_path / "data.parquet", item=["1", "2", "3"]))


@pytest.mark.parametrize("nested", [b"\x19" * 5000, b"\x1c" * 5000])  # lists of a list, structs of a struct
def test_a_description_that_is_nested_without_end(nested: bytes) -> None:
    with pytest.raises(BadStruct, match="nested too deep"):
        compact_struct(nested)

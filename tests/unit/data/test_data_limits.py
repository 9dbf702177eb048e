"""Small files that ask for much: refused with one line before memory is taken."""

from __future__ import annotations

import gzip
import os
import stat
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from fedrec.data import limits
from fedrec.data.describe import describe
from fedrec.data.load import load
from fedrec.errors import BadInput

Write = Callable[..., Path]
LONG_REVIEW = f'{{"user_id":"{"u" * 999}","business_id":"b","stars":1,"date":"2018-01-01"}}'
GOOD = "user,item\na,x\nb,y\n"


def refused(path: Path) -> str:
    """The line with which a path is refused."""
    with pytest.raises(BadInput) as caught:
        describe(load(str(path)))
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) <= 300
    return said


def test_a_packed_file_that_unpacks_to_far_more_is_stopped_on_the_way(tmp_path: Path) -> None:
    bomb = tmp_path / "a.csv.gz"
    with gzip.open(bomb, "wb", 1) as out:
        out.write(GOOD.encode())
        for _ in range(300):
            out.write(b"a,x\n" * (1 << 18))
    assert bomb.stat().st_size < 3 << 20
    tracemalloc.start()
    try:
        assert "a.csv.gz holds more than" in refused(bomb)
        assert tracemalloc.get_traced_memory()[1] < 3 * limits.unpacked(bomb.stat().st_size)
    finally:
        tracemalloc.stop()
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed, packed.open("a.csv", "w") as inside:
        for _ in range(100):
            inside.write(b"a,x\n" * (1 << 18))
    assert f"raise the limit with {limits.VARIABLE}" in refused(tmp_path / "a.zip")


def test_the_limit_is_a_persons_to_set(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a.csv", GOOD * 40)
    monkeypatch.setenv(limits.VARIABLE, "100")
    assert "holds more than 100 bytes" in refused(path)
    monkeypatch.setenv(limits.VARIABLE, "1K")
    assert len(load(str(path))) == 2
    for text in ("many", "-1", "0", "1e9", "5X"):
        monkeypatch.setenv(limits.VARIABLE, text)
        assert "is not a size" in refused(path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", f"user,item\na,x\n{'x' * 100_000},y\n", "line 3: the user id is longer than 256 characters"),
        ("a.csv", f"user,item\n1,2\n2,{'9' * 5000}\n", "line 3: the item id is longer than 256 characters"),
        ("a.csv", f"user,item,client\na,x,{'c' * 300}\n", "line 2: the client id is longer than 256 characters"),
        ("a.txt", f"1 2 3 4 5 6 7\n2 {'9' * 5000}\n", "line 2: the item id is longer"),
        ("review.json", LONG_REVIEW, "line 1: the user id is longer"),
        ("a.csv", f"user,item,note\na,x,{'n' * (1 << 20)}\n", "line 2: longer than 1 MiB"),
        ("s.txt", "1 2 3 4 5 6 7\n2" + " 3" * (1 << 23), "line 2: longer than 16 MiB"),
        ("review.json", "{" * (1 << 21), "line 1: longer than 1 MiB"),
        ("review.json", "[" * 100_000, "line 1: not JSON"),
        ("review.json", '{"user_id":1,"stars":' + "9" * 5000 + "}", "line 1: not JSON"),
        ("a.csv", " " * (1 << 21) + GOOD, "begins with more than 1 MiB of white space"),
        ("a.csv", "user,item" + ",c" * 2000 + "\n", "has 2002 columns; at most 1024"),
        ("a.csv", "user,item\na,x\nb\0,y\n", "line 3: a NUL byte"),
        ("u.data", "1\t2\t3\t4\n\x00\t2\t3\t4\n", "line 2: a NUL byte"),
        ("ratings.dat", "1::2::3::4\n1\x1f::2::3::4\n", "line 2: a control character"),
        ("a.csv", 'user,item\n"a,x\n' + "b,y\n" * 40_000, "is a quote left open?"),
        ("a.csv", "user,item\n" + "a,x\n" * 500 + '"a,x\n' + "b,y\n" * 400, "line 902: 1 columns where 2"),
        ("a.csv", "user,item\n" + "a,x\n" * 500 + 'a,"x\nb,y"\n', "line 503: a line end in the item id"),
        ("a.csv", "user,item,time\na,x,1e300\n", "line 2: time '1e300' is neither"),
        ("a.csv", "\x1c\n\x1d \x1e\n", "a.csv"),
        ("a.csv", "\x85", "a.csv"),
        ("a.csv", GOOD.encode("utf-16-le").decode("latin-1"), "line 1: a NUL byte; this is no text, or UTF-16"),
    ],
)  # fmt: skip
def test_too_much_of_something(write: Write, name: str, text: str, said: str) -> None:
    assert said in refused(write(name, text))


def test_a_head_of_white_space_is_passed_over(write: Write) -> None:
    assert len(load(str(write("a.csv", "\n" * 70_000 + GOOD)))) == 2


def test_one_long_id_among_many_is_refused_before_all_become_as_wide(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ID_TABLE", 1 << 16)
    lines = "".join(f"{user},1\n" for user in range(2000))
    said = refused(write("a.csv", f"user,item\n{lines}{'7' * 200},1\n"))
    assert "line 2002: a user id of 200 characters where 2001 others have 4 on average" in said
    even = "".join(f"{user:0200d},1\n" for user in range(2000))
    assert load(str(write("b.csv", f"user,item\n{even}"))).n_users == 2000


@pytest.mark.parametrize(
    ("inside", "mode", "said"),
    [
        ("../a.csv", 0o100644, "names a file outside itself"),
        ("/etc/a.csv", 0o100644, "names a file outside itself"),
        ("..\\a.csv", 0o100644, "names a file outside itself"),
        ("C:\\a.csv", 0o100644, "names a file outside itself"),
        ("a.csv", stat.S_IFLNK | 0o777, "holds a link"),
    ],
)
def test_archives_that_reach_outside(tmp_path: Path, inside: str, mode: int, said: str) -> None:
    entry = zipfile.ZipInfo(inside)
    entry.external_attr = mode << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(entry, GOOD)
    assert said in refused(tmp_path / "a.zip")


def test_archives_with_one_file_or_several(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("data/", "")
        packed.writestr("data/a.csv", GOOD)
        packed.writestr("__MACOSX/data/._a.csv", "x")
    assert len(load(str(tmp_path / "a.zip"))) == 2
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as packed:
        packed.writestr("b.csv", GOOD)
    assert "holds 2 files (a.csv, b.csv)" in refused(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        packed.writestr("2019/a.csv", GOOD)
        packed.writestr("2020/a.csv", GOOD)
    assert "holds 2 files (2019/a.csv, 2020/a.csv)" in refused(tmp_path / "b.zip")
    whole = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(whole[:-9])
    assert "cannot read" in refused(tmp_path / "a.zip")


def test_something_that_is_no_file_does_not_hang(tmp_path: Path) -> None:
    for name in ("a.csv", "a.csv.gz", "a.parquet", "review.json"):
        os.mkfifo(tmp_path / name)
        assert "not a plain file" in refused(tmp_path / name)
    assert "cannot read" in refused(tmp_path / ("x" * 300))


def test_text_in_other_encodings(write: Write) -> None:
    windows = load(str(write("a.csv", "user,item\nJos\xe9,\x80\n".encode("latin-1"))))
    assert windows.user_ids.tolist() == ["José"]
    assert windows.item_ids.tolist() == ["€"]
    assert "a.csv is not UTF-8: read as cp1252" in windows.notes
    for name in ("utf-16", "utf-32", "utf-8-sig"):
        assert load(str(write("b.csv", "user,item\nJosé,x\n", name))).user_ids.tolist() == ["José"]
    mixed = "user,item\nJosé,x\n".encode() + b"Ren\xe9,y\n"
    assert "line 3: not utf-8 text: two encodings in one file, or another" in refused(write("c.csv", mixed))
    assert "line 2: neither utf-8 text nor cp1252" in refused(write("d.csv", b"user,item\n\x81,y\n"))
    assert "begins like utf-16 but is not" in refused(write("e.csv", b"\xff\xfeuser,item\n\x00\xd8"))
    assert len(load(str(write("f.csv", GOOD.replace("\n", "\r"))))) == 2


# -- Parquet ----------------------------------------------------------------------------------------


def test_parquet_damaged_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"user": ["a", "b"] * 20, "item": ["x", "y", "z", "w"] * 10}), path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at])
        refused(path)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            load(str(path))
        except BadInput as bad:
            assert len(str(bad)) <= 300  # noqa: PT017


def test_parquet_that_says_one_long_text_many_times(tmp_path: Path) -> None:
    long = pa.array(["x" * 100_000]).dictionary_encode().dictionary
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), long)
    parquet.write_table(pa.table({"user": column, "item": pa.array(range(100_000))}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 2 << 20
    assert "longer than 1024 bytes; ids have at most 256 characters" in refused(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", ["binary", "fixed", "list"])
def test_parquet_that_says_long_bytes_many_times(tmp_path: Path, kind: str) -> None:
    """Text without a name for its kind, and cells that hold several: written out, it is ten gigabytes."""
    one = pa.array([b"x" * 100_000], pa.binary(100_000 if kind == "fixed" else -1))
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), one).cast(one.type)
    if kind == "list":
        column = pa.ListArray.from_arrays(pa.array(range(1_001), pa.int32()), column)
    schema = pa.schema([("user", column.type), ("item", pa.int64())])
    with parquet.ParquetWriter(tmp_path / "a.parquet", schema) as out:
        for part in range(100):
            out.write_table(pa.table([column, pa.array(range(part, part + 1_000))], schema=schema))
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    assert (tmp_path / "a.parquet").stat().st_size < 20 << 20
    highest = pool.max_memory()
    said = refused(tmp_path / "a.parquet")
    assert {"binary": "longer than 1024 bytes", "fixed": "holds more than", "list": "of type list"}[kind] in said
    assert pool.max_memory() - max(highest, before) < 500 << 20


def test_parquet_of_very_many_equal_rows(tmp_path: Path) -> None:
    ones = pa.array([1] * 5_000_000, pa.int8())
    parquet.write_table(pa.table({"user": ones, "item": ones}), tmp_path / "a.parquet")
    assert "holds more than 64 MiB" in refused(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "columns",
    [
        {"user": ["a\0", "a"], "item": ["x", "y"]},
        {"user": [1.0, float("nan")], "item": ["x", "y"]},
        {"user": [1e300, 1.0], "item": ["x", "y"]},
        {"user": [b"\xff", b"a"], "item": ["x", "y"]},
        {"user": ["a", "b"], "item": ["x", "y"], "rating": [[1], [2]]},
        {"user": ["a", "b"], "item": ["x", "y"], "time": [[1], [2]]},
        {"user": ["a", "b"], "item": ["x", "y"], "time": pa.array([2**63, 1], pa.uint64())},
        {"user": ["a", "b"], "item": ["x", "y"], "time": pa.array([1, 2], pa.duration("s"))},
        {"user": pa.nulls(2), "item": ["x", "y"]},
        {"user": [{"a": 1}, {"a": 2}], "item": ["x", "y"]},
    ],
)
def test_parquet_with_odd_columns(tmp_path: Path, columns: dict[str, object]) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert "a.parquet" in refused(tmp_path / "a.parquet")


def test_parquet_with_two_columns_of_one_name(tmp_path: Path) -> None:
    two = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"]), pa.array(["x"])], names=["user", "user", "item"])
    parquet.write_table(two, tmp_path / "a.parquet")
    assert "several columns called 'user'" in refused(tmp_path / "a.parquet")


# -- what is said -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "user,item\nSECRET,x\nSECRET\n",
        "user,item\n1,x\n2,x\n3,x\nSECRET,x\n",
        "user,item,client\nSECRET,x,n\nSECRET,y,s\n",
        "user,item,rating\nSECRET,x,good\n",
        "SECRET 1 2 3 4 5\nSECRET\nSECRET\n",
        "SECRET 1 2 3 4 5\nx 1\nSECRET 2 3\ny 1 2 3 4 5 6\n",
    ],
)
def test_no_user_id_is_said(write: Write, text: str) -> None:
    path = write("a.csv" if "," in text else "s.txt", text)
    assert "SECRET" not in refused(path).replace(str(path), "")


def test_a_long_path_does_not_make_a_long_line(write: Write) -> None:
    said = refused(write("/".join(["folder" * 20] * 6) + "/a.csv", "user,item\na,x\nb\n"))
    assert said.endswith("a.csv line 3: 1 columns where 2 are expected")


def test_times_at_the_ends_of_the_range_are_described(write: Write) -> None:
    for text in ("9223372036854775807", "-9223372036854775808", "253402300800000000", "1"):
        times = f"user,item,time\na,x,{text}\na,y,881250949\n"
        try:
            describe(load(str(write("a.csv", times))))
        except BadInput as bad:
            assert "time" in str(bad)  # noqa: PT017

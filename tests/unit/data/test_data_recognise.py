"""What kind of file a person gave: tables, sequences, '::', packings and folders told apart by what they hold."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from data_files import Write, refused
from fedrec.data.describe import said_of
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from there import there


def pairs(data: Interactions) -> set[tuple[str, str]]:
    """User id and item id of each row."""
    return set(zip(data.user_ids[data.users].tolist(), data.item_ids[data.items].tolist(), strict=True))


TITLES = ("Blade Runner", "Toy Story", "Alien", "The Lord of the Rings", "Star Wars Episode IV", "Die Hard")
"""Words that made each line of a table look like a line of a sequence file."""


@pytest.mark.parametrize("mark", ["|", "\t"])
@pytest.mark.parametrize("header", ["user_id{}item_id{}movie title", "User ID{}Item ID{}Title"])
def test_a_table_with_titles_is_no_sequence_file(write: Write, mark: str, header: str) -> None:
    rows = "".join(f"u{n}{mark}i{n % 3}{mark}{title}\n" for n, title in enumerate(TITLES))
    data = load(write("films.txt", header.format(mark, mark) + "\n" + rows))
    assert pairs(data) == {(f"u{n}", f"i{n % 3}") for n in range(6)}
    assert data.titles is not None


@pytest.mark.parametrize("header", ["user_id\titem_id\trating\ttimestamp\tcountry\tdevice", "wer\twas\ta\tb\tc\td"])
def test_a_log_with_six_columns_is_no_sequence_file(write: Write, header: str) -> None:
    rows = "".join(f"u{n}\ti{n % 5}\t{n % 4 + 1}\t{1_600_000_000 + n}\tDE\tphone\n" for n in range(60))
    path = write("log.tsv", f"{header}\n{rows}")
    names = None if header.startswith("user") else "user=wer,item=was"
    data = load(path, columns=names)
    assert (data.n_users, data.n_items) == (60, 5)
    torn = write("torn.tsv", f"{header}\n{rows}u7\ti3\n")
    if names:
        assert "log.tsv has 6 columns and no header" in (line := refused(path))
        assert "if line 1 is a header, say which columns are which with --columns user=NAME,item=NAME" in line
    else:
        assert "line 62: 2 columns where 6 are expected" in refused(torn)


@pytest.mark.parametrize("text", ["wer|was\nu1|Toy Story\nu2|Alien\n", "wer\twas\nu1\tToy Story 2\nu2\tAlien\n"])
def test_columns_can_be_named_whatever_the_titles_look_like(write: Write, text: str) -> None:
    assert load(write("a.txt", text), columns="user=WER,item=WAS").n_users == 2


@pytest.mark.parametrize(
    "text",
    [
        "u1 i1 i2 i3 i4 i5\nu2 i3\nu3 i1 i2\n",
        "u1\ti1\ti2\ti3\ti4\ti5\nu2\ti3\nu3\ti1\ti2\n",
        "u1\ti1 i2 i3 i4 i5\nu2\ti3\nu3\ti1 i2\n",
        "u1 i1 i2 i3 i4 i5 i6\nu2 i3 i1 i2 i6 i4 i5\n",
    ],
)
def test_sequence_files_are_still_read(write: Write, text: str) -> None:
    data = load(write("s.txt", text))
    assert pairs(data) >= {("u1", "i1"), ("u1", "i5"), ("u2", "i3")}
    assert "no times; the order of items in a line is taken as their order in time" in said_of(data)


TABLE = b"user,item\na,x\nb,y\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("A.PARQUET", "parquet"),
        ("a.Pq", "parquet"),
        ("a.bin", "parquet"),
        ("a.csv", "gzip"),
        ("A.CSV.GZ", "gzip"),
        ("a.csv.gz", "zip"),
        ("a.csv", "zip"),
    ],
)
def test_what_a_file_is_does_not_hang_on_its_name(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "parquet":
        parquet.write_table(pa.table({"user": ["a", "b"], "item": ["x", "y"]}), path)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(TABLE))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", TABLE)
    assert pairs(load(path)) == {("a", "x"), ("b", "y")}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv.bz2", bz2.compress(TABLE), "a.csv.bz2 is packed with bzip2, which is not read; unpack it, or pack it"),
        ("a.csv", lzma.compress(TABLE), "a.csv is packed with xz, which is not read"),
        ("a.csv.zst", b"\x28\xb5\x2f\xfd\x20\x00", "is packed with zstd"),
        ("a.xlsx", b"PK\x03\x04\x00", "a.xlsx is a spreadsheet; save the sheet as CSV"),
        ("a.gz", gzip.compress(b"PAR1" + bytes(8) + b"PAR1"), "a.gz is a packed Parquet file; unpack it"),
    ],
    ids=["bzip2", "xz", "zstd", "spreadsheet", "parquet"],
)
def test_what_is_not_read_is_called_by_its_name(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert said in refused(tmp_path / name)


def test_a_word_that_begins_as_a_packing_is_a_word(write: Write) -> None:
    assert pairs(load(write("a.csv", "PAR1,BZh9\nPK,7z\n"))) == {("PAR1", "BZh9"), ("PK", "7z")}


def test_names_in_capitals(write: Write, tmp_path: Path) -> None:
    split = {"train": "a,x\n", "VALID": "a,y\n", "Test": "a,z\n"}
    for part, rows in split.items():
        write(f"split/{part}.CSV", f"user,item\n{rows}")
    assert there(load(tmp_path / "split").part).tolist() == [0, 1, 2]
    write("split/train.csv", "user,item\na,x\n")
    assert "several files for 'train': train.CSV, train.csv" in refused(tmp_path / "split")


@pytest.mark.parametrize("text", ["user,item", "user,item\r\n", "user,item\n\n", "\n\nuser,item"])
def test_a_header_alone_has_no_rows(write: Write, text: str) -> None:
    assert refused(write("a.csv", text)).endswith("a.csv has a header and no rows; it needs at least one interaction")


def folder_of(folder: Path, *names: str) -> Path:
    """A folder with a table of one user in each file; of text the user is 'wrong'."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() in (".parquet", ".pq"):
            parquet.write_table(pa.table({"user": ["right"], "item": [name]}), path)
        else:
            path.write_text("user,item\nwrong,x\n")
    return folder


@pytest.mark.parametrize(
    "beside",
    [
        ["readme.txt"],
        ["README.dat", "LICENSE.txt", "licence.csv", "notes.md", "_SUCCESS.txt", "._a.csv", "_metadata", "part.crc"],
    ],
)
def test_what_stands_beside_parts_is_not_read(tmp_path: Path, beside: list[str]) -> None:
    data = load(folder_of(tmp_path / "d", "a.parquet", "b.parquet", *beside))
    assert pairs(data) == {("right", "a.parquet"), ("right", "b.parquet")}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.parquet", "b.parquet", "schema.csv"], "holds a.parquet, b.parquet, schema.csv; name one file"),
        (["backup.parquet", "ratings.csv"], "holds backup.parquet, ratings.csv; name one file"),
        (["backup.parquet", "u.data", "u.item"], "holds backup.parquet, u.data; name one file"),
        (["a.inter", "b.inter", "c.csv"], "holds a.inter, b.inter, c.csv; name one file"),
        (["a.csv", "b.CSV"], "holds a.csv, b.CSV; name one file"),
        (["readme.txt"], "holds no data file"),
    ],
)
def test_a_folder_with_several_tables_is_refused(tmp_path: Path, names: list[str], said: str) -> None:
    assert said in refused(folder_of(tmp_path / "d", *names))


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["RATINGS.CSV", "other.csv"], "RATINGS"),
        (["MINE.TSV", "readme.txt"], "MINE"),
        (["a.parquet"], "a"),
        (["A.PARQUET", "b.pq"], "d"),
    ],
)
def test_the_table_of_a_folder(tmp_path: Path, names: list[str], read: str) -> None:
    assert there(load(folder_of(tmp_path / "d", *names)).understood).source.endswith((f"/{read}", *names[:1]))


def test_published_files_are_found_among_others(write: Write, tmp_path: Path) -> None:
    write("d/u.data", "1\t5\t3\t10\n")
    for name in ("u.item", "u.info", "u1.base", "README", "ua.test", "notes.txt"):
        write(f"d/{name}", "5|Five\n")
    assert pairs(load(tmp_path / "d")) == {("1", "5")}


@pytest.mark.parametrize(
    "text",
    [
        "user::item::rating::timestamp\na::x::5::10\nb::y::3::11\n",
        "a::x\nb::y\n",
        "a::x::2,5\nb::y::3,5\n",
        "a::x::2::10\nb::y::3::11\n",
        "when::item::user\n10::x::a\n11::y::b\n",
    ],
)
def test_two_colons_between_cells(write: Write, text: str) -> None:
    """Only MovieLens' own form was read, and the refusal asked for a header or --columns, which were refused."""
    assert pairs(load(write("a.dat", text))) == {("a", "x"), ("b", "y")}
    assert pairs(load(write("ratings.dat", "1::2::3::4\n1::3::3::4\n"))) == {("1", "2"), ("1", "3")}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_two_colons_inside_ids(write: Write, mark: str) -> None:
    rows = "".join(f"urn::{user}{mark}{item}{mark}2\n" for user, item in [("a", "b"), ("c", "d"), ("e", "f")])
    expected = {("urn::a", "b"), ("urn::c", "d"), ("urn::e", "f")}
    assert pairs(load(write("a.csv", rows))) == expected
    assert pairs(load(write("b.csv", f"user{mark}item{mark}rating\n{rows}"))) == expected


def test_columns_of_a_ready_split_can_be_named(write: Write, tmp_path: Path) -> None:
    for part, item in [("train", "x"), ("valid", "y"), ("test", "z")]:
        write(f"d/{part}.csv", f"who,what\na,{item}\nb,{item}\n")
    data = load(tmp_path / "d", columns="user=who,item=what")
    assert pairs(data) == {(user, item) for user in "ab" for item in "xyz"}
    assert there(data.part).tolist() == [0, 1, 2] * 2


def test_texts_behind_a_tab_that_may_be_titles_or_lists_are_refused(write: Write) -> None:
    """Lists of items whose ids are words were read as one item a user."""
    lists = "u1\tthe-matrix heat\nu2\theat alien toy-story\nu3\talien the-matrix\n"
    assert "may be titles, or a user's items" in refused(write("slugs.tsv", lists))
    assert load(write("blanks.txt", lists.replace("\t", " "))).n_items == 4
    assert pairs(load(write("named.tsv", "user\titem\n" + lists))) >= {("u1", "the-matrix heat")}
    titles = "u1\tBlade Runner\nu2\tToy Story\nu3\tBlade Runner\nu3\tAlien\n"
    assert load(write("titles.tsv", titles)).n_items == 3


def test_a_split_may_be_called_pq(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        table = pa.table({"user": ["a", "b"], "item": [f"{part}1", f"{part}2"]})
        parquet.write_table(table, tmp_path / f"{part}.pq")
    assert load(str(tmp_path)).part is not None


def test_three_columns_may_be_called_as_movielens_calls_four(write: Write) -> None:
    assert load(write("ratings.dat", "1::2::5\n2::3::4\n")).n_users == 2


def test_many_cells_without_a_header_are_told_what_a_list_looks_like(write: Write) -> None:
    rows = "".join(f"u{user}\t" + "\t".join(f"i{user + n}" for n in range(6)) + "\n" for user in range(9))
    assert "of one line per user, put blanks between its items" in refused(write("equal.tsv", rows))

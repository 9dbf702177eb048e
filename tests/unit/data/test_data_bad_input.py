"""Bad files: one line that names the file, the line and what would be right."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from data_files import Write
from fedrec.data import readers
from fedrec.data.assemble import assemble
from fedrec.data.readers.folders import only_table
from fedrec.errors import BadInput


def refused(path: Path) -> str:
    """The message with which a path is refused."""
    with pytest.raises(BadInput) as caught:
        assemble(readers.read(path), "x")
    assert "\n" not in str(caught.value)
    return str(caught.value)


GOOD_REVIEW = '{"user_id":"u","business_id":"b","stars":1,"date":"2018-01-01"}\n'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "user,item\n1,2\n3\n4,5\n", "line 3: 1 columns where 2 are expected"),
        ("a.csv", "user,item\n1,2\n\n3,4,5\n", "line 4: 3 columns where 2"),
        ("a.txt", "1 2 3\n1 3\n", "line 2: 2 columns where 3"),
        ("ratings.dat", "1::2::3::4\n1::2::3\n", "line 2: 3 columns where 4 are expected"),
        ("u.data", "1\t2\t3\t4\n1\t2\n", "line 2: 2 columns where 4"),
        ("a.csv", "user,item,rating\n1,2,3\n1,3,good\n", "line 3: rating 'good' is not a number"),
        ("a.csv", "user,item,rating\n1,2,\n", "line 2: rating '' is not a number"),
        ("a.csv", "user,item,rating\n1,2,nan\n", "line 2: rating 'nan' is not a number"),
        ("a.csv", "user,item,time\n1,2,5\n1,3,soon\n", "line 3: time 'soon' is neither"),
        ("a.csv", "user,item,time\n1,2,2018-01-01\n1,3,soon\n", "line 3: time 'soon' is neither"),
        ("a.csv", "user,item,time\n1,2,2018-01-01\n1,3,2018-13-45\n", "line 3: time '2018-13-45' is neither"),
        ("a.csv", "user,item\n1,2\n,3\n", "line 3: no user id"),
        ("a.csv", "user,item\n1,2\n2, \n", "line 3: no item id"),
        ("a.csv", "user,thing\n1,2\n", "no item column; columns found: user, thing"),
        ("a.csv", "person,item,time\n1,2,3\n", "no user column; columns found: person, item, time"),
        ("a.csv", "1,2,3,4,5\n", "5 columns and no header"),
        ("a.csv", "alone\n", "1 columns and no header"),
        ("a.csv", "person,thing\n1,2\n3,4\n", "line 1: looks like a header; say which"),
        ("a.csv", "person,thing\n1,2\n3,4\n", "columns are which with --columns user=NAME,item=NAME"),
        ("a.csv", "person,thing,mark\n1,2,3\n", "line 1: looks like a header"),
        ("a.csv", "", "is empty"),
        ("a.csv", "\n  \n", "is empty"),
        ("a.csv", "user,item\n", "a header and no rows"),
        ("a.csv", "user,item\n1,2\n2,2\nabc,2\n4,2\n", "line 4: the user id is text where"),
        ("a.csv", "user,item\na,x\na,7\nb,y\n", "line 3: the item id is a number where"),
        ("a.csv", "user,item,client\na,x,n\nb,x,s\na,y,s\n", "line 4: this user belongs to client 'n' and to 's'"),
        ("a.inter", "user_id\titem_id\n1\t2\n", "line 1: a RecBole header names a type"),
        ("s.txt", "1 2 3 4 5 6 7\n2\n", "line 2: a user without items"),
        ("QB-article.csv", "user_id,item_id,like\n1,2,0\n", "no 'click' column; columns found: user_id"),
        ("dataset_TSMC2014_NYC.txt", "1\tv\tc\tn\t4\t7\t0\tyesterday\n", "line 1: time 'yesterday'"),
        ("review.json", GOOD_REVIEW + "{oops\n", "line 2: not JSON"),
        ("review.json", "[1]\n", "line 1: not a JSON object"),
        ("review.json", '{"user_id":"u"}\n', "line 1: a review needs user_id, business_id"),
        ("review.json", '{"user_id":"u","business_id":"b","stars":1,"date":"x"}\n', "line 1: date 'x'"),
        ("review.json", "\n", "is empty"),
    ],
)  # fmt: skip
def test_bad_files(write: Write, name: str, text: str, said: str) -> None:
    path = write(name, text)
    message = refused(path)
    assert said in message
    assert path.name in message


@pytest.mark.parametrize(
    ("opened", "closed", "last"),
    [
        ('u5,i5,"c,Five', 'u50,i50,"c",Fifty', 50),  # in a column that is not used
        ('u5,i5,c,"Five', 'u50,i50,c,"Fifty"', 50),  # in the titles
        ('u5,i5,c,"Five', "u50,i50,c,Fifty", 101),  # to the end of the file
        ('u5,i5,"c,Five', 'u50,i50,"c,Fifty', 50),
    ],
)
def test_a_quote_left_open_does_not_take_lines_along(write: Write, opened: str, closed: str, last: int) -> None:
    """They were lost without a word."""
    lines = [f"u{row},i{row},c,T{row}" for row in range(1, 101)]
    lines[4], lines[49] = opened, closed
    path = write("a.csv", "user,item,comment,title\n" + "\n".join(lines) + "\n")
    assert f"line 6: a quote is left open, up to line {min(last + 1, 101)}" in refused(path)


def test_a_cell_may_have_several_lines_and_a_line_odd_quotes(write: Write) -> None:
    rows = 'a,x,"one, two\nthree, ""four""\n",X\n\nb,x,"so" it is,X\nc,y,5" nail,Y\nd,y,"","Z\nz"\n'
    found = assemble(readers.read(write("a.csv", f"user,item,comment,title\n{rows}")), "x")
    assert found.user_ids.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "text",
    [
        '{"user": 1, "item": 2}\n{"user": 1, "item": 3}\n',
        '[{"user":1,"item":2},{"user":1,"item":3}]',
        '[\n  {"user": 1, "item": 2}\n]\n',
        '{"user_id":"a","item_id":"b"}',
        '["user","item"]\n["a","b"]\n',
    ],
)
def test_json_is_not_read_as_a_table(write: Write, text: str) -> None:
    """Its first line was taken for a header, and what stands before a comma for an id."""
    for name in ("a.jsonl", "a.json", "a.txt"):
        said = refused(write(name, text))
        assert "is JSON" in said
        assert "CSV" in said


def test_ids_in_braces_are_ids(write: Write) -> None:
    found = assemble(readers.read(write("a.csv", "{0f-8a},{x}\n{0f-8b},{y}\n")), "x")
    assert found.user_ids.tolist() == ["{0f-8a}", "{0f-8b}"]


def test_duplicates_that_differ_are_merged_not_refused(write: Write) -> None:
    path = write("a.csv", "user,item,time\n1,2,9\n1,2,4\n")
    data = assemble(readers.read(path), "x")
    assert data.times is not None
    assert data.times.tolist() == [9]
    assert data.notes == ("1 repeats of a user-item pair merged, the last kept",)


def test_exact_repeats_are_merged_and_counted(write: Write) -> None:
    data = assemble(readers.read(write("a.csv", "user,item\n1,2\n3,4\n1,2\n")), "x")
    assert len(data) == 2
    assert data.notes == ("1 repeats of a user-item pair merged, the earliest kept",)
    assert data.understood is not None
    assert data.understood.merged == 1


def test_fixed_width_codes_may_mix_digits_and_letters(write: Write) -> None:
    data = assemble(readers.read(write("a.csv", "user,item\na,0155061224\na,B000GFDAUG\n")), "x")
    assert data.item_ids.tolist() == ["0155061224", "B000GFDAUG"]


def test_not_utf_8(write: Write) -> None:
    late = "user,item\né,1\n".encode() + b"".join(b"%d,1\n" % user for user in range(5000)) + b"9,\xff\n"
    assert "line 5003: not utf-8 text" in refused(write("late.csv", late))
    assert "not utf-8 text" in refused(write("review.json", b'{"user_id":"\xff"}\n'))


def test_missing_and_unreadable(write: Write, tmp_path: Path) -> None:
    assert "no such file or folder" in refused(tmp_path / "nowhere.csv")
    broken = tmp_path / "a.csv.gz"
    broken.write_bytes(b"this is not gzip")
    assert "cannot read" in refused(broken)
    whole = write("b.csv.gz", "user,item\n" + "1,2\n" * 500)
    whole.write_bytes(whole.read_bytes()[:-12])
    assert "cannot read" in refused(whole)
    with pytest.raises(BadInput, match="cannot read"):
        readers.READERS["yelp"](tmp_path / "none.json")


def test_folder_of_several_files(write: Write, tmp_path: Path) -> None:
    write("d/a.csv", "1,2\n")
    write("d/b.csv", "1,2\n")
    assert "holds a.csv, b.csv; name one file" in refused(tmp_path / "d")
    (tmp_path / "e").mkdir()
    assert "holds no data file" in refused(tmp_path / "e")


@pytest.mark.parametrize(
    ("known", "other"), [("x.inter", "ratings.csv"), ("x.inter", "shop.csv"), ("u.data", "ratings.csv.gz")]
)
def test_a_published_file_beside_another_table(write: Write, tmp_path: Path, known: str, other: str) -> None:
    write(f"d/{known}", "user_id:token\titem_id:token\n3\t4\n" if known == "x.inter" else "1\t5\t3\t10\n")
    for companion in ("x.item", "u.item", "u1.base", "shop.zip", "notes.txt"):
        write(f"d/{companion}", "nothing")
    assert only_table(tmp_path / "d").name == known
    write(f"d/{other}", "user,item\n1,2\n")
    assert "; name one file" in refused(tmp_path / "d")


def test_titles_with_torn_lines(write: Write) -> None:
    path = write("a/u.data", "1\t5\t3\t10\n")
    write("a/u.item", "5|Five\n6\n")
    assert "u.item line 2" in refused(path)
    path = write("b/user_artists.dat", "1\t5\t3\n")
    write("b/artists.dat", "5\n")
    assert "artists.dat line 1" in refused(path)
    path = write("c/a.inter", "user_id:token\titem_id:token\n1\t5\n")
    write("c/a.item", "item_id:token\ttitle:token\n5\n")
    assert "a.item line 2" in refused(path)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"user": ["a"], "thing": ["x"]}, "no item column; columns found: user, thing"),
        ({"user": ["a", None], "item": ["x", "y"]}, "row 2: no user"),
        ({"user": [1.0, 1.5], "item": ["x", "y"]}, "row 2: user id 1.5 is not a whole number"),
        ({"user": ["1", "2", "abc"], "item": ["x", "y", "z"]}, "row 3: the user id is text"),
        ({"user": [[1], [2]], "item": ["x", "y"]}, "user ids of type"),
        (
            {"user": ["a", "b"], "item": ["x", "x"], "rating": [1.0, None]},
            "row 2: rating None is not a number",
        ),
        ({"user": ["a", "b"], "item": ["x", "x"], "rating": ["1", "good"]}, "row 2: rating 'good'"),
        ({"user": ["a", "b"], "item": ["x", "x"], "time": [1, None]}, "row 2: time None"),
        ({"user": ["a", "b"], "item": ["x", "x"], "time": ["1", "soon"]}, "row 2: time 'soon'"),
        ({"user": pa.array([], pa.string()), "item": pa.array([], pa.string())}, "has no rows"),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: dict[str, list[object]], said: str) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert said in refused(tmp_path / "a.parquet")


def test_not_parquet_at_all(write: Write) -> None:
    assert "cannot read" in refused(write("a.parquet", "user,item\n1,2\n"))


SPLIT = {"train": "user,item\na,1\n", "valid": "user,item\na,2\n", "test": "user,item\na,3\n"}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"test": "user,item\na,1\n"},
            "test.csv line 2: this user and item are in two parts of the split",
        ),
        ({"test": None}, "is not a ready split: no test file"),
        ({"train": None}, "is not a ready split: no train file"),
        ({"valid": "user,item,time\na,2,9\n"}, "train.csv has no time column, but the other parts have"),
        ({"valid": "user,thing\na,2\n"}, "valid.csv has no item column"),
    ],
)
def test_bad_splits(write: Write, tmp_path: Path, changed: dict[str, str | None], said: str) -> None:
    for part, text in (SPLIT | changed).items():
        if text is not None:
            write(f"{part}.csv", text)
    assert said in refused(tmp_path)


def test_two_files_for_one_part(write: Write, tmp_path: Path) -> None:
    for part, text in SPLIT.items():
        write(f"{part}.csv", text)
    write("train.tsv", "user\titem\na\t1\n")
    assert "several files for 'train': train.tsv, train.csv" in refused(tmp_path)


def test_yelp_wrong_types(write: Write) -> None:
    review = {"user_id": "u", "business_id": "b", "stars": "many", "date": "2018-01-01"}
    assert "line 1: a review needs" in refused(write("review.json", json.dumps(review)))


def test_no_rating_above_zero(write: Write) -> None:
    assert "no row has a rating above 0" in refused(write("a.csv", "user,item,rating\n1,2,0\n1,3,-1\n"))

"""Numbers, times and titles of people's own tables: what a comma, a unit and an empty cell mean."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from data_files import Write, refused
from fedrec.data.describe import said_of
from fedrec.data.load import load
from there import there


def table(ratings: tuple[str, ...], mark: str) -> str:
    """A rating a row, quoted where the delimiter stands in it."""
    cells = [f'"{rating}"' if mark in rating else rating for rating in ratings]
    rows = "".join(f"u{row}{mark}i{mark}{cell}\n" for row, cell in enumerate(cells))
    return f"user{mark}item{mark}rating\n{rows}"


@pytest.mark.parametrize(
    ("ratings", "mark", "least", "kept"),
    [
        (("950", "1,050", "12,000", "20"), ",", 1000, ["u1", "u2"]),
        (("950", "1,050", "1,234,567"), ";", 1000, ["u1", "u2"]),
        (("950.5", "1,050", "1,050.25"), "\t", 1000, ["u1", "u2"]),
        (("0,5", "1,050", "4,500"), ",", 2, ["u2"]),
        (("0,500", "4,500", "3"), ";", 2, ["u1", "u2"]),
        (("3,5", "4,5"), ";", 4, ["u1"]),
    ],
)
def test_commas_in_ratings(write: Write, ratings: tuple[str, ...], mark: str, least: float, kept: list[str]) -> None:
    """1,050 was read as 1.05, so that a least rating dropped the wrong rows."""
    data = load(write("a.csv", table(ratings, mark)), min_rating=least)
    assert data.user_ids.tolist() == kept
    says = "ratings have decimal commas" if least < 1000 else "ratings have commas between thousands"
    assert says in said_of(data)


def test_a_comma_that_may_mean_either_is_not_guessed(write: Write) -> None:
    ratings = (*["5"] * 500, "1,050", "20")
    said = "rating '1,050' may have a decimal comma or a thousands separator: write 1.05 or 1050"
    assert f"line 502: {said}" in refused(write("a.csv", table(ratings, ";")))
    assert said in refused(pa.table({"user": ["a", "b"], "item": ["x", "y"], "rating": ["1,050", "2"]}))


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            ("1700000000000", "1600000000000000"),
            "line 2: time '1700000000000' is in milliseconds where others are in mic",
        ),
        (
            ("1600000000000000000", "1600000000000000"),
            "line 3: time '1600000000000000' is in microseconds where others",
        ),
        (
            ("1600000000000000000", "1600000000"),
            "line 3: time '1600000000' is in seconds where others are in nanoseconds",
        ),
        (("1600000000000", "1600000000"), "line 3: time '1600000000' is in seconds where others are in milliseconds"),
        (("1600000000000", "9"), "line 3: time '9' is in seconds where others are in milliseconds"),
        (("1600000000000", "soon", "1600000000000"), "line 3: time 'soon' is neither a number nor a date"),
    ],
)
def test_times_in_two_units_are_refused(write: Write, times: tuple[str, ...], said: str) -> None:
    rows = "".join(f"a,{item},{time}\n" for item, time in enumerate(times))
    assert said in refused(write("a.csv", f"user,item,time\n{rows}"))


@pytest.mark.parametrize("times", [("1600000000000", "0", "-5"), ("1600000000", "9"), ("99999999", "1")])
def test_times_of_one_unit_are_read(write: Write, times: tuple[str, ...]) -> None:
    rows = "".join(f"a,{item},{time}\n" for item, time in enumerate(times))
    assert len(load(write("a.csv", f"user,item,time\n{rows}"))) == len(times)


@pytest.mark.parametrize("kind", ["text", "frame"])
@pytest.mark.parametrize("nothing", ["", "  "])
def test_an_empty_title_is_no_title(write: Write, kind: str, nothing: str) -> None:
    """In the last row of an item it erased the title of the others."""
    columns = {"user": ["a", "b", "c", "a"], "item": ["x", "x", "y", "z"], "title": ["X", nothing, nothing, "Z"]}
    text = "user,item,title\n" + "".join(",".join(row) + "\n" for row in zip(*columns.values(), strict=True))
    data = load(write("a.csv", text) if kind == "text" else pa.table(columns))
    assert there(data.titles).tolist() == ["X", "y", "Z"]
    assert "1 items have no title; their id is shown instead" in said_of(data)
    assert load(pa.table({**columns, "title": [None, None, None, nothing]})).titles is None


def test_a_ready_split_keeps_its_titles(write: Write, tmp_path: Path) -> None:
    for part, row in [("train", "a,x,X"), ("valid", "a,y,Y"), ("test", "a,z,")]:
        write(f"d/{part}.csv", f"user,item,title\n{row}\n")
    write("d/movies.dat", "x::Other\ny::Other\nz::Other\n")
    assert there(load(tmp_path / "d").titles).tolist() == ["X", "Y", "z"]


@pytest.mark.parametrize("empty", ["", "nan", "9999999999999999999999"])
def test_nanoseconds_keep_their_order_beside_a_cell_without_a_time(write: Write, empty: str) -> None:
    rows = [f"{user},{item},160000000000000000{end}\n" for user in range(100) for item, end in (("b", 1), ("a", 0))]
    data = load(str(write("a.csv", "user,item,time\n" + "".join(rows) + f"7,c,{empty}\n")))
    assert data.item_ids[data.items][:2].tolist() == ["a", "b"]
    assert there(data.times)[:2].tolist() == [1_600_000_000_000_000_000, 1_600_000_000_000_000_001]

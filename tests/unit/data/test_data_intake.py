"""People's own files and tables: what is forgiven, what is said, and what is never guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fedrec.data.describe import describe, said_of
from fedrec.data.fingerprint import fingerprint
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from fedrec.data.readers import columns
from fedrec.data.understood import Understood
from fedrec.errors import BadInput
from fedrec.evaluation.splits import time_order
from there import there

Write = Callable[..., Path]


def triples(data: Interactions) -> list[tuple[str, str, int | None]]:
    times = [None] * len(data) if data.times is None else data.times.tolist()
    return list(zip(data.user_ids[data.users].tolist(), data.item_ids[data.items].tolist(), times, strict=True))


def understood(data: Interactions) -> Understood:
    assert data.understood is not None
    return data.understood


def refused(source: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as caught:
        load(source if not isinstance(source, Path) else str(source), **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) <= 300
    return str(caught.value)


SHOP = "who;what;when;colour\nann;pen;31.01.2021;red\nann;ink;30.01.2021 10:15;red\nbob;pen;01.02.2021;blue\n"


@pytest.mark.parametrize("mark", ["sep=;\n", '"sep=;"\r\n', "SEP=; \n", "\ufeffsep=;\n"])
def test_excels_word_for_the_delimiter_is_no_line_of_the_table(write: Write, mark: str) -> None:
    table = "user;item;rating\nann;pen;4\nann;ink;5\nbob;pen;3\n"
    data = load(str(write("excel.csv", mark + table)))
    assert triples(data) == triples(load(str(write("plain.csv", table))))
    assert understood(data).columns == (("user", "user"), ("item", "item"), ("rating", "rating"))
    assert "excel.csv line 6" in refused(write("excel.csv", mark + table + "bob\n"))  # as an editor counts


def test_columns_as_a_person_names_them(write: Write) -> None:
    data = load(str(write("shop.csv", SHOP)), columns="user=who,item=WHAT,time=when")
    assert triples(data) == [
        ("ann", "ink", 1_612_001_700),
        ("ann", "pen", 1_612_051_200),
        ("bob", "pen", 1_612_137_600),
    ]
    said = understood(data)
    assert said.columns == (("user", "who"), ("item", "what"), ("time", "when"))
    assert said.ignored == ("colour",)
    assert said.times == "dates, day first"
    assert said.lines()[0] == (
        "shop.csv: text with ; between cells, 3 rows; user = who, item = what, time = when; not used: colour"
    )
    assert triples(load(str(write("shop.csv", SHOP)), columns={"user": "who", "item": "what"}))[0][2] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("user=who", "has no item column; columns found: who, what, when, colour"),
        ("user=who,item=thing", "has no column 'thing'; columns found: who, what"),
        ("user=who,item=what,time=whenever", "has no column 'whenever'; columns found: who, what"),
        ("user=who,item", "--columns 'item' says nothing; write user=NAME,item=NAME"),
        ("user=who,thing=what", "unknown meaning in --columns 'thing'"),
        ("user=who,user=what", "--columns names user twice"),
        ("user=who,item=who", "--columns uses 'who' twice"),
        ("user=who,item=what,time=colour", "line 2: time 'red' is neither a number nor a date"),
    ],
)
def test_columns_that_cannot_be_chosen(write: Write, text: str, said: str) -> None:
    assert said in refused(write("shop.csv", SHOP), columns=text)


def test_columns_need_names_to_choose_from(write: Write) -> None:
    assert "has no header" in refused(write("a.csv", "1,2\n3,4\n"), columns="user=who")
    assert "has no column names" in refused(write("u.data", "1\t2\t3\t4\n"), columns="user=who")
    assert "has known columns" in refused("demo", columns="user=who")
    assert "has known columns" in refused("ml-100k", columns="user=who")


def test_a_chosen_column_wins_over_a_known_name(write: Write) -> None:
    data = load(str(write("a.csv", "user,customer,item\nx,ann,pen\n")), columns="user=customer")
    assert data.user_ids.tolist() == ["ann"]
    assert understood(data).ignored == ("user",)


def test_names_of_shops_are_known() -> None:
    names = ["CustomerID", "SKU", "purchased_at", "Stock-Code", "Invoice Date", "star_rating"]
    assert [columns.meaning(name) for name in names] == ["user", "item", "time", "item", "time", "rating"]


@pytest.mark.parametrize(
    ("first", "second", "seconds", "kind"),
    [
        ("2021-12-31", "2021-12-30 23:00:00", 1_640_908_800, "ISO dates"),
        ("2021-12-31T01:00:00+01:00", "2021-12-30", 1_640_908_800, "ISO dates"),
        ("2021/12/31", "2021/12/30", 1_640_908_800, "ISO dates"),
        ("31/12/2021", "01/02/2021 10:00", 1_640_908_800, "dates, day first"),
        ("12/31/2021 1:30 PM", "02/01/2021 12:10 AM", 1_640_957_400, "dates, month first"),
        ("31.12.2021", "1.2.2021", 1_640_908_800, "dates, day first"),
        ("01.02.2021", "02.01.2021", 1_612_137_600, "dates, day first"),
        ("1640908800", "1640908799", 1_640_908_800, "seconds since 1970"),
        ("1640908800000", "1640908799999", 1_640_908_800_000, "milliseconds since 1970"),
        ("7", "3", 7, "numbers (an order)"),
    ],
)
def test_times_as_people_write_them(write: Write, first: str, second: str, seconds: int, kind: str) -> None:
    data = load(str(write("a.csv", f"user,item,time\na,x,{first}\na,y,{second}\n")))
    assert [item for _, item, _ in triples(data)] == ["y", "x"]
    assert triples(data)[1][2] == seconds
    assert understood(data).times == kind


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (("01/02/2021", "03/04/2021"), "line 2: time '01/02/2021' may have the day or the month first"),
        (("31/12/2021", "12/31/2021"), "line 3: time '12/31/2021' has the month first where others do not"),
        (("31.06.2021", "30.06.2021"), "line 2: time '31.06.2021' is neither a number nor a date"),
        (("1640908800000", "1640908800"), "line 3: time '1640908800' is in seconds where others are in milliseconds"),
        (("2021-12-31", ""), "line 3: time '' is neither"),
    ],
)
def test_times_are_never_guessed(write: Write, times: tuple[str, str], said: str) -> None:
    rows = "".join(f"a,{item},{time}\n" for item, time in enumerate(times))
    assert said in refused(write("a.csv", f"user,item,time\n{rows}"))


def test_decimal_commas_and_a_least_rating(write: Write) -> None:
    path = write("a.csv", "user;item;rating\na;x;4,5\na;y;3,5\nb;x;5\n")
    data = load(str(path), min_rating=4)
    assert [(user, item) for user, item, _ in triples(data)] == [("a", "x"), ("b", "x")]
    assert understood(data).decimal_comma
    assert "1 rows with a rating below 4 do not count as interactions" in understood(data).lines()
    assert "no row has a rating of 9 or more (the most is 5)" in refused(path, min_rating=9)
    assert "has no ratings" in refused(write("b.csv", "user,item\na,x\n"), min_rating=1)
    assert "has no ratings" in refused("demo", min_rating=1)
    assert "rating '1.000,5' is not a number" in refused(write("c.csv", "user;item;rating\na;x;1.000,5\n"))


def test_a_few_unreadable_rows_are_left_out_and_named(write: Write) -> None:
    rows = [f"u{row},i{row % 7},{row % 5 + 1},2021-03-{row % 28 + 1:02d}" for row in range(1000)]
    rows[10], rows[20], rows[30], rows[40] = "u10,i3", "u20,,4,2021-03-01", "u30,i1,good,2021-03-01", "u40,i1,4,soon"
    path = write("a.csv", "user,item,rating,time\n" + "\n".join(rows))
    data = load(str(path))
    said = understood(data)
    assert len(data) == 996
    assert said.rows == 1000
    assert said.unreadable == 4
    assert [text.partition("a.csv ")[2] for text in said.unreadable_at] == [
        "line 12: 2 columns where 4 are expected",
        "line 22: no item id",
        "line 32: rating 'good' is not a number",
        "line 42: time 'soon' is neither a number nor a date",
    ]
    many = "\n".join("u,i" if row % 50 == 0 else line for row, line in enumerate(rows))
    assert "line 2: 2 columns where 4" in refused(write("b.csv", f"user,item,rating,time\n{many}"))
    worse = "\n".join(line.replace("2021", "x") if row % 20 == 0 else line for row, line in enumerate(rows))
    assert "of 1000 rows cannot be read)" in refused(write("c.csv", f"user,item,rating,time\n{worse}"))


def test_the_fault_of_most_rows_is_named_not_that_of_a_line_that_breaks_off(write: Write) -> None:
    rows = "".join(f"k{i};b{i};good\n" for i in range(200))
    said = refused(write("a.csv", f"user;item;rating\n{rows}abgebr"))
    assert "line 2: rating 'good' is not a number" in said
    assert said.endswith("(201 of 201 rows cannot be read)")


def test_a_header_that_comes_again_is_no_user(write: Write) -> None:
    """Files that were put behind one another; where ids are text it became a user."""
    rows = "".join(f"u{row},i{row % 7}\n" for row in range(500))
    data = load(str(write("a.csv", f"user,item\n{rows}user,item\n{rows}")))
    assert (data.n_users, data.n_items) == (500, 7)
    assert understood(data).unreadable == 0
    assert "1 rows repeat the header and are left out" in said_of(data)
    only = refused(write("b.csv", "user,item\nuser,item\n"))
    assert only.endswith("b.csv has a header and no rows; it needs at least one interaction")


def test_a_split_leaves_nothing_out(write: Write, tmp_path: Path) -> None:
    write("d/train.csv", "user,item\n" + "".join(f"u{row},i\n" for row in range(500)) + "u\n")
    write("d/test.csv", "user,item\nu1,j\n")
    assert "train.csv line 502: 1 columns where 2" in refused(tmp_path / "d")


@pytest.mark.parametrize(
    ("times", "kind", "seconds"),
    [
        (["44000.75", "44000.5", "44000.25", "43999.5"], "numbers (an order)", None),  # days, as Excel counts them
        (["0.4", "0.3", "0.2", "0.1"], "numbers (an order)", None),
        (["1600000000.75", "1600000000.5", "1600000000.25", "1600000000"], "seconds since 1970", 1_600_000_000),
        ([f"2020-09-13T12:26:40.{part}" for part in ("75", "5", "25", "0")], "ISO dates", 1_600_000_000),
        ([f"1600000000000.{part}" for part in ("75", "5", "25", "0")], "milliseconds since 1970", 1_600_000_000),
    ],
)
def test_parts_of_a_second_or_a_day_count(write: Write, times: list[str], kind: str, seconds: int | None) -> None:
    """They were cut off, and what happened at one time stands in a random order."""
    rows = "".join(f"u{user},i{item},{time}\n" for user in range(9) for item, time in enumerate(times))
    data = load(str(write("a.csv", f"user,item,time\n{rows}")))
    assert understood(data).times == kind
    assert data.times is not None
    order = time_order(data)
    assert [data.item_ids[data.items[row]] for row in order] == ["i3", "i2", "i1", "i0"] * 9
    assert (np.diff(data.times[order].reshape(9, 4)) > 0).all()
    assert describe(data).first_time == (None if seconds is None else "2020-09-13")


def test_repeats_keep_the_last_time(write: Write) -> None:
    data = load(str(write("a.csv", "user,item,time\na,x,5\na,y,6\na,x,7\na,x,5\n")))
    assert triples(data) == [("a", "y", 6), ("a", "x", 7)]
    assert understood(data).merged == 2
    assert "2 repeats of a user-item pair merged, the last kept" in said_of(data)


def test_what_is_said_is_said_once(write: Write) -> None:
    data = load(str(write("a.csv", "user,item,title\na,x,X\na,x,X\nb,x,X\n")), min_interactions=1)
    said = said_of(data)
    assert len(said) == len(set(said))
    assert "no times: held-out items are drawn at random, and sequence models read histories in random order" in said
    left = load(str(write("b.csv", "user,item\na,x\na,y\nb,x\n")), min_interactions=2)
    assert said_of(left).count("1 users with fewer than 2 interactions left out") == 1


def test_a_ready_split_says_so(write: Write, tmp_path: Path) -> None:
    write("d/train.csv", "user,item\na,x\n")
    write("d/test.csv", "user,item\na,y\n")
    assert "split as given (train, valid, test)" in said_of(load(str(tmp_path / "d")))


# -- tables in memory -------------------------------------------------------------------------------

PLAIN = {"CustomerID": ["a", "a", "b"], "SKU": [3, 4, 3], "rating": [5.0, 0.0, 1.0], "seen": ["x", "y", "z"]}


@pytest.mark.parametrize("kind", ["pandas", "category", "arrow", "batch", "capsule"])
def test_tables_in_memory(kind: str) -> None:
    frame = pd.DataFrame(PLAIN, index=[7, 8, 9])
    if kind == "category":
        frame["CustomerID"] = frame["CustomerID"].astype("category")

    class Capsule:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            return pa.table(PLAIN).__arrow_c_stream__(schema)

    tables = {"arrow": pa.table(PLAIN), "batch": pa.RecordBatch.from_pydict(PLAIN), "capsule": Capsule()}
    data = load(tables.get(kind, frame))
    assert triples(data) == [("a", "3", None), ("b", "3", None)]
    assert data.name == "frame"
    assert understood(data).ignored == ("seen",)
    assert understood(data).below_rating == 1


def test_polars_tables() -> None:
    polars = pytest.importorskip("polars")
    assert triples(load(polars.DataFrame(PLAIN))) == [("a", "3", None), ("b", "3", None)]


def test_tables_with_missing_ids_times_and_dates() -> None:
    days = pd.to_datetime(["2021-01-02", "2021-01-01", "2021-01-03"] * 100)
    frame = pd.DataFrame({"user": [1.0, 2.0, 3.0] * 100, "item": np.arange(300), "time": days})
    assert triples(load(frame))[0] == ("1", "0", 1_609_545_600)
    frame.loc[5, "user"] = np.nan
    frame.loc[6, "time"] = pd.NaT
    data = load(frame)
    assert understood(data).unreadable_at == (
        "DataFrame row 6: no user id",
        "DataFrame row 7: time None is neither a number nor a date",
    )
    frame.loc[9, "user"] = 1.5
    frame.loc[10:20, "user"] = np.nan
    assert "DataFrame row 6: no user id (14 of 300 rows cannot be read)" in refused(frame)


def test_tables_that_cannot_be_used() -> None:
    assert "DataFrame has no user column" in refused(pd.DataFrame({"a": [1]}))
    assert "has no rows" in refused(pd.DataFrame({"user": [], "item": []}))
    assert "cannot read the DataFrame" in refused(pd.DataFrame({"user": ["a", object()], "item": [1, 2]}))
    assert "data of type int cannot be used" in refused(7)


# -- fingerprint ------------------------------------------------------------------------------------


def test_a_fingerprint_knows_the_interactions_and_nothing_else(write: Write, tmp_path: Path) -> None:
    rows = ["a,x,5,1", "a,y,3,2", "b,x,4,3", "b,z,1,4"]

    def of(lines: list[str], name: str = "a.csv", **options: Any) -> str:
        return fingerprint(load(str(write(name, "user,item,rating,time\n" + "\n".join(lines))), **options)).whole

    whole = of(rows)
    assert len(whole) == 64
    assert of(rows[::-1], "other.csv") == whole
    assert of(["a,x,1,1", *rows[1:]]) == whole  # the rating decides nothing here
    changed = [
        ["a,x,5,9", *rows[1:]],
        ["a,w,5,1", *rows[1:]],
        ["c,x,5,1", *rows[1:]],
        rows[1:],
        [*rows, "c,x,1,1"],
        ["a,x,0,1", *rows[1:]],
    ]
    assert len({whole, *(of(lines) for lines in changed), of(rows, min_rating=3)}) == 7
    table = pa.table({"user": ["a", "a", "b", "b"], "item": ["x", "y", "x", "z"], "time": [1, 2, 3, 4]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert fingerprint(load(tmp_path / "a.parquet")).whole == whole
    timeless = fingerprint(load(table.drop_columns("time"))).whole
    assert timeless != whole
    assert fingerprint(load(table.drop_columns("time"), client_groups=2)).whole != timeless


def in_parts(folder: Path, *parts: Any) -> Path:
    """A folder as Spark leaves one."""
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for number, part in enumerate(parts):
        parquet.write_table(pa.table(part), folder / f"part-{number:05d}-c000.snappy.parquet")
    return folder


def test_a_folder_of_parquet_parts_is_one_table(tmp_path: Path) -> None:
    one = pa.table({"user": ["a", "b", "c", "a"], "item": [1, 2, 3, 4], "timestamp": [5, 6, 7, 8]})
    parquet.write_table(one, tmp_path / "one.parquet")
    folder = in_parts(
        tmp_path / "parts.parquet",
        {"user": ["a", "b"], "item": [1, 2], "timestamp": [5, 6]},
        {"timestamp": [], "user": [], "item": []},  # Spark writes empty ones, and columns may change places
        {"item": [3, 4], "user": ["c", "a"], "timestamp": [7, 8]},
    )
    assert fingerprint(load(folder)).whole == fingerprint(load(tmp_path / "one.parquet")).whole
    assert understood(load(folder)).rows == 4
    assert triples(load(folder, columns="user=item,item=user"))[0][:2] == ("1", "a")


def test_a_bad_row_of_a_part_is_named(tmp_path: Path) -> None:
    good = {"user": ["a", "b"], "item": [1.0, 2.0]}
    folder = in_parts(tmp_path / "parts", good, {"user": ["c", "d", "e"], "item": [3.0, 4.0, 4.5]})
    assert "part-00001-c000.snappy.parquet row 3: item id 4.5 is not a whole number" in refused(folder)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (
            {"user": ["c"], "name": ["x"]},
            "holds tables with different columns: part-00001-c000.snappy.parquet has user",
        ),
        ({"user": [["c"]], "item": [1]}, "row 1: user ids of type list"),
        ({"user": ["c"], "item": ["x"]}, "its parts do not fit together"),
    ],
)
def test_parts_that_are_not_one_table_are_refused(tmp_path: Path, second: dict[str, list[Any]], said: str) -> None:
    assert said in refused(in_parts(tmp_path / "parts", {"user": ["a", "b"], "item": [1, 2]}, second))


def test_parts_have_the_limit_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = {"user": [f"u{n}" for n in range(1000)], "item": list(range(1000))}
    folder = in_parts(tmp_path / "parts", part, part, part)
    monkeypatch.setenv("FEDREC_MAX_BYTES", "40000")
    assert "parts holds more than 40000 bytes" in refused(folder)
    monkeypatch.setenv("FEDREC_MAX_BYTES", "400000")
    assert len(load(folder)) == 1000


@pytest.mark.parametrize(
    ("text", "n_blank"),
    [
        ("user,item,time\nu1,i1,1\nu2,i2,2\n,,\n,,\n", 2),
        (',,\r\nuser,item,time\r\n , ,\r\nu1,i1,1\r\n"","",""\r\n   \r\nu2,i2,2\r\n\x1a', 4),
        ("u1;i1;1\n;;\nu2;i2;2\n;\n", 2),
        ("u1\ti1\t1\n\t\t\nu2\ti2\t2", 1),
        ("u1 i1 1\n  \nu2 i2 2\n \t \n", 0),
    ],
)
def test_rows_with_nothing_in_them_are_empty_lines(write: Write, text: str, n_blank: int) -> None:
    data = load(str(write("a.csv", text)))
    assert [pair[:2] for pair in triples(data)] == [("u1", "i1"), ("u2", "i2")]
    assert (f"{n_blank} rows have nothing in them and are left out" in data.notes) == (n_blank > 0)
    assert understood(data).unreadable == 0


@pytest.mark.parametrize("row", ["\t" * 40 + "x", "\t" * 200_000 + "x", "\t" + " " * 200_000 + "x"], ids=len)
@pytest.mark.parametrize("cell", ["{}", '"{}"'])
def test_a_row_of_nothing_but_for_its_end_takes_no_time(cell: str, row: str, write: Write) -> None:
    """Forty tabs kept a computer busy for days: each was tried as a mark between cells and as a blank."""
    names = [("user", "item"), *((f"u{u}", f"i{i}") for u in range(5) for i in range(5))]
    lines = [f"{cell.format(user)}\t {cell.format(item)}\n" for user, item in names]
    assert "line 27: " in refused(write("a.tsv", "".join(lines) + row + "\n"))


def test_lines_count_where_rows_have_nothing_in_them(write: Write) -> None:
    assert "a.csv line 5: no item id" in refused(write("a.csv", "user,item\n,\n,\nu,i\nw,\n,\n"))


def test_the_end_of_a_text_from_dos_is_no_part_of_an_id(write: Write) -> None:
    assert triples(load(str(write("a.csv", "user,item\nu,i\nv,j\x1a"))))[1] == ("v", "j", None)


@pytest.mark.parametrize(
    ("cell", "title"),
    [
        (r'"a \"b\" c"', 'a "b" c'),
        (r'"a \"b\", c"', 'a "b", c'),
        (r'"one, \", two"', 'one, ", two'),
        (r'"ends with \\"', "ends with \\"),
        (r'"\"" ', '"'),
        (r"C:\new", r"C:\new"),
    ],
)
def test_quotes_with_a_backslash_before_them(write: Write, cell: str, title: str) -> None:
    spark = f'user,item,title\nu,i,{cell.strip()}\nv,j,"said \\"so\\", and went"\n"","",""\nw,"k\\"",x\n'
    data = load(str(write("a.csv", spark)))
    assert there(data.titles).tolist() == [title, 'said "so", and went', "x"]
    assert data.item_ids.tolist() == ["i", "j", 'k"']


@pytest.mark.parametrize("cell", ['"C:\\"', '"a ""b"" \\"', 'C:\\"x"', "\\"])
def test_a_backslash_before_a_closing_quote_is_itself(write: Write, cell: str) -> None:
    data = load(str(write("a.csv", f'user,item,title\nu,i,{cell}\nv,j,"D:\\"\nw,k,"two ""words"""\n')))
    wanted = cell[1:-1].replace('""', '"') if cell[0] == '"' else cell
    assert there(data.titles).tolist() == [wanted, "D:\\", 'two "words"']

"""Files as other programs write them, which are read wrongly where one looks at the first line alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_files import Write, refused
from fedrec.data.interactions import Interactions
from fedrec.data.load import load
from there import there

PAIRS = [(f"u{user}", f"i{(user * 7 + step * 3) % 20}") for user in range(12) for step in range(5)]


def pairs(data: Interactions) -> list[tuple[str, str]]:
    return sorted(zip(data.user_ids[data.users].tolist(), data.item_ids[data.items].tolist(), strict=True))


def lines(*rows: tuple[object, ...], mark: str = ",") -> str:
    return "".join(mark.join(map(str, row)) + "\n" for row in rows)


def test_the_plainest_name_of_a_column_is_taken(write: Write) -> None:
    """Names are not unique where ids are: people of one name were one user."""
    rows = [("Ann", user, 0, item, 3, "tea", 1) for user, item in PAIRS]
    header = ("username", "user_id", "weight", "sku", "rating", "item", "date")
    data = load(write("a.csv", lines(header, *((*row[:3], row[5], row[4], row[3], row[6]) for row in rows))))
    assert pairs(data) == sorted(PAIRS)
    assert there(data.understood).columns == (
        ("user", "user_id"),
        ("rating", "rating"),
        ("item", "item"),
        ("time", "date"),
    )
    assert load(write("a.csv", lines(header, *rows)), columns="user=username,item=item").user_ids.tolist() == ["Ann"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", [True, False])
def test_marks_inside_files_put_behind_one_another(tmp_path: Path, encoding: str, end: str, header: bool) -> None:
    first = lines(("user", "item"), *PAIRS[:30]).replace("\n", end).encode(encoding)
    second = lines(*([("user", "item")] if header else []), *PAIRS[30:]).replace("\n", end).encode(encoding)
    path = tmp_path / "a.csv"
    path.write_bytes(first + second)
    assert pairs(load(path)) == sorted(PAIRS)


def test_old_line_ends_part_the_lines_of_sequences(write: Write) -> None:
    data = load(write("a.txt", "1 10 11 12\r2 12 13\n3 14 15 16\r\n4 10\n"))
    assert pairs(data)[3:5] == [("2", "12"), ("2", "13")]
    assert len(data.user_ids) == 4


def test_a_zone_of_two_digits(write: Write) -> None:
    times = ("2021-01-31 10:00:00+00", "2021-01-31 10:30:00+02", "2021-01-31 09:00:00-01:30", "")
    rows = [(f"u{n}", "i", times[min(n, 2)]) for n in range(200)] + [("u7", "j", "")]
    found = there(load(write("a.csv", lines(("user", "item", "time"), *rows))).times)
    assert found[:1].tolist() == [1_612_087_200]
    assert sorted(set(found.tolist())) == [1_612_081_800, 1_612_087_200, 1_612_089_000]


def test_a_comma_in_a_name_is_no_mark_where_no_row_has_one(write: Write) -> None:
    path = write("a.csv", "Kunde;Artikel, Nr\n" + lines(*PAIRS, mark=";"))
    assert pairs(load(path, columns={"user": "Kunde", "item": "Artikel, Nr"})) == sorted(PAIRS)
    path = write("b.csv", "user,item;title\n" + lines(*PAIRS))
    assert pairs(load(path, columns={"item": "item;title"})) == sorted(PAIRS)


def test_a_second_header_in_another_order(write: Write) -> None:
    swapped = [(item, user) for user, item in PAIRS[30:]]
    said = refused(write("a.csv", lines(("user", "item"), *PAIRS[:30], ("item", "user"), *swapped)))
    assert "a.csv line 32: another header, with its columns in another order" in said


@pytest.mark.parametrize("row", ["----,----", ":---,---:", "------ , ------"])
def test_a_line_of_dashes_below_the_header(write: Write, row: str) -> None:
    data = load(write("a.csv", f"user,item\n{row}\n{lines(*PAIRS)}"))
    assert pairs(data) == sorted(PAIRS)
    assert "the line below the header is left out" in data.notes


def test_markdown_and_psql(write: Write) -> None:
    rows = "".join(f"| {user} | {item} |\n" for user, item in PAIRS)
    assert pairs(load(write("a.md", f"| user | item |\n| --- | ---: |\n{rows}"))) == sorted(PAIRS)
    rows = "".join(f" {user} | {item}\n" for user, item in PAIRS * 5)
    assert pairs(load(write("b.txt", f" user | item \n------+------\n{rows}(300 rows)\n"))) == sorted(PAIRS)


def test_blanks_before_quotes_are_no_part_of_ids(write: Write) -> None:
    rows = "".join(f'"{user}", "{item}", "3", "a, b"\n' for user, item in PAIRS)
    data = load(write("a.csv", f'"user", "item", "rating", "title"\n{rows}'))
    assert pairs(data) == sorted(PAIRS)
    assert there(data.titles)[0] == "a, b"


def test_ids_in_single_quotes_are_refused(write: Write) -> None:
    rows = "".join(f"'{user}','{item}'\n" for user, item in PAIRS)
    assert "line 1: ids in single quotes; write it with double ones" in refused(
        write("a.csv", f"'user','item'\n{rows}")
    )
    assert pairs(load(write("b.csv", lines(("user", "item"), ("'t", "'n Roll'")))))


def test_what_a_spreadsheet_has_rounded_is_refused(write: Write) -> None:
    """Its numbers of twelve digits and more are saved as it shows them: products become one, moments too."""
    ids = [(user, f"{4_006_381_000_000 + 1000 * int(item[1:]):.2E}") for user, item in PAIRS]
    assert "line 2: the item id has been rounded by a spreadsheet" in refused(
        write("a.csv", lines(("user", "item"), *ids))
    )
    times = [(*pair, f"{1_600_000_000_000 + n:.5E}") for n, pair in enumerate(PAIRS)]
    said = refused(write("a.csv", lines(("user", "item", "time"), *times)))
    assert "line 2: time '1.60000E+12' has been rounded by a spreadsheet" in said
    exact = [(*pair, f"{1_600_000_000_000 + n:.12e}") for n, pair in enumerate(PAIRS)]
    assert len(load(write("a.csv", lines(("user", "item", "time"), *exact)))) == len(PAIRS)


@pytest.mark.parametrize("word", ["\\N", "NULL", "nan", "#N/A"])
def test_a_word_for_nobody_is_named(write: Write, word: str) -> None:
    data = load(write("a.tsv", lines(("user", "item"), *PAIRS, (word, "i1"), (word, "i2"), mark="\t")))
    assert f"2 rows have the user {word}: if that stands for none, leave them out" in data.notes


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["1\t10,11,12", "2\t12,13"], "with a list in the place of an item"),
        (["user,item", '1,"[10, 11]"', '2,"[12, 13, 14]"'], "with a list in the place of an item"),
        (["user,item", "1,\"['i10', 'i11']\"", "2,\"['i12', 'i13']\""], "with a list in the place of an item"),
        (["1 10:5 11:3 12:1", "2 12:4 13:5", "3 10:1"], "items are written with a number"),
        (["0,196,242,3", "1,186,302,3", "2,196,377,1"], "the first column counts the rows"),
    ],
)
def test_what_is_no_table_of_users_and_items(write: Write, rows: list[str], said: str) -> None:
    assert said in refused(write("a.csv", "\n".join(rows)))


def test_titles_with_commas_are_items(write: Write) -> None:
    data = load(write("a.csv", 'user,item\n1,"Matrix, The (1999)"\n2,"Godfather, The"\n3,"1, 2 or 3"\n'))
    assert len(data.item_ids) == 3


def test_tabs_part_cells_that_hold_commas_and_semicolons(write: Write) -> None:
    rows = [(f"{user}, a; b", item, 3) for user, item in PAIRS]
    assert pairs(load(write("a.tsv", lines(*rows, mark="\t")))) == sorted(row[:2] for row in rows)

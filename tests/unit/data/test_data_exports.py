"""Files as other programs write them, which are read wrongly where one looks at the first line alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_files import Write
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

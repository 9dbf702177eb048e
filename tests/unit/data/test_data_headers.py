"""A first line whose words are not known: refused where it is a header, and what is said where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from data_files import Write, refused
from fedrec.data.describe import said_of
from fedrec.data.load import load

FILMS = [(f"Film {film} ({1990 + film})", f"customer {number:02d}") for number in range(20) for film in range(10)]
HEADERS = {
    "article_name,buyer_name,amount": [f"{film},{who},1" for film, who in FILMS],
    "article_name,buyer_name": [f"{film},{who}" for film, who in FILMS],
    "kunde,artikel": [f"u{row % 20},i{row % 30}" for row in range(120)],
    "wer;was;wann": [f"u{row % 20};i{row % 30};2021-01-{row % 28 + 1:02d}" for row in range(120)],
    "wer;was;stern1;wann": [f"u{row % 20};i{row % 30};3;{1_600_000_000 + row}" for row in range(120)],
    "Note;Kunde;Buch;Sterne": [f"x;k{row};b{row};4" for row in range(120)],
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_no_interaction(write: Write, header: str) -> None:
    """It was read by position: users and items changed places, and the header was one or was left out."""
    rows = "".join(f"{line}\n" for line in HEADERS[header])
    said = refused(write("a.csv", f"{header}\n{rows}"))
    assert "a.csv line 1: looks like a header; say which columns are which with --columns user=NAME,item=NAME" in said
    first, second = header.replace(";", ",").split(",")[:2]
    assert len(load(write("a.csv", f"{header}\n{rows}"), columns=f"user={second},item={first}").user_ids) > 1


@pytest.mark.parametrize(
    "rows",
    [
        "ann,pen\nbob,ink\nann,ink\n",
        "u1,i2\nu1,i3\nu2,i2\n",
        "ann,i2\nbob,i3\n",
        "ann,pen\nb2,i3\nann,i2\n",
        "1,2,4\n2,3,5\n",
        "1,2,3,2021-12-31\n2,3,4,2021-12-30\n",
    ],
)
def test_what_is_read_by_position_is_said(write: Write, rows: str) -> None:
    data = load(write("a.csv", rows))
    assert len(data) == rows.count("\n")
    assert "a.csv: no header: the first column is the user, the second the item" in said_of(data)
    named = load(write("b.csv", "user,item\n1,2\n"))
    assert not any("no header" in line for line in said_of(named))


def test_a_bad_first_row_is_no_header(write: Write) -> None:
    rows = "".join(f"u{row},i{row % 7},4\n" for row in range(300))
    assert len(load(write("a.csv", f"u1,i1,nan\n{rows}"))) == 300
    assert "may have the day or the month first" in refused(write("b.csv", "u,i,3,01/02/2021\nu,j,3,03/04/2021\n"))


FRAME = pd.DataFrame({"who": ["a", "b"], "item": ["x", "y"], "rating": [4.0, 5.0]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"min_rating": "4"}, "min_rating='4' is not a number; give one, such as min_rating=4"),
        ({"min_rating": True}, "min_rating='True' is not a number"),
        ({"min_rating": float("nan")}, "min_rating='nan' is not a number"),
        ({"columns": ["user"]}, "says nothing; write 'user=NAME,item=NAME'"),
        ({"columns": {"user": 0}}, "columns: 'user' is '0'; give the name of a column, as text"),
        ({"columns": {"person": "who"}}, "unknown meaning in --columns 'person'"),
        ({"columns": {"user": "who", "item": "who"}}, "--columns uses 'who' twice"),
        ({"columns": []}, "says nothing"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, Any], said: str) -> None:
    assert said in refused(FRAME, **{"columns": {"user": "who"}} | options)


@pytest.mark.parametrize("least", [4.5, np.float32(4.5), np.int64(5), 5])
def test_a_least_rating_may_be_any_number(least: Any) -> None:
    assert load(FRAME, columns={"user": "who"}, min_rating=least).user_ids.tolist() == ["b"]


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_not_the_current_folder(name: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write("ratings.csv", "user,item\na,x\n").parent)
    assert "no data is named; give the name of a data set, a file or a folder" in refused(name)
    assert len(load(".")) == 1


def test_marks_inside_quotes_part_no_cells(write: Write) -> None:
    path = write("a.csv", '"Name, first";"Item, kind"\n"Lee, Ann";"pen, red"\n"Ray, Bob";"ink"\n')
    for chosen in ({"user": "Name, first", "item": "Item, kind"}, 'user="Name, first",item="Item, kind"'):
        data = load(path, columns=chosen)
        assert data.user_ids.tolist() == ["Lee, Ann", "Ray, Bob"]
        assert data.item_ids.tolist() == ["ink", "pen, red"]
    data = load(write("b.csv", '"a|b"|"c, d"|3,5\n"e, f"|"c, d"|4,5\n'))
    assert data.user_ids.tolist() == ["a|b", "e, f"]


@pytest.mark.parametrize("encoding", ["shift_jis", "gbk"])
def test_text_of_another_encoding_is_not_said_to_be_in_two(write: Write, encoding: str) -> None:
    said = refused(write("a.csv", "user,item\n" + "一二三顧客四五,六七東京八九十\n" * 20, encoding=encoding))
    assert "save it as UTF-8" in said
    assert "though other lines are" not in said

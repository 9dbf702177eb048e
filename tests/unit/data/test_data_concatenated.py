"""Files that are read wrongly where one looks at a first line, one part or one value alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedrec.data.load import load
from fedrec.errors import BadInput


def table(path: Path, mark: str, users: int = 20, items: int = 10) -> Path:
    """Ratings with decimal commas, without a header."""
    rows = [(user, item) for user in range(users) for item in range(items) if (user + item) % 3]
    path.write_text("".join(f"{u}{mark}{i}{mark}{1 + u % 5},5{mark}{1_600_000_000 + i}\n" for u, i in rows))
    return path


@pytest.mark.parametrize("mark", ["|", " ", ";", "\t"])
def test_decimal_commas_do_not_part_cells(tmp_path: Path, mark: str) -> None:
    data = load(str(table(tmp_path / "ratings.txt", mark)), min_interactions=1)
    assert (len(data.user_ids), len(data.item_ids)) == (20, 10)


def test_commas_part_cells_where_a_cell_has_blanks_or_bars(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("".join(f"user {u},item|{i},4\n" for u in range(5) for i in range(5)))
    data = load(str(path), min_interactions=1)
    assert set(data.user_ids) == {f"user {u}" for u in range(5)}
    assert set(data.item_ids) == {f"item|{i}" for i in range(5)}


@pytest.mark.parametrize("mark", [" ", "::"])
def test_quotes_do_not_become_part_of_ids(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "ratings.txt"
    rows = [('"user"', '"item"', '"rating"')] + [(f'"u{u}"', f'"i{i}"', "3") for u in range(5) for i in range(5)]
    path.write_text("".join(mark.join(row) + "\n" for row in rows))
    with pytest.raises(BadInput, match="line 1: ids in quotes"):
        load(str(path), min_interactions=1)


def test_files_with_marks_put_behind_one_another(tmp_path: Path) -> None:
    one = b"\xef\xbb\xbfuser,item\n" + b"".join(b"u%d,i%d\n" % (u, i) for u in range(3) for i in range(5))
    two = b"\xef\xbb\xbf" + b"".join(b"v%d,i%d\n" % (u, i) for u in range(3) for i in range(5))
    (tmp_path / "both.csv").write_bytes(one + two)
    data = load(str(tmp_path / "both.csv"), min_interactions=1)
    assert sorted(data.user_ids) == ["u0", "u1", "u2", "v0", "v1", "v2"]


@pytest.mark.parametrize("header", ["item,user", "user,item", ""])
def test_parts_of_a_split_have_one_order(tmp_path: Path, header: str) -> None:
    for part, steps in {"train": (0, 1, 2), "valid": (5,), "test": (7,)}.items():
        rows = [(f"u{u}", f"i{(u + step) % 12}") for u in range(12) for step in steps]
        swapped = header == "item,user"
        text = "".join(f"{i},{u}\n" if swapped else f"{u},{i}\n" for u, i in rows)
        (tmp_path / f"{part}.csv").write_text((header + "\n" if header and part == "train" else "") + text)
    if header == "item,user":
        with pytest.raises(
            BadInput, match=r"train\.csv says that its columns are item, user, but valid\.csv has no header"
        ):
            load(str(tmp_path), min_interactions=1)
    else:
        assert len(load(str(tmp_path), min_interactions=1).user_ids) == 12


@pytest.mark.parametrize(("kind", "largest"), [("float16", 2**11 - 1), ("float32", 2**24 - 1), ("float64", 2**53)])
def test_ids_that_a_short_number_cannot_tell_apart(kind: str, largest: int) -> None:
    frame = pd.DataFrame({"user": np.array([largest, largest - 1, largest - 2]).astype(kind), "item": ["a", "b", "c"]})
    assert str(largest) in set(load(frame, min_interactions=1).user_ids)
    frame["user"] = np.array([largest + 2, 1, 2]).astype(kind)
    with pytest.raises(BadInput, match=f"larger than what (half|float|double|{kind}).* holds exactly"):
        load(frame, min_interactions=1)


def test_an_id_with_a_carriage_return_could_not_be_named_again(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(b"user,item\n" + b"".join(b'"u\r%d",i%d\n' % (u, i) for u in range(5) for i in range(5)))
    with pytest.raises(BadInput, match="a carriage return in the user id"):
        load(str(path), min_interactions=1)


@pytest.mark.parametrize(
    ("train", "valid", "said"),
    [
        ("1600000000", "1600000000000", "seconds since 1970, those of valid.csv milliseconds since 1970"),
        ("1600000000000", "5", "milliseconds since 1970, those of valid.csv numbers"),
        ("31.01.2021", "01/31/2021", "dates, day first, those of valid.csv dates, month first"),
        ("2021-01-31", "7", "ISO dates, those of valid.csv numbers"),
        ("2021-01-31", "1612051200", None),
        ("2021-01-31", "31.01.2021", None),
        ("1600000000", "0", None),
    ],
)
def test_times_of_all_parts_are_in_one_unit(tmp_path: Path, train: str, valid: str, said: str | None) -> None:
    for part, item, when in (("train", "a", train), ("train", "b", train), ("valid", "c", valid), ("test", "d", train)):
        with (tmp_path / f"{part}.csv").open("a") as file:
            file.writelines([] if file.tell() else ["user,item,time\n"])
            file.writelines(f"{user},{item},{when}\n" for user in range(5))
    if said is None:
        assert len(load(str(tmp_path), min_interactions=1).user_ids) == 5
    else:
        with pytest.raises(BadInput, match=f"times of train.csv are {said}"):
            load(str(tmp_path), min_interactions=1)

"""Numbers, times and titles of people's own tables: what a comma, a unit and an empty cell mean."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from data_files import Write, refused
from fedrec.data.describe import said_of
from fedrec.data.load import load


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
    said = "rating '1,050' may have a decimal comma or one between thousands: write 1.05 or 1050"
    assert f"line 502: {said}" in refused(write("a.csv", table(ratings, ";")))
    assert said in refused(pa.table({"user": ["a", "b"], "item": ["x", "y"], "rating": ["1,050", "2"]}))

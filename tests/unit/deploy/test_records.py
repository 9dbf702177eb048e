"""Letters as Flower's records: few objects for small ones, and nothing but a letter is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flwr.app import ConfigRecord, RecordDict

from fedrec.deploy.flower.records import from_records, to_records
from fedrec.deploy.messages.plain_values import BadLetter

PLAIN: Any = ({"kind": "ask", "run": "r"}, {"positions": b"\x00\x01", "download": b"", "asked": b"abc"})


@pytest.mark.parametrize("small", [0, 4, 5, 1 << 20])
def test_small_and_large_letters_come_back_as_they_were(small: int) -> None:
    assert from_records(to_records(PLAIN, small)) == PLAIN
    assert from_records(to_records(({"kind": "heard"}, {}), small)) == ({"kind": "heard"}, {})


def test_a_small_letter_is_one_record() -> None:
    assert len(to_records(PLAIN)) == 1
    assert len(to_records(PLAIN, 4)) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"parts": json.dumps({"lengths": {"positions": 2, "asked": 2}})},
        {"parts": json.dumps({"lengths": {"positions": 2, "asked": 4}})},
        {"parts": json.dumps({"lengths": {"positions": 7, "asked": -2}})},
        {"parts": json.dumps({"lengths": {"positions": True, "asked": 4}})},
        {"parts": json.dumps({"lengths": [2, 3]})},
        {"parts": json.dumps([2, 3])},
        {"parts": "{"},
        {"bytes": "abcde"},
        {"json": b"{}"},
    ],
)
def test_what_is_no_letter_is_refused(changed: dict[str, Any]) -> None:
    whole = dict(to_records(PLAIN).config_records["letter"])
    with pytest.raises(BadLetter):
        from_records(RecordDict({"letter": ConfigRecord(whole | changed)}))
    whole.pop(next(iter(changed)))
    with pytest.raises(BadLetter):
        from_records(RecordDict({"letter": ConfigRecord(whole)}))

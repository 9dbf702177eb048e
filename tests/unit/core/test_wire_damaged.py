"""Bytes that are not the message they claim to be: one kind of error, and memory only for what is there."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from fedrec.core import wire
from fedrec.core.messages import Rows
from fedrec.core.misfit import Misfit
from fedrec.methods._shared.embedding import ItemUpload
from fedrec.privacy.compressed import FORMS, Compressed, LowRank, Quantised, QuantisedRows, TopK

HUGE = 1 << 28
MOST = 8 << 20
"""Bytes that refusing a few hundred may take, imports and all."""


def message(arrays: dict[str, Any], nested: dict[str, str] | None = None, **about: Any) -> bytes:
    said = {"type": "ItemUpload", "form": {}, "nested": nested or {}, **about}
    return save(arrays, metadata={"fedrec": json.dumps(said)})


def raw(header: Any, behind: bytes = b"", size: int | None = None) -> bytes:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return (len(text) if size is None else size).to_bytes(8, "little") + text + behind


def entry(**other: Any) -> dict[str, Any]:
    about = {"fedrec": json.dumps({"type": "ItemUpload", "nested": {}})}
    return {"__metadata__": about, "rows.dense": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **other}}


def empty(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


ONE = np.zeros((1, 3, 2), np.float32)
ROWS = {
    "rows.start": np.array([0, 1]),
    "rows.ids": np.zeros(1, np.int32),
    "rows.values": np.zeros((1, 2), np.float32),
    "rows.n_items": np.array([3]),
}

DAMAGED: dict[str, bytes] = {
    "nothing": b"",
    "short": b"\x01",
    "a header that is not there": raw(b"", size=1 << 62),
    "a header of white space": raw(b" " * 100),
    "a header too long": raw(b" " * (2 << 20)),
    "deep": raw(b"[" * 100_000),
    "deep metadata": raw({"__metadata__": {"fedrec": "[" * 100_000}}),
    "a list": raw([1, 2]),
    "a number of 5,000 digits": raw(b"9" * 5000),
    "too many arrays": raw({f"a{n}": 1 for n in range(2000)}),
    "no metadata": raw({"a": 1}),
    "an odd type": raw(entry(dtype="BF16"), b"\x00" * 4),
    "a type that is a list": raw(entry(dtype=["F32"]), b"\x00" * 4),
    "a shape of no numbers": raw(entry(shape=["1"]), b"\x00" * 4),
    "a shape below zero": raw(entry(shape=[-1]), b"\x00" * 4),
    "a shape of truth": raw(entry(shape=[True]), b"\x00" * 4),
    "a shape beyond its bytes": raw(entry(shape=[HUGE, HUGE]), b"\x00" * 4),
    "offsets beyond the end": raw(entry(data_offsets=[0, 1 << 40]), b"\x00" * 4),
    "offsets that go back": raw(entry(data_offsets=[4, 0]), b"\x00" * 4),
    "twenty axes": raw(entry(shape=[1] * 20), b"\x00" * 4),
    "clients without numbers": message(
        {"rows.dense": np.zeros((HUGE, 3, 0), np.float32), "rows.n_items": np.array([3])}
    ),
    "items without numbers": message(
        {"rows.dense": np.zeros((1, HUGE, 0), np.float32), "rows.n_items": np.array([HUGE])}
    ),
    "other items than it says": message({"rows.dense": ONE, "rows.n_items": np.array([4])}),
    "n_items of two numbers": message({"rows.dense": ONE, "rows.n_items": np.array([3, 3])}),
    "n_items that floats": message({"rows.dense": ONE, "rows.n_items": np.array([3.0])}),
    "tables of whole numbers": message({"rows.dense": ONE.astype(np.int32), "rows.n_items": np.array([3])}),
    "a field too few": message({}),
    "a field too many": message({**ROWS, "extra": ONE}),
    "a key without an end": message({**ROWS, "networks[w": ONE}),
    "ids of 64 bits": message({**ROWS, "rows.ids": np.zeros(1, np.int64)}),
    "starts that float": message({**ROWS, "rows.start": np.zeros(2)}),
    "values with one axis": message({**ROWS, "rows.values": np.zeros(1, np.float32)}),
    "another type": message(ROWS, type="Private"),
    "a type that is no text": message(ROWS, type=[1]),
    "a form there is not": message(ROWS, {"rows": "Callable"}),
    "a form within a form": message(ROWS, {"rows": "LowRank", "rows.left": "LowRank"}),
    "forms as a list": message(ROWS, nested=["rows"]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_bytes_are_one_kind_of_error(name: str) -> None:
    wire.decode(ItemUpload, message(ROWS), FORMS)  # imports are not counted
    tracemalloc.start()
    with pytest.raises(wire.WireError):
        wire.decode(ItemUpload, DAMAGED[name], FORMS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST + 20 * len(DAMAGED[name])


def test_numbers_beyond_32_bits_become_infinite_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    data = message({**ROWS, "rows.values": np.full((1, 2), 1e300)})
    assert np.isinf(wire.decode(ItemUpload, data).rows.values).all()
    assert not recwarn.list


def top_k(**other: Any) -> TopK:
    sound = {
        "start": np.array([0, 2]), "indices": np.array([1, 5], np.int32), "values": np.ones(2, np.float32),
        "shape": np.array([3, 2]), "table": True,
    }  # fmt: skip
    return TopK(**{**sound, **other})


def low_rank(rank: int, height: int, width: int, entries: int = 1) -> LowRank:
    return LowRank(np.zeros((entries, height, rank), np.float32), np.zeros((entries, rank, width), np.float32))


def rows(width: int, n_items: int = 3) -> Rows:
    return Rows(np.array([0, 1]), np.zeros(1, np.int32), np.zeros((1, width), np.float32), n_items)


def factors(rank: int) -> Any:
    return np.zeros((1, rank, 2), np.float32)


FOLDED: dict[str, tuple[Compressed, bool]] = {
    "top-k shape": (top_k(shape=np.array([1 << 40])), True),
    "top-k shape below zero": (top_k(shape=np.array([-3, -2])), True),
    "top-k index": (top_k(indices=np.array([1, 6], np.int32)), True),
    "top-k index below zero": (top_k(indices=np.array([-1, 5], np.int32)), True),
    "top-k order": (top_k(indices=np.array([5, 1], np.int32)), True),
    "top-k twice": (top_k(indices=np.array([5, 5], np.int32)), True),
    "top-k start": (top_k(start=np.array([0, 1 << 40])), True),
    "top-k start back": (top_k(start=np.array([0, 5, 2])), True),
    "top-k clients": (top_k(start=np.array([0, 1, 2])), True),
    "top-k lengths": (top_k(values=np.ones(3, np.float32)), True),
    "top-k table": (top_k(table=False), True),
    "low rank of none": (low_rank(0, 1 << 14, 1 << 14), False),
    "low rank, large": (low_rank(1, 1 << 14, 1 << 14), False),
    "low rank, clients": (low_rank(1, 3, 2, entries=4), False),
    "low rank, rank": (low_rank(9, 3, 2), False),
    "low rank, rows": (LowRank(rows(1, n_items=1 << 40), factors(1)), True),
    "low rank, rows of none": (LowRank(rows(0), factors(0)), True),
    "low rank, widths": (LowRank(rows(2), factors(1)), True),
    "low rank, rows for an array": (LowRank(rows(1), factors(1)), False),
    "codes": (Quantised(np.zeros((HUGE, 3, 0), np.int8), np.zeros(1, np.float32), True), True),
    "codes, wide": (Quantised(np.zeros((1, 3, 2), np.int64), np.zeros(1, np.float32), True), True),
    "codes, scale": (Quantised(np.zeros((1, 3, 2), np.int8), np.zeros((1, 4), np.float32), True), True),
    "coded rows, items": (
        QuantisedRows(np.array([0, 1]), np.zeros(1, np.int32), np.zeros((1, 2), np.int8), np.ones(1, np.float32), HUGE),
        True,
    ),
    "coded rows, ids": (
        QuantisedRows(np.array([0, 1]), np.full(1, 3, np.int32), np.zeros((1, 2), np.int8), np.ones(1, np.float32), 3),
        True,
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_forms_are_refused_before_they_unfold(name: str) -> None:
    form, table = FOLDED[name]
    tracemalloc.start()
    with pytest.raises(Misfit):
        form.require("rows", 1, (3, 2), table)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST


def test_sound_forms_are_taken() -> None:
    top_k().require("rows", 1, (3, 2), True)
    low_rank(1, 3, 2).require("w", 1, (3, 2), False)
    LowRank(rows(1), factors(1)).require("rows", 1, (3, 2), True)

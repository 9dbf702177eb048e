"""A search's packed data may lie in a folder of somebody else's: it is looked at before memory is taken."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.experiment.tune import packed

SETTINGS = resolve("fedavg", {"data": "demo"})


def member(shape: tuple[int, ...], kind: str, content: bytes) -> bytes:
    file = io.BytesIO()
    described: Any = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue() + content


def changed(path: Path, name: str, content: bytes, how: int = zipfile.ZIP_DEFLATED) -> None:
    """The same file with another member."""
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w", how) as archive:
        for one, data in (parts | {name: content}).items():
            archive.writestr(one, data)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    packed.pack(tmp_path / "data.npz", SETTINGS)
    return tmp_path / "data.npz"


def test_what_was_packed_is_unpacked(data: Path) -> None:
    task, people = packed.unpack(data, SETTINGS)
    assert len(task.data.users) > 1_000
    assert people is not None


def never(*_: object, **__: object) -> None:
    raise AssertionError("the file is read")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "zeros": (lambda at: changed(at, "users.npy", member((1 << 24,), "<i8", bytes(1 << 27))), "holds more than 64 MiB"),
    "a long shape": (lambda at: changed(at, "users.npy", member((1 << 60,), "<i8", b"")), "is damaged"),
    "a shape of nothing": (lambda at: changed(at, "user_ids.npy", member((1 << 60,), "<U0", b"")), "is damaged"),
    "objects": (lambda at: changed(at, "titles.npy", member((1,), "|O", b"x" * 8)), "is damaged"),
    "a foreign array": (lambda at: changed(at, "other.npy", member((1,), "<i8", bytes(8))), "is damaged"),
    "no array": (lambda at: changed(at, "users.npy", b"words"), "is damaged"),
    "packed in another way": (lambda at: changed(at, "times.npy", b"", zipfile.ZIP_LZMA), "is damaged"),
    "no archive": (lambda at: at.write_bytes(b"words"), "is damaged"),
    "cut": (lambda at: at.write_bytes(at.read_bytes()[:-100]), "is damaged"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_too_large_or_none_is_refused_before_it_is_read(
    data: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil, said = BROKEN[case]
    spoil(data)
    if case != "objects":  # numpy refuses these itself, before it reads them
        monkeypatch.setattr(np, "load", never)
    with pytest.raises(BadInput, match=said):
        packed.unpack(data, SETTINGS)


def test_bytes_changed_anywhere_are_refused_or_read(data: Path) -> None:
    sound, rng = data.read_bytes(), np.random.default_rng(0)
    for _ in range(100):
        spoilt = bytearray(sound)
        spoilt[int(rng.integers(len(spoilt)))] ^= int(rng.integers(1, 256))
        data.write_bytes(spoilt)
        try:
            packed.unpack(data, SETTINGS)
        except BadInput as problem:
            assert "is damaged" in str(problem)  # noqa: PT017

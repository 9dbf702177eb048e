"""What a model's folder says of its items and users is checked before it takes memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec.core.state import BadState
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.runs import known


@pytest.fixture(scope="module")
def written() -> tuple[dict[str, Any], dict[str, Any]]:
    prepared = prepare(resolve("popularity", {"data": "demo"}))
    return known.stored(known.known_of(prepared.task, prepared.people), "train")


def with_texts(written: Any, name: str, change: Any) -> Any:
    value, about = written
    texts = known._unpacked(value[name])
    change(texts)
    return known.restored({**value, name: known._packed(texts)}, about)


@pytest.mark.parametrize("name", ["items", "users"])
@pytest.mark.parametrize("one", ["i" * 10_000, "a\0b", "twice"])
def test_ids_are_those_of_data(written: Any, name: str, one: str) -> None:
    """A table of ids is as wide as the widest: one of 30 MB asked for 18 GB."""

    def changed(texts: list[str]) -> None:
        texts[3] = one
        texts[4] = one if one == "twice" else texts[4]

    with pytest.raises(BadState, match="an id in it"):
        with_texts(written, name, changed)
    assert with_texts(written, name, lambda _: None).item_ids.dtype.itemsize <= 4 * 256


def test_every_item_has_a_title(written: Any) -> None:
    with pytest.raises(BadState, match="titles"):
        with_texts(written, "titles", lambda texts: texts.pop())
    assert isinstance(with_texts(written, "titles", lambda _: None).titles, np.ndarray)

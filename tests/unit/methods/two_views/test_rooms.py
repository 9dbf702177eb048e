"""Memory for results is used again, and never while somebody holds a part of them."""

from __future__ import annotations

import pytest

from fedrec.core.messages import Float32
from fedrec.methods.two_views import rooms


def address(array: Float32) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_room_comes_back_when_its_last_part_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "LARGE", 8)
    monkeypatch.setattr(rooms, "_free", [])
    first = rooms.room((4, 8), "cpu")
    part, where = first[2:].reshape(-1)[3:], address(first)
    part[:] = 5
    del first
    second = rooms.room((4, 8), "cpu")
    assert address(second) != where, "a part is still held"
    assert (part == 5).all()
    del part
    third = rooms.room((3, 10), "cpu")
    assert address(third) == where, "a little smaller fits"
    assert third.flags.writeable
    del third
    rooms.room((100, 8), "cpu")
    assert all(len(memory) != 32 for memory in rooms._free), "what fits no more goes back to the system"


def test_small_rooms_are_the_allocators() -> None:
    assert rooms.room((3, 4), "cpu").base is None

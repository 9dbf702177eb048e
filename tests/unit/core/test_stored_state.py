"""State and back: only expected classes are made, by a name in a table, with fields of the right kind."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from fedrec.core.kinds import Kinds, Parts, fits, state_name
from fedrec.core.state import BadState, expect, flatten, unflatten

Array = NDArray[np.float32]
made: list[str] = []


@dataclass(frozen=True)
class Inner:
    table: Array
    step: int = 0


@dataclass(frozen=True)
class Wider(Inner):
    more: float = 0.5


@dataclass(frozen=True)
class Server:
    inner: Inner
    many: tuple[Inner, ...] = ()
    by_name: dict[str, Array] = field(default_factory=dict)
    mode: Literal["a", "b"] = "a"
    maybe: Array | None = None


@dataclass(frozen=True)
class Unasked:
    """Would be noticed if it were made."""

    table: Any = None

    def __post_init__(self) -> None:
        made.append("Unasked")


class Elsewhere:
    """Another class that is called Server too, as it may be in another file."""

    @dataclass(frozen=True)
    class Server:
        users: Array


def sample() -> Server:
    table = np.arange(4, dtype=np.float32)
    return Server(Inner(table, 3), (Inner(table + 1), Wider(table + 2, 1, 0.25)), {"w/1": table + 3}, "b", None)


def same(left: Any, right: Any) -> None:
    a, b = flatten(left), flatten(right)
    assert a[1] == b[1]
    for name in a[0]:
        np.testing.assert_array_equal(a[0][name], b[0][name])


def test_a_value_comes_back_from_what_is_expected() -> None:
    arrays, structure = flatten({"server": sample(), "taken": {"a": 1}})
    back = unflatten(arrays, structure, expect(server=sample(), taken=dict[str, int]))
    same(back, {"server": sample(), "taken": {"a": 1}})
    assert isinstance(back["server"].many[1], Wider)


def test_a_class_is_known_by_its_type_alone_but_a_subclass_must_be_seen() -> None:
    plain = dataclasses.replace(sample(), many=(Inner(np.zeros(1, np.float32)),))
    same(unflatten(*flatten(plain), expect(Server)), plain)
    with pytest.raises(BadState, match="'Wider', which is not among Inner, Server"):
        unflatten(*flatten(sample()), expect(Server))


def test_classes_of_one_name_are_told_apart_by_where_they_stand() -> None:
    other = Elsewhere.Server(np.ones(2, np.float32))
    assert state_name(Server) == state_name(Elsewhere.Server)
    value = {"server": sample(), "private": other}
    back = unflatten(*flatten(value), expect(**value))
    assert isinstance(back["private"], Elsewhere.Server)
    with pytest.raises(BadState):
        unflatten(*flatten({"server": other, "private": sample()}), expect(**value))


def test_no_name_makes_anything_that_is_not_expected() -> None:
    arrays, structure = flatten(Unasked())
    made.clear()
    names = ["Unasked", f"{__name__}:Unasked", "test_stored_state:Unasked", "Unasked.__init__", "Server.inner"]
    for name in [*names, "Elsewhere.Server", "fedrec.core.kinds:Kinds", ""]:
        hostile = json.dumps({**json.loads(structure), "class": name})
        for expected in (expect(Server), expect(sample()), expect(Any)):
            with pytest.raises(BadState):
                unflatten(arrays, hostile, expected)
    assert made == []


def test_a_users_own_class_is_found_where_0_1_0_wrote_that_it_lies() -> None:
    arrays, structure = flatten(sample().inner)
    old = structure.replace('"Inner"', f'"{Inner.__module__}:{Inner.__qualname__}"')
    assert old != structure
    same(unflatten(arrays, old, expect(Inner)), sample().inner)


def test_a_renamed_class_keeps_its_state_name() -> None:
    @dataclass(frozen=True)
    class Renamed:
        state_name = "Inner"
        table: Array
        step: int = 0

    @dataclass(frozen=True)
    class Below(Renamed):
        """A subclass has a name of its own."""

    back = unflatten(*flatten(sample().inner), expect(Renamed))
    assert isinstance(back, Renamed)
    assert state_name(Below) == "Below"


def test_a_field_that_came_later_has_its_default_and_one_without_must_be_there() -> None:
    spec = {"class": "Inner", "fields": {"table": {"array": "/t"}}}
    back = unflatten({"/t": np.zeros(2, np.float32)}, json.dumps(spec), expect(Inner))
    assert back.step == 0
    with pytest.raises(BadState, match="lacks the field 'table'"):
        unflatten({}, json.dumps({"class": "Inner", "fields": {}}), expect(Inner))


def test_arrays_that_belong_to_nothing_are_refused() -> None:
    arrays, structure = flatten(sample())
    with pytest.raises(BadState, match="'/more' belongs to nothing"):
        unflatten({**arrays, "/more": np.zeros(1)}, structure, expect(sample()))


def test_keys_with_slashes_do_not_meet() -> None:
    value = {"a/b": np.zeros(1, np.float32), "a": {"b": np.ones(1, np.float32)}}
    same(unflatten(*flatten(value)), value)


def test_a_class_that_refuses_its_fields_is_a_bad_state() -> None:
    @dataclass(frozen=True)
    class Picky:
        n: int

        def __post_init__(self) -> None:
            if self.n < 0:
                raise ValueError("negative")

    with pytest.raises(BadState, match="Picky refuses its fields"):
        unflatten({}, json.dumps({"class": "Picky", "fields": {"n": {"plain": -1}}}), expect(Picky))


@pytest.mark.parametrize(
    ("value", "hint", "wanted"),
    [
        (1, int, True), (True, int, False), (1.0, int, False), (1 << 70, int, False), (1, float, True),
        (float("nan"), float, True), (1 << 2000, float, False), (True, float, False), ("1", float, False),
        (np.zeros(1), Array, True), (np.zeros(1), float, False), (3, Array, False), (None, Array | None, True),
        (None, Array, False), ("a", Literal["a", "b"], True), ("c", Literal["a", "b"], False),
        (np.zeros(2), Literal["a"], False), ({"a": 1}, dict[str, int], True), ({"a": "1"}, dict[str, int], False),
        ([1], dict[str, int], False), ([1, 2], list[int], True), ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False), ((1, 2, 3), tuple[int, ...], True), ("ab", tuple[str, ...], False),
        (object(), Any, True), (3, np.int64, True), ([3], np.int64, False), (None, None, True), (0, None, False),
        ({"a": 1}, Parts({"a": int}), True), ({"a": 1, "b": 2}, Parts({"a": int}), False),
        ({}, Parts({"a": int}), False), (None, Parts({"a": int}), False),
        (None, Parts({"a": int}, optional=True), True),
    ],
)  # fmt: skip
def test_what_fits(value: Any, hint: Any, wanted: bool) -> None:
    assert fits(value, hint) is wanted


def test_the_table_holds_what_fields_name() -> None:
    assert Kinds(Server).names == ["Inner", "Server"]
    assert Kinds({"x": [sample()]}).names == ["Inner", "Server", "Wider"]
    assert Kinds(dict[str, Inner] | None).names == ["Inner"]

"""Structs of Thrift's compact protocol, in which Parquet writes its descriptions; what is odd in one is refused."""

from __future__ import annotations

from typing import Any

from fedrec.errors import BadInput

Struct = dict[int, Any]
"""Fields by number: whole numbers, bytes, lists and structs; None for numbers of other kinds."""

_DEEPEST = 16
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_NUMBERS, _LISTS = (4, 5, 6), (9, 10)


class BadStruct(BadInput):
    """Bytes that are no struct."""


def struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[Struct, int]:
    """The struct that begins somewhere, and where it ends; :class:`IndexError` where the data ends before."""
    found: Struct = {}
    number = 0
    while True:
        byte, at = data[at], at + 1
        if byte == 0:
            return found, at
        step, kind = byte >> 4, byte & 15
        if step:
            number += step
        else:
            number, at = _signed(data, at)
        if number in found:
            raise BadStruct("a part of its description says something twice")
        found[number], at = (None, at) if kind in (_TRUE, _FALSE) else _value(data, at, kind, depth)


def whole(found: Struct, field: int, bits: int = 31) -> int:
    """A number that a struct must have: not negative, and of so many bits."""
    value = found.get(field)
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise BadStruct("a part of its description lacks a size")
    return value


def structs(found: Struct, field: int) -> list[Struct]:
    """A list of structs that a struct must have."""
    value = found.get(field)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise BadStruct("a part of its description lacks a list")
    return value


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise BadStruct("a part of its description is nested too deep")
    if kind in _NUMBERS:
        return _signed(data, at)
    if kind == _STRUCT:
        return struct(data, at, depth + 1)
    if kind in _LISTS:
        return _list(data, at, depth)
    length = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}.get(kind)
    if kind == _BINARY:
        length, at = _varint(data, at)
    if length is None:
        raise BadStruct("a part of its description is of no known kind")
    if at + length > len(data):
        raise IndexError
    return (data[at : at + length] if kind == _BINARY else None), at + length


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    byte, at = data[at], at + 1
    count, found = byte >> 4, list[Any]()
    if count == 15:
        count, at = _varint(data, at)
    for _ in range(count):
        one, at = _value(data, at, byte & 15, depth + 1)
        found.append(one)
    return found, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    made = 0
    for shift in range(0, 70, 7):
        byte, at = data[at], at + 1
        made |= (byte & 127) << shift
        if byte < 128:
            return made, at
    raise BadStruct("a part of its description has a number without end")


def _signed(data: bytes, at: int) -> tuple[int, int]:
    made, at = _varint(data, at)
    return (made >> 1) ^ -(made & 1), at

"""Several fields of an upload as one vector of ring words, each field with a scale of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.errors import BadInput
from fedrec.secure.randomness import Stream
from fedrec.secure.ring import Bits, Integers, Scale


@dataclass(frozen=True)
class Field:
    """One array of a contribution."""

    name: str
    shape: tuple[int, ...]
    bound: float
    """The largest magnitude of one of its numbers (the clip bound, or what is declared for the field)."""
    noise: float = 0.0
    """The deviation of the noise in each number of the whole sum."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """What a contribution consists of; all participants of a sum must have the same."""

    fields: tuple[Field, ...]
    summands: int
    """The most contributions in one sum: the size of the largest cohort."""
    bits: Bits = 32

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if not names or len(set(names)) < len(names):
            raise BadInput(f"a secure sum needs fields with different names, not {names}")
        if any(field.size < 1 for field in self.fields):
            raise BadInput("a secure sum has no room for empty fields")
        _ = self.scales  # raises where a field does not fit

    @cached_property
    def scales(self) -> dict[str, Scale]:
        return {field.name: Scale(field.bound, self.summands, self.bits, field.noise) for field in self.fields}

    @property
    def noised(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.noise > 0)

    @property
    def length(self) -> int:
        """Numbers in all fields together."""
        return sum(field.size for field in self.fields)

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each field lies in the vector."""
        ends = np.cumsum([field.size for field in self.fields]).tolist()
        return {field.name: slice(end - field.size, end) for field, end in zip(self.fields, ends, strict=True)}

    def encode(self, contribution: Mapping[str, NDArray[np.floating]], rounding: Stream | None = None) -> Integers:
        """One contribution as whole numbers ``[length]``; stochastic rounding where a stream is given."""
        if set(contribution) != set(self.places):
            raise BadInput(f"fields {sorted(contribution)} do not fit the secure sum of {sorted(self.places)}")
        vector = np.empty(self.length, np.int64)
        for field in self.fields:
            values = np.asarray(contribution[field.name])
            if values.shape != field.shape:
                raise BadInput(f"field {field.name!r} has shape {values.shape}, the secure sum's is {field.shape}")
            uniform = None if rounding is None else rounding.uniform(field.size)
            try:
                vector[self.places[field.name]] = self.scales[field.name].encode(values.ravel(), uniform)
            except BadInput as beyond:
                raise BadInput(f"field {field.name!r}: {beyond}; nothing was sent") from None
        return vector

    def decode(self, total: Integers) -> dict[str, NDArray[np.float64]]:
        """The fields of a sum (of a cohort, or of many cohorts)."""
        if total.shape != (self.length,):
            raise BadInput(f"a sum of shape {total.shape} does not fit a layout of {self.length} numbers")
        return {
            field.name: self.scales[field.name].decode(total[self.places[field.name]]).reshape(field.shape)
            for field in self.fields
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Layout:
        fields = tuple(
            Field(str(f["name"]), tuple(int(n) for n in f["shape"]), float(f["bound"]), float(f["noise"]))
            for f in content["fields"]
        )
        return Layout(fields, int(content["summands"]), content["bits"])

"""Quantise: eight bits a number, rounded at random so that the mean is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.messages import Rows
from fedrec.core.method import Keys
from fedrec.privacy.compressed import Compressed, Quantised, QuantisedRows
from fedrec.privacy.draws import KeyedDraws
from fedrec.privacy.fields import Part, Sent, protected, with_fields
from fedrec.privacy.link import Compression
from fedrec.privacy.noise import CHUNK

LEVELS = 127


@dataclass(frozen=True)
class Quantise(Compression):
    """``code = floor(x / s + U)``, U uniform in [0, 1), with the step ``s = max|x| / 127``.

    So E[code * s] = x and the error is below one step. A step belongs to a client's item rows, or to one
    entry (client, user) of an array. ``form`` says whether item rows go as whole tables or as changed rows.
    """

    form: Literal["dense", "rows"] = "dense"

    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        return with_fields(upload, {part.name: self._form(part, block, keys) for part in protected(upload, block)})

    def _form(self, part: Part, block: Block, keys: Keys) -> Compressed:
        draws = KeyedDraws(keys, block, f"rounding {part.name}", part.start)
        content, numbers = part.content, part.numbers
        peak = np.maximum(numbers.max(axis=1, initial=0), -numbers.min(axis=1, initial=0))  # [rows]
        if not isinstance(content, Rows):
            scale = (peak / LEVELS).astype(numbers.dtype)
            return Quantised(_codes(numbers, scale, draws).reshape(content.shape), scale, False)
        highest = np.zeros(block.n_clients, numbers.dtype)
        np.maximum.at(highest, part.owners, peak)
        scale = (highest / LEVELS).astype(numbers.dtype)  # [clients]
        codes = _codes(numbers, scale[part.owners], draws)  # [rows, d]
        if self.form == "rows" or part.listed:
            return QuantisedRows(content.start, content.ids, codes, scale, content.n_items)
        tables = np.zeros((block.n_clients, content.n_items, part.width), np.int8)
        tables[part.owners, content.ids] = codes
        return Quantised(tables, scale, True)


def _codes(numbers: NDArray[np.floating], steps: NDArray[np.floating], draws: KeyedDraws) -> NDArray[np.int8]:
    """``[rows, width]`` codes, given the step of each row; some rows at a time."""
    rows, width = numbers.shape
    codes = np.zeros((rows, width), np.int8)
    at_once = max(1, CHUNK // max(1, width))
    for first in range(0, rows, at_once):
        last = min(rows, first + at_once)
        step = steps[first:last, None].astype(np.float64)
        exact = np.divide(numbers[first:last], step, out=np.zeros((last - first, width)), where=step > 0)
        rounded = np.floor(exact + draws.uniform(first, last, width))
        codes[first:last] = np.clip(rounded, -LEVELS, LEVELS)
    return codes

"""Arrays written as a safetensors file, a piece at a time.

The library's own writer reads every array whole; one that lies on disk would then be in memory all at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.disk_array import forget, pieces

ALIGNED = 8
"""Bytes that the header is a multiple of, so that the first array is aligned."""
KINDS = {
    "?": "BOOL", "b": "I8", "B": "U8", "h": "I16", "H": "U16", "i": "I32", "I": "U32", "l": "I64", "L": "U64",
    "q": "I64", "Q": "U64", "e": "F16", "f": "F32", "d": "F64",
}  # fmt: skip
"""What the format calls the number types of numpy."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write a file that every reader of safetensors can read: widest numbers first, as aligned as those need."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in order:
        array = arrays[name]
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": KINDS[array.dtype.char], "shape": array.shape, "data_offsets": (begin, end)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            array = arrays[name]
            for part in pieces(array) if array.ndim else (...,):
                file.write(np.asarray(array[part], array.dtype.newbyteorder("<")).tobytes())
                forget(array)

"""Nested state (dataclasses, dicts, arrays) as a flat table of arrays and back, for files.

Nothing is pickled: structure is plain JSON, content is arrays, and a class is only restored from the
package itself or from a module the caller names.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

Flat = dict[str, NDArray[Any]]


def flatten(value: Any) -> tuple[Flat, str]:
    """The arrays in a value, and its structure as JSON."""
    arrays: Flat = {}

    def walk(part: Any, path: str) -> Any:
        if part is None or isinstance(part, bool | int | float | str):
            return {"plain": part}
        if isinstance(part, np.generic):
            return {"plain": part.item()}
        if isinstance(part, np.ndarray):
            arrays[path] = np.ascontiguousarray(part)
            return {"array": path}
        if isinstance(part, dict):
            return {"dict": {str(k): walk(v, f"{path}/{k}") for k, v in part.items()}}
        if isinstance(part, list | tuple):
            return {"list": [walk(v, f"{path}/{i}") for i, v in enumerate(part)], "tuple": isinstance(part, tuple)}
        if dataclasses.is_dataclass(part):
            kind = type(part)
            names = [f.name for f in dataclasses.fields(part)]
            content = {n: walk(getattr(part, n), f"{path}/{n}") for n in names}
            return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": content}
        raise TypeError(f"{path or 'state'}: {type(part).__qualname__} cannot be saved")

    structure = walk(value, "")
    return arrays, json.dumps(structure)


def unflatten(arrays: Flat, structure: str, modules: tuple[str, ...] = ()) -> Any:
    """The value whose parts :func:`flatten` gave; classes come from fedrec or from ``modules``."""

    def build(spec: dict[str, Any]) -> Any:
        if "plain" in spec:
            return spec["plain"]
        if "array" in spec:
            return arrays[spec["array"]]
        if "dict" in spec:
            return {k: build(v) for k, v in spec["dict"].items()}
        if "list" in spec:
            made = [build(v) for v in spec["list"]]
            return tuple(made) if spec["tuple"] else made
        module, _, name = spec["class"].partition(":")
        if module.split(".")[0] != "fedrec" and module not in modules:
            raise TypeError(f"state names a class of the module {module!r}, which is not loaded from files")
        kind: Any = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part)
        return kind(**{k: build(v) for k, v in spec["fields"].items()})

    return build(json.loads(structure))

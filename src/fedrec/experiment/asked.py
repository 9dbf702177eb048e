"""What a program asks for, as the command line would say it: sensible values are taken, the rest is bad input."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.errors import BadInput, nearest, quoted
from fedrec.runs.settings import RunSettings

INSTEAD = {"seed": "seeds", "method": "methods"}
"""What takes several has another name than what takes one."""


def one_method(given: Any) -> str:
    """The name of a method."""
    if isinstance(given, str | Path) and str(given):
        return str(given)
    raise BadInput(f"which method? {_brief(given)} is not a name; give one of fedrec.methods()")


def several_methods(given: Any) -> list[str]:
    """Names of methods, or folders of runs; one may stand by itself."""
    if isinstance(given, str | Path):
        return [one_method(given)]
    if not isinstance(given, Iterable):
        raise BadInput(f"which methods? {_brief(given)} is not a list; give names, such as ['fedavg', 'fcf']")
    return [one_method(one) for one in given]


def seeds(given: Any) -> list[int] | None:
    """Seeds out of a list, a range or an array; one may stand by itself."""
    if given is None:
        return None
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for one in found:
        if not isinstance(one, Integral) or isinstance(one, bool) or one < 0:
            raise BadInput(f"seeds={_brief(given)} is not a list of seeds; give whole numbers, such as [0, 1, 2]")
    return [int(one) for one in found]


def jobs(given: Any) -> int:
    """How many runs at once."""
    if not isinstance(given, Integral) or given < 1:
        raise BadInput(f"jobs={_brief(given)} is out of range; give 1 or more")
    return int(given)


def settings_of(given: Any) -> dict[str, Any]:
    """Settings of methods; None is none."""
    if given is not None and not isinstance(given, Mapping):
        raise BadInput(f"settings={_brief(given)} is not a mapping; give names and values, such as {{'dim': 16}}")
    return dict(given or {})


def options(given: Mapping[str, Any], who: str, refused: Collection[str] = ()) -> dict[str, Any]:
    """Options of a run: ``refused`` are those that this caller does not take; None is what was not given."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in refused:
            instead = (
                f"{who} takes {INSTEAD[name]}=[{_brief(value)}]" if name in INSTEAD else f"{who} decides it itself"
            )
            raise BadInput(f"{name}={_brief(value)}: {instead}; leave {name} out")
        field = RunSettings.model_fields.get(name)
        if field is None:
            raise BadInput(f"{who} has no setting {name!r}; {nearest(name, RunSettings.model_fields)}")
        if value is None and field.default is not None:
            continue
        plain = value.item() if isinstance(value, np.generic) else value
        found[name] = columns_text(plain) if name == "columns" and isinstance(plain, Mapping) else plain
    if "settings" in found:
        found["settings"] = settings_of(found["settings"])
    return found


def columns_text(columns: Mapping[Any, Any]) -> str:
    """``{"user": "K"}`` as ``user=K``, which a run writes down.

    >>> columns_text({"user": "CustomerID", "item": "SKU"})
    'user=CustomerID,item=SKU'
    >>> columns_text({"user": "Name, first", "item": "SKU"})
    'user="Name, first",item=SKU'
    """
    for name in columns.values():
        if not isinstance(name, str) or '"' in name or name != name.strip():
            raise BadInput(
                f"columns: {_brief(name)} cannot be written down; rename it, or read the data with fedrec.load"
            )
    return ",".join(f'{what}="{name}"' if "," in name else f"{what}={name}" for what, name in columns.items())


def named_data(data: Any) -> str:
    """Data that is read again later: its name or its file. What a table holds is not said."""
    if isinstance(data, str | Path):
        return str(data)
    if data is None:
        raise BadInput("which data? give a name or a file")
    raise BadInput(f"data of type {type(data).__name__} can be given to fedrec.run only; here give a name or a file")


def _brief(value: Any) -> str:
    """A value in a message, cut; of what may hold ids, its kind alone."""
    plain = isinstance(value, str | int | float | list | tuple | None)
    return quoted(value, 60) if plain else f"a value of type {type(value).__name__}"

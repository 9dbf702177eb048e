"""What of the options of a whole comparison applies to one kind of method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrec.core.reference import Reference


def fitting(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The run's settings without those that this kind of method has no use for."""
    found = dict(given)
    if issubclass(kind, Reference):  # there is nothing to federate, nor to hide
        hidden = ("epsilon", "delta") if given.get("epsilon") is not None else ()
        for name in ("runtime", "secure", *hidden, *(("rounds",) if kind.one_shot else ())):
            found.pop(name, None)
    if kind.name == "local":  # a table for every client: a second copy costs much, and nobody asks it for items
        found["keep_selected"] = False
    return found

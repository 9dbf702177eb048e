"""JSON as every program reads it: a number that is none (a mean over nobody) is ``null``, not ``NaN``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def plain_json(value: Any) -> str:
    """A value as indented JSON with a newline at its end."""
    return json.dumps(without_nan(value), indent=2, allow_nan=False) + "\n"


def without_nan(value: Any) -> Any:
    """The same value with None for every number that JSON cannot say.

    >>> without_nan({"HR@10": float("nan"), "rounds": [1, 0.5, float("inf")]})
    {'HR@10': None, 'rounds': [1, 0.5, None]}
    """
    if isinstance(value, Mapping):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def metrics_with_nan(found: dict[str, Any]) -> dict[str, Any]:
    """A result as it was before it was written: NaN for each metric that is null."""
    metrics = found.get("metrics")
    if not isinstance(metrics, dict):
        return found
    parts = {
        part: {name: math.nan if value is None else value for name, value in values.items()}
        if isinstance(values, dict)
        else values
        for part, values in metrics.items()
    }
    return {**found, "metrics": parts}

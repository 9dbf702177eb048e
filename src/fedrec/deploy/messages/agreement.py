"""What all members of a secure sum must have trained with: a digest that stands in the plan and that each one checks.

A server that told its nodes different things could have the sum of one: with a clip of nothing for all others, say. So
a plan names the run's settings and what everybody was sent alike, and a node joins where it trained with just that.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from fedrec.core.messages import Axis, fields_of
from fedrec.core.settings import build
from fedrec.runs.settings import RunSettings

OF_THE_MACHINE = {"data_dir", "device", "memory_mb"}
"""What each machine has for itself."""


def agreement(settings: RunSettings | dict[str, Any], download: Any) -> str:
    """A digest of a run's settings and of the part of a download that is the same for all clients."""
    whole = build(RunSettings, settings, "the run") if isinstance(settings, dict) else settings
    plain = whole.model_dump(mode="json", exclude=OF_THE_MACHINE)
    found = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name, axis, content in fields_of(download):
        if axis is Axis.SHARED:
            entries = sorted(content.items()) if isinstance(content, dict) else [("", content)]
            for key, entry in entries:
                numbers = isinstance(entry, np.ndarray)
                head = [name, key, str(entry.dtype), entry.shape] if numbers else [name, key, repr(entry)]
                found.update(json.dumps(head).encode())
                found.update(np.ascontiguousarray(entry).tobytes() if numbers else b"")
    return found.hexdigest()

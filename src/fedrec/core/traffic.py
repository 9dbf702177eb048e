"""How many bytes clients receive, the same count in every runtime."""

from __future__ import annotations

import dataclasses

from fedrec.core.messages import Axis, Download, fields_of
from fedrec.core.wire import Form, payload


def download_bytes(download: Download, form: Form, clients: int) -> int:
    """Download bytes of so many clients: each receives the shared fields and its own personal ones."""
    total = 0
    for name, axis, _ in fields_of(download):
        others = {other: None for other, _, _ in fields_of(download) if other != name}
        size = payload(dataclasses.replace(download, **others), form)  # type: ignore[type-var]
        total += size * clients if axis is Axis.SHARED else size
    return total

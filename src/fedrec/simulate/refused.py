"""What no client may send: numbers that are none, or so large that the server could not add up their squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrec.core.block import Block
from fedrec.core.messages import Rows, opened
from fedrec.core.method import Update
from fedrec.core.misfit import MAGNITUDE

TRAINED = "after local training; a smaller lr usually helps"
SENT = "as it is sent; less noise, or precision=float32, helps"


def check_update(method: str, update: Update[Any, Any], block: Block, names: Sequence[str]) -> None:
    """Refuse what would poison the sum, or a loss that would spoil the record; the client and the field are named."""
    check_upload(method, update.upload, block, names, TRAINED)
    sound = np.isfinite(update.loss)
    if not sound.all():
        who = _client(block, int(np.argmin(sound)), names)
        raise FloatingPointError(f"{method}: the loss of {who} is not finite {TRAINED}")


def check_upload(method: str, upload: Any, block: Block, names: Sequence[str], when: str) -> None:
    """The same of an upload alone, after training or as it arrives."""
    for name, content in opened(upload):
        values = content.values if isinstance(content, Rows) else content
        if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or not values.size:
            continue
        if values.max() <= MAGNITUDE and values.min() >= -MAGNITUDE:  # false where one is NaN
            continue
        sound = np.abs(values.reshape(len(values), -1)).max(axis=1) <= MAGNITUDE
        place, who = int(np.argmin(sound)), "a client"
        what = "too large" if np.isfinite(values[place]).all() else "not finite"
        if isinstance(content, Rows):
            place = int(np.searchsorted(content.start, place, side="right")) - 1
        if isinstance(content, Rows) or len(values) == block.n_clients:
            who = _client(block, place, names)
        raise FloatingPointError(f"{method}: the upload field {name!r} of {who} is {what} {when}")


def _client(block: Block, place: int, names: Sequence[str]) -> str:
    return f"client {names[int(block.clients[place])]}"

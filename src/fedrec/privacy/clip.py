"""Clip: scale a client's whole update back to a ball, so that no client can move the sum by more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.privacy.fields import Part, Sent, protected, with_fields
from fedrec.privacy.link import Link


@dataclass(frozen=True)
class Clip(Link):
    """``x <- x * min(1, S / ||x||)`` per client, the norm taken over all protected fields together.

    ``bound`` is S, ``norm`` the norm it bounds. An update inside the ball leaves unchanged, zero included. An
    update whose norm is not a finite number, or so large that its factor has lost digits (a client whose training
    diverged), leaves as zeros: nothing else is sure to lie in the ball.
    """

    bound: float
    norm: Literal["l2", "l1"] = "l2"

    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        parts = protected(upload, block)
        norms = norms_of(parts, self.norm, block.n_clients)
        finite, outside = np.isfinite(norms), norms > self.bound
        # Rounding each product may add half a unit in the last place; this keeps the result in the ball.
        types = [np.finfo(part.numbers.dtype) for part in parts]
        coarsest = max((float(one.eps) for one in types), default=0.0)
        factor = np.ones(block.n_clients)  # [clients]
        np.divide(self.bound * (1 - 2 * coarsest), norms, out=factor, where=finite & outside)
        finite &= factor >= max((float(one.smallest_normal) for one in types), default=0.0)
        if not (outside | ~finite).any():
            return upload

        def scaled(part: Part) -> NDArray[np.floating]:
            owner = part.owners
            numbers = part.numbers * factor.astype(part.numbers.dtype)[owner, None]
            numbers[~finite[owner]] = 0
            return numbers

        return with_fields(upload, {part.name: part.filled(scaled(part)) for part in parts})


def norms_of(parts: list[Part], norm: Literal["l2", "l1"], clients: int) -> NDArray[np.float64]:
    """``[clients]`` norm of each client's update over all its parts, added up in double precision."""
    total = np.zeros(clients)
    for part in parts:
        if norm == "l2":
            by_row = np.einsum("rw,rw->r", part.numbers, part.numbers, dtype=np.float64)
        else:
            by_row = np.abs(part.numbers).sum(axis=1, dtype=np.float64)
        # bincount adds row after row, so a client's norm does not depend on its neighbours in the block
        total += np.bincount(part.owners, by_row, minlength=clients)
    return np.sqrt(total) if norm == "l2" else total

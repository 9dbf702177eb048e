"""Bounds: no change larger than the round's usual one, no row larger than the usual row, no size above the usual."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Rows
from fedrec.core.method import Keys, Reply
from fedrec.privacy.fields import Part
from fedrec.robust.fields import View, weight_fields, with_numbers
from fedrec.robust.median import lower_median
from fedrec.robust.spool import Mapped

PLAUSIBLE = 3.0
"""So many times the 95th percentile of the clients' sizes is the largest that counts."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """Every client's change is scaled back to ``factor`` times the round's median norm, its size capped likewise.

    Sun et al., "Can you really backdoor federated learning?", 2019 (norm thresholding), with the median as threshold.
    A change that is not finite becomes zero. Clients that sent nothing do not count for the median.
    """

    factor: float = 1.0

    def guarded(self, replies: Sequence[Reply[Any]], view: View, keys: Keys) -> Sequence[Reply[Any]]:
        norms = [view.norms(reply) for reply in replies]
        limit = self.factor * lower_median(lambda: norms)
        caps = {name: self.factor * _median_size(replies, name) for name in weight_fields(replies[0].upload)}
        factors = [_factor(norm, limit) for norm in norms]
        return Mapped(replies, lambda place, reply: _capped(view.scaled(reply, factors[place]), caps))


@dataclasses.dataclass(frozen=True)
class RowBound:
    """Every row of an item table's change is scaled back to ``factor`` times the usual client's largest row.

    Recommendation's own: few clients touch a cold item's row, so that a client that spends all its change on that one
    row moves it alone. The usual largest row is the median over the round's clients. Fields that are not item tables
    pass, but sizes by which clients are weighed: one that claims to have everything would weigh as much as a hundred.
    """

    factor: float = 1.0

    def guarded(self, replies: Sequence[Reply[Any]], view: View, keys: Keys) -> Sequence[Reply[Any]]:
        largest = [
            {p.name: _largest_rows(p, len(reply.clients)) for p in view.parts(reply) if is_table(p, view.n_items)}
            for reply in replies
        ]
        names = dict.fromkeys(name for found in largest for name in found)
        limits = {name: self.factor * _usual(largest, name) for name in names}
        caps = {name: _plausible_size(replies, name) for name in weight_fields(replies[0].upload)}

        def bounded(place: int, reply: Reply[Any]) -> Reply[Any]:
            over = {name: ~(found <= limits[name]) for name, found in largest[place].items()}  # what is no number, too
            over = {name: clients for name, clients in over.items() if clients.any()}
            changed = [
                dataclasses.replace(part, numbers=_bounded_rows(part, over[part.name], limits[part.name]))
                for part in (view.parts(reply) if over else ())
                if part.name in over
            ]
            return _capped(view.filled(reply, changed) if changed else reply, caps)

        return Mapped(replies, bounded)


def _usual(largest: Sequence[dict[str, NDArray[np.float64]]], name: str) -> float:
    return lower_median(lambda: (found[name] for found in largest if name in found))


def _bounded_rows(part: Part, over: NDArray[np.bool_], limit: float) -> NDArray[Any]:
    """The part's numbers, the rows of the clients that are ``over`` within the limit; the others' are."""
    scaled = np.array(part.numbers).reshape(-1, _row_width(part))
    rows = np.flatnonzero(over[_row_owners(part)])
    factor = _factor(_norms(scaled[rows]), limit)
    rows, factor = rows[factor < 1], factor[factor < 1]
    each = factor[:, None].astype(scaled.dtype)
    with np.errstate(invalid="ignore"):
        scaled[rows] = np.where(each == 0, 0, scaled[rows] * each)
    return scaled.reshape(part.numbers.shape)


def is_table(part: Part, n_items: int) -> bool:
    """Whether a field is an item table: rows, or an array ``[clients, n_items, d]``."""
    return isinstance(part.content, Rows) or (part.content.ndim == 3 and part.content.shape[1] == n_items)


def _largest_rows(part: Part, clients: int) -> NDArray[np.float64]:
    """``[clients]`` norm of each client's largest row; 0 for those without one."""
    largest = np.zeros(clients)
    np.maximum.at(largest, _row_owners(part), _norms(part.numbers.reshape(-1, _row_width(part))))
    return largest


def _row_width(part: Part) -> int:
    return int(part.numbers.shape[1] if isinstance(part.content, Rows) else part.content.shape[2])


def _row_owners(part: Part) -> NDArray[np.int64]:
    """``[rows]`` which client each item's row belongs to."""
    return np.repeat(part.owners, part.width // max(1, _row_width(part)))


def _norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """``[rows]`` norm of each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.einsum("rw,rw->r", rows, rows, dtype=np.float64)))


def _factor(norms: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """What each norm is multiplied with to be within the limit; 0 where it is no number."""
    factor = np.ones(len(norms))
    outside = norms > limit
    np.divide(limit, norms, out=factor, where=outside & np.isfinite(norms))
    factor[~np.isfinite(norms)] = 0.0
    return factor


def _median_size(replies: Sequence[Reply[Any]], name: str) -> float:
    return lower_median(lambda: (getattr(reply.upload, name) for reply in replies))


def _plausible_size(replies: Sequence[Reply[Any]], name: str) -> float:
    """Few honest clients have more than this, and a dishonest one may claim no more."""
    sizes = np.concatenate([np.asarray(getattr(reply.upload, name), np.float64) for reply in replies])
    return float(PLAUSIBLE * np.quantile(sizes, 0.95, method="lower"))


def _capped(reply: Reply[Any], caps: dict[str, float]) -> Reply[Any]:
    fields = {}
    for name, cap in caps.items():
        sizes = getattr(reply.upload, name)
        most = np.asarray(cap).astype(sizes.dtype)
        if (sizes > most).any():
            fields[name] = np.minimum(sizes, most)
    return with_numbers(reply, fields) if fields else reply

"""Tables compared by what changed in them, and averaged row by row over those clients that trained a row.

Server side, in torch (imported where it is used), slice by slice of the tables, beside :mod:`fedrec.maths.composite`.
``tables`` are ``[clients, n_items, d]``; ``sent`` is what training started from, ``[n_items, d]`` or one a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 1e-8
"""Weight of a row's clients below which nobody counts as having trained it."""


def trained_rows(tables: Float32, sent: Float32, clients: Int64) -> NDArray[np.bool_]:
    """``[n, n_items]``: which rows of the clients' tables differ from what they were sent."""
    found = np.empty((len(clients), tables.shape[1]), bool)
    for place, client in enumerate(clients):  # one table of working memory
        found[place] = (tables[client] != (sent if sent.ndim == 2 else sent[client])).any(1)
    return found


def cosines_of_changes(tables: Any, sent: Float32, clients: Int64, device: str = "cpu") -> Tensor:
    """Cosine ``[n, n]`` between the clients' changes ``Q_u - Q_sent``."""
    import torch

    from fedrec.maths.composite import products

    def moved(place: slice, part: Tensor) -> Tensor:
        start = sent[place] if sent.ndim == 2 else sent[clients, place]
        return part.sub_(torch.from_numpy(np.ascontiguousarray(start)).to(device))

    gram = products(tables, clients, device, moved)
    lengths = gram.diagonal().clamp(min=1e-30).sqrt()
    return gram.div_(lengths[:, None]).div_(lengths[None, :]).clamp_(-1, 1)


def distances(tables: Float32, sent: Float32, clients: Int64) -> NDArray[np.float64]:
    """``||Q_u - Q_sent||`` of each client ``[n]``."""
    return np.array(
        [np.linalg.norm((tables[c] - (sent if sent.ndim == 2 else sent[c])).astype(np.float64)) for c in clients]
    )


def standardised(values: Tensor) -> Tensor:
    """Off-diagonal entries less their mean, over their spread and n, so that they compare with p; in place.

    The diagonal becomes zero: what a client has in common with itself is no measure of the others.
    """
    import torch

    n = len(values)
    if n < 3:
        return values.zero_()
    apart = ~torch.eye(n, dtype=torch.bool, device=values.device)
    pairs = values[apart].double()
    spread = max(float(pairs.std()), 1e-12)
    values.sub_(float(pairs.mean())).div_(spread * n)
    return values.fill_diagonal_(0)


def mix_rows(
    tables: Float32,
    weights: Tensor,
    clients: Int64,
    trained: NDArray[np.bool_],
    otherwise: Float32,
    device: str = "cpu",
) -> Float32:
    """Mixtures ``[len(weights), n_items, d]`` in which a row is the weighted mean over those who trained it.

    ``weights`` ``[any, n]`` over the tables of ``clients``; a row that nobody of positive weight trained is taken from
    ``otherwise`` ``[n_items, d]``.
    """
    import torch

    from fedrec.maths.composite import slices

    found = np.empty((len(weights), *tables.shape[1:]), np.float32)
    for place, part in slices(tables, clients, device):
        known = torch.from_numpy(trained[:, place]).to(device).float()  # [n, items]
        part *= known[:, :, None]
        mass = weights @ known  # [any, items]
        mixed = (weights @ part.reshape(len(clients), -1)).reshape(len(weights), -1, part.shape[2])
        mixed /= mass.clamp(min=SMALLEST)[:, :, None]
        rest = torch.from_numpy(np.ascontiguousarray(otherwise[place])).to(device)
        found[:, place] = torch.where((mass > SMALLEST)[:, :, None], mixed, rest[None]).cpu().numpy()
    return found

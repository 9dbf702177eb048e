"""Tables of a chunk of clients between the caller's memory and the device that trains them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedrec.core.messages import Float32
from fedrec.data.ragged import Int64, consecutive
from fedrec.methods.two_views.scratch import Scratch


def own_tables(private: Float32, clients: Int64, scratch: Scratch) -> Tensor:
    """Private tables of a chunk."""
    tables, device = torch.from_numpy(np.asarray(private)), scratch.device
    out = scratch.take("V", len(clients), *private.shape[1:])
    order = np.argsort(clients)
    if device != "cpu" and consecutive(clients[order]):  # one copy to the device, put in order there
        first = int(clients.min())
        there = tables[first : first + len(clients)].to(device)
        return torch.index_select(there, 0, torch.from_numpy(clients - first).to(device), out=out)
    for position, client in enumerate(clients):
        out[position].copy_(tables[client])
    return out


def put(into: Float32, clients: Int64, values: Tensor) -> None:
    """``into[clients] = values`` from any device, without a copy in between where they are a run."""
    target = torch.from_numpy(np.asarray(into))
    order = np.argsort(clients)
    if values.device.type != "cpu" and consecutive(clients[order]):
        first = int(clients[order[0]])
        target[first : first + len(clients)].copy_(values.index_select(0, torch.from_numpy(order).to(values.device)))
        return
    for position, client in enumerate(clients):
        target[client].copy_(values[position])


def put_changes(into: Float32, clients: Int64, values: Tensor, before: Tensor) -> None:
    """``into[clients] = values - before``; ``values`` may be spoilt."""
    if values.device.type != "cpu":
        put(into, clients, values.sub_(before))
        return
    target = torch.from_numpy(into)
    for position, client in enumerate(clients):
        torch.sub(values[position], before, out=target[client])

"""The plain way, for law 9: one client after the other, the whole table, torch's own optimisers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32
from fedrec.data.ragged import Ragged, offsets
from fedrec.learn import shuffle
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.trained import LocalSettings


@dataclass(frozen=True)
class Plan:
    """Training settings without pydantic, as the engines accept them."""

    epochs: int = 3
    batch_size: int = 8
    lr: float = 0.05
    optimizer: str = "adam"
    weight_decay: float = 0.0
    objective: str = "bce"
    engine: str = "auto"


def random_block(seed: int, holdings: list[list[int]], n_items: int) -> Block:
    """A block from the number of items of each user of each client."""
    rng = np.random.default_rng(seed)
    per_user = [count for client in holdings for count in client]
    lists = [np.sort(rng.permutation(n_items)[:count]).astype(np.int32) for count in per_user]
    values = np.concatenate([np.zeros(0, np.int32), *lists])
    ragged = Ragged(offsets(np.array(per_user, np.int64)), values)
    return Block(
        n_items=n_items,
        clients=np.arange(len(holdings)),
        client_keys=keyed.keys_of(range(len(holdings))),
        user_start=offsets(np.array([len(client) for client in holdings], np.int64)),
        user_keys=keyed.keys_of(f"user {u}" for u in range(len(per_user))),
        train=ragged,
        exclude=ragged,
    )


def train_plainly(
    block: Block,
    samples: Samples,
    users: Float32,
    table: Float32,
    plan: LocalSettings,
    keys: keyed.U64,
    backbone: Backbone,
    networks: dict[str, Array] | None = None,
    proximal: float = 0.0,
    lr_users: float | None = None,
    lr_items: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """``(users, tables [clients, m, d], networks, loss)`` after training, in double precision."""
    kind = torch.float64
    new_users = users.astype(np.float64)
    tables = np.broadcast_to(table, (block.n_clients, *table.shape[-2:])).astype(np.float64)
    networks = networks or {}
    stacked = {
        name: (
            array
            if name in backbone.per_user or array.ndim == backbone.start(keys[:1], users.shape[1])[name].ndim
            else np.broadcast_to(array, (block.n_clients, *array.shape))
        ).astype(np.float64)
        for name, array in networks.items()
    }
    losses = np.zeros(block.n_clients)
    for c in range(block.n_clients):
        first, n = int(samples.start[c]), int(samples.start[c + 1] - samples.start[c])
        own = slice(int(block.user_start[c]), int(block.user_start[c + 1]))
        ids = samples.rows_ids[samples.rows_start[c] : samples.rows_start[c + 1]].astype(np.int64)
        p = torch.tensor(new_users[own], dtype=kind, requires_grad=True)
        q = torch.tensor(tables[c], dtype=kind, requires_grad=True)
        downloaded = q.detach().clone()
        nets = {
            name: torch.tensor(a[own] if name in backbone.per_user else a[c], dtype=kind, requires_grad=True)
            for name, a in stacked.items()
        }
        groups = [
            {"params": [p], "lr": lr_users or plan.lr},
            {"params": [q], "lr": lr_items or plan.lr},
            *(
                {"params": [net], "lr": lr_users or plan.lr}
                if name in backbone.per_user
                else {"params": [net], "lr": plan.lr, "weight_decay": plan.weight_decay}
                for name, net in nets.items()
            ),
        ]
        optimiser = torch.optim.Adam(groups) if plan.optimizer == "adam" else torch.optim.SGD(groups)
        for epoch in range(plan.epochs if n else 0):
            order = shuffle.order(n, shuffle.epoch_key(int(keys[c]), epoch))
            epoch_loss = 0.0
            for begin in range(0, n, plan.batch_size):
                at = first + order[begin : begin + plan.batch_size]
                who = torch.from_numpy(samples.user[at].astype(np.int64) - own.start)
                inputs = {k: v[who][None] if k in backbone.per_user else v[None] for k, v in nets.items()}
                x = backbone.score(p[who][None], q[ids[samples.row[at]]][None], inputs)[0]
                if samples.pairs:
                    x = x - backbone.score(p[who][None], q[ids[samples.negative[at]]][None], inputs)[0]
                y = torch.from_numpy(samples.label[at]).to(kind)
                loss = torch.nn.functional.binary_cross_entropy_with_logits(x, y)
                epoch_loss += float(loss.detach()) * len(at)
                optimiser.zero_grad()
                torch.autograd.backward(loss + proximal / 2 * ((q - downloaded) ** 2).sum())
                optimiser.step()
            losses[c] = epoch_loss / n
        new_users[own], tables[c] = p.detach().numpy(), q.detach().numpy()
        for name, net in nets.items():
            stacked[name][own if name in backbone.per_user else c] = net.detach().numpy()
    return new_users, tables, stacked, losses

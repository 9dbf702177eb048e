"""The loop that public code trains with: one module, one data loader and one optimiser per client (numpy and torch)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from talk import Array

OPTIMISERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class ClientModel(nn.Module):
    """One user's vector and a whole item table."""

    def __init__(self, user: torch.Tensor, table: torch.Tensor) -> None:
        super().__init__()
        self.user = nn.Embedding(1, len(user), _weight=user[None].clone())
        self.items = nn.Embedding(len(table), table.shape[1], _weight=table.clone())

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        user = self.user(torch.zeros(len(items), dtype=torch.long))
        return torch.sigmoid((user * self.items(items)).sum(-1))


class ClientSamples(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """(item, label) pairs of one client."""

    def __init__(self, items: Array, labels: Array) -> None:
        self.items = torch.from_numpy(items.astype(np.int64))
        self.labels = torch.from_numpy(labels.astype(np.float32))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.items[index], self.labels[index]


class GivenOrder(Sampler[int]):
    """The order of samples that was handed over ``[epochs, samples]``, epoch by epoch."""

    def __init__(self, order: Array) -> None:
        self.order, self.epoch = order, 0

    def __len__(self) -> int:
        return int(self.order.shape[1])

    def __iter__(self) -> Iterator[int]:
        self.epoch += 1
        return iter(self.order[self.epoch - 1].tolist())


def train_client(
    user: Array, table: Array, items: Array, labels: Array, order: Array, batch: int, lr: float, optimizer: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The new user vector ``[d]`` and item table ``[n_items, d]`` of one client."""
    model = ClientModel(torch.from_numpy(user), torch.from_numpy(table))
    data = ClientSamples(items, labels)
    loader = DataLoader(data, batch, sampler=GivenOrder(order))
    optimiser = OPTIMISERS[optimizer](model.parameters(), lr=lr)
    loss_of = nn.BCELoss()
    for _ in range(len(order) if len(data) else 0):
        for chosen, wanted in loader:
            optimiser.zero_grad()
            loss = loss_of(model(chosen), wanted)
            loss.backward()
            optimiser.step()
    return model.user.weight.detach()[0].numpy(), model.items.weight.detach().numpy()

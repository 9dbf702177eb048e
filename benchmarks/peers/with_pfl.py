"""pfl-research as a worker: ``FederatedAveraging`` over a ``SimulatedBackend``, PyTorch on the CPU, one process.

The user's vector is trained with the model and stays: it is no part of what pfl calls the model's variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.common_types import Population
from pfl.context import CentralContext
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch import nn

from loop import OPTIMISERS
from talk import Array, Round, Work, serve


class Factors(nn.Module):
    """The shared item table and the user at hand."""

    def __init__(self, table: Array) -> None:
        super().__init__()
        self.items = nn.Embedding(table.shape[0], table.shape[1], _weight=torch.from_numpy(table.copy()))
        self.user = nn.Parameter(torch.zeros(table.shape[1]), requires_grad=False)

    def loss(self, item: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return nn.functional.binary_cross_entropy_with_logits(self.items(item) @ self.user, label)

    def metrics(self, item: torch.Tensor, label: torch.Tensor) -> dict[str, Any]:
        return {}


class Client:
    """A user's data as pfl asks for it; mini-batches are made beforehand and handed out epoch by epoch."""

    raw_data, metadata, train_kwargs, eval_kwargs = None, dict[str, Any](), dict[str, Any](), dict[str, Any]()

    def __init__(self, work: Work, client: int) -> None:
        self.user_id, self.user, self.n = str(client), torch.from_numpy(work.users[client]), int(work.sizes[client])
        self.batches = [
            [torch.from_numpy(item.astype(np.int64)), torch.from_numpy(label)] for item, label in work.batches(client)
        ]
        self.per_epoch, self.epoch = len(self.batches) // len(work.order), 0

    def __len__(self) -> int:
        return self.n

    def iter(self, batch_size: int) -> Iterator[list[torch.Tensor]]:
        first = self.epoch * self.per_epoch
        self.epoch = 0 if first + self.per_epoch >= len(self.batches) else self.epoch + 1
        yield from self.batches[first : first + self.per_epoch]


class Averaging(FederatedAveraging):  # type: ignore[misc]
    """pfl's federated averaging; a client begins with its own vector."""

    def train_one_user(self, initial: Any, model: Any, user_dataset: Client, context: Any) -> Any:
        model.pytorch_model.user.data.copy_(user_dataset.user)
        return super().train_one_user(initial, model, user_dataset, context)


def prepare(work: Work) -> Round:
    torch.set_num_threads(1)
    clients = [Client(work, c) for c in range(work.clients)]
    params = NNTrainHyperParams(
        local_num_epochs=len(work.order), local_learning_rate=work.lr, local_batch_size=work.batch
    )
    rounds = NNAlgorithmParams(1, 1, work.clients, None)

    def one_round() -> Array:
        factors = Factors(work.table)
        model = PyTorchModel(
            factors, OPTIMISERS[work.optimizer], central_optimizer=torch.optim.SGD([factors.items.weight], lr=1.0)
        )
        factors.user.requires_grad_(True)  # after pfl has looked for what is shared
        everyone = cycle(range(work.clients))
        data = FederatedDataset(clients.__getitem__, lambda: next(everyone))
        backend = SimulatedBackend(data, data, [WeightByDatapoints()])
        algorithm = Averaging()
        context = CentralContext(
            current_central_iteration=0, do_evaluation=False, cohort_size=work.clients, population=Population.TRAIN,
            model_train_params=params, model_eval_params=None, algorithm_params=rounds, seed=0,
        )  # fmt: skip
        sums, _ = backend.gather_results(model=model, training_algorithm=algorithm, central_context=context)
        algorithm.process_aggregated_statistics(context, Metrics(), model, sums)
        return factors.items.weight.detach().numpy()

    return one_round


if __name__ == "__main__":
    serve(prepare)

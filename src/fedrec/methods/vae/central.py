"""What the centralised variational autoencoders share: batches of users, autograd, Adam, scoring.

Symbols as in Mult-VAE (Liang et al. 2018): x_u a user's normalised items, z_u the latent variable.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from fedrec import keyed
from fedrec.backbones.vae import Bags, to_device
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys
from fedrec.core.reference import Central, InEpochs
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64, Ragged
from fedrec.learn.adam import descend

if TYPE_CHECKING:
    import torch

SCORED_USERS = 512


class CentralVaeSettings(Settings):
    """Settings of centralised variational autoencoders; a round is one epoch. From FedDAE's experiments."""

    dim: int = Field(256, ge=1, description="d of the latent variable; layers m-3d-2d-d (m-768-512-256)")
    batch_size: int = Field(2048, ge=1, description="users in a mini-batch")
    lr: float = Field(1e-3, gt=0, description="learning rate of Adam (eta)")
    beta: float = Field(0.2, ge=0, description="weight of the KL term once annealed")
    anneal: int = Field(100, ge=0, description="epochs in which beta rises from 0; 0 starts with all of it")
    dropout: float = Field(0.5, ge=0, lt=1, description="probability that an input is dropped")


@dataclass(frozen=True)
class VaeState:
    """Parameters and their Adam; ``old`` holds earlier parameters where a model needs them (RecVAE)."""

    nets: dict[str, Array]
    mean: dict[str, Array]
    square: dict[str, Array]
    steps: dict[str, int]
    old: dict[str, Array]


@dataclass(frozen=True)
class Batch:
    """Some users: their items, the inputs of each interaction and the noise of each latent variable."""

    bags: Bags
    values: torch.Tensor  # [interactions]
    noise: torch.Tensor  # [users, d]


Loss = Callable[[dict[str, "torch.Tensor"], Batch], "torch.Tensor"]


class CentralVae(InEpochs[VaeState]):
    """A variational autoencoder on collected histories; subclasses give parameters, loss and logits."""

    Settings: ClassVar[type[Settings]] = CentralVaeSettings
    rounds = 100

    @abstractmethod
    def fresh(self, data: Central, keys: Keys) -> dict[str, Array]:
        """Parameters before the first epoch."""

    @abstractmethod
    def loss(self, nets: dict[str, torch.Tensor], batch: Batch, beta: float) -> torch.Tensor:
        """Mean over the users of a batch of the negated bound (Eq. 6)."""

    @abstractmethod
    def logits(self, nets: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Scores ``[users, m]`` at the mean of the latent variable."""

    def start(self, data: Central, keys: Keys) -> VaeState:
        nets = self.fresh(data, keys)
        zero = {name: np.zeros_like(array) for name, array in nets.items()}
        return VaeState(nets, zero, {n: a.copy() for n, a in zero.items()}, dict.fromkeys(nets, 0), {})

    def step(self, state: VaeState, data: Central, keys: Keys) -> tuple[VaeState, float]:
        chosen = self.settings
        beta = chosen.beta * (min(1.0, (keys.round - 1) / chosen.anneal) if chosen.anneal else 1.0)
        return self.epoch(state, data, keys, "all", lambda nets, batch: self.loss(nets, batch, beta), chosen.dropout)

    def epoch(
        self,
        state: VaeState,
        data: Central,
        keys: Keys,
        purpose: str,
        loss: Loss,
        dropout: float,
        learning: tuple[str, ...] | None = None,
    ) -> tuple[VaeState, float]:
        """One pass over the users; only the parameters named in ``learning`` (all, where None) move."""
        import torch

        copied = {n: a.copy() for n, a in state.nets.items()}
        nets = to_device(copied, self.device)
        mean = to_device({n: a.copy() for n, a in state.mean.items()}, self.device)
        square = to_device({n: a.copy() for n, a in state.square.items()}, self.device)
        steps, total, users = dict(state.steps), 0.0, 0
        moving = list(nets) if learning is None else [n for n in nets if n in learning]
        for batch in self.batches(data, keys, purpose, dropout):
            for name in moving:
                nets[name].requires_grad_()
            value = loss(nets, batch)
            gradients = torch.autograd.grad(value, [nets[name] for name in moving])
            total += float(value.detach()) * batch.bags.users
            users += batch.bags.users
            with torch.no_grad():
                for name, gradient in zip(moving, gradients, strict=True):
                    steps[name] += 1
                    nets[name] = nets[name].detach()
                    descend(nets[name], mean[name], square[name], gradient, self.settings.lr, steps[name])

        def home(tensors: dict[str, torch.Tensor]) -> dict[str, Array]:
            return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}

        moved = replace(state, nets=home(nets), mean=home(mean), square=home(square), steps=steps)
        return moved, total / max(1, users)

    def batches(self, data: Central, keys: Keys, purpose: str, dropout: float) -> Iterator[Batch]:
        """All users in a keyed order, with keyed dropout and noise."""
        everyone = np.arange(len(data.train), dtype=np.uint64)
        order = np.argsort(keyed.streams(keyed.stream(keys.seed, keys.round, purpose, "order"), everyone))
        for first in range(0, len(order), self.settings.batch_size):
            users = order[first : first + self.settings.batch_size]
            draws = keyed.streams(keyed.stream(keys.seed, keys.round, purpose), users.astype(np.uint64))
            yield self.batch(data.train.take(users), draws, dropout)

    def batch(self, train: Ragged, draws: keyed.U64 | None, dropout: float) -> Batch:
        """Inputs of some users; without ``draws`` neither dropout nor noise."""
        import torch

        counts = train.counts
        values = np.repeat(1.0 / np.sqrt(np.maximum(1, counts)), counts).astype(np.float32)
        noise = np.zeros((len(train), self.settings.dim), np.float32)
        if draws is not None:
            noise = keyed.normal(draws, self.settings.dim).astype(np.float32)
            # behind the words that the noise took, so that the two do not depend on each other
            place = train.values.astype(np.uint64) + np.uint64(2 * self.settings.dim + 1)
            words = keyed.mix(draws[train.owners] + place * np.uint64(keyed.GOLDEN))
            kept = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 >= dropout
            values = np.where(kept, values / np.float32(1 - dropout), np.float32(0))
        bags = Bags(train.start, train.values, self.device)
        given = torch.from_numpy(values).to(self.device), torch.from_numpy(noise).to(self.device)
        return Batch(bags, *given)

    def score(self, state: VaeState, data: Central, users: Int64) -> Float32:
        import torch

        nets = to_device(state.nets, self.device)
        scores = np.empty((len(users), data.world.n_items), np.float32)
        with torch.no_grad():
            for first in range(0, len(users), SCORED_USERS):
                some = users[first : first + SCORED_USERS]
                batch = self.batch(data.train.take(some), None, 0.0)
                scores[first : first + SCORED_USERS] = self.logits(nets, batch).cpu().numpy()
        return scores


def likelihood(logits: torch.Tensor, bags: Bags) -> torch.Tensor:
    """Multinomial log likelihood of each user ``[users]``, Eq. (3) of FedDAE."""
    return bags.add_up(logits.log_softmax(1)[bags.owners, bags.ids])

"""What the federated variational autoencoders share: the start, a round of a block of users, scores.

FedDAE (:mod:`fedrec.methods.vae.feddae`) adds a private encoder and a gate, FedVAE has neither. Symbols as in the
FedDAE paper: global encoder phi, decoder theta (shared); local encoder phi_u, gate psi_u (private).
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from fedrec import keyed
from fedrec.backbones.vae import OWN, Bags, Sizes, fresh_decoder, fresh_encoder, to_device
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys, Method, Update
from fedrec.data.ragged import Int32, Int64
from fedrec.methods.vae.gradients import dense_upload
from fedrec.methods.vae.messages import (
    DenseUpload,
    FactoredUpload,
    LocalNets,
    Nets,
    Span,
    TwinDense,
    TwinFactored,
    TwinNets,
    VaeServer,
)
from fedrec.methods.vae.plan import LocalPlan
from fedrec.methods.vae.settings import VaeSettings

if TYPE_CHECKING:
    from fedrec.methods.vae.own_encoder import PrivateParts

P = TypeVar("P", bound=messages.Private)


class VaeMethod(Method[VaeServer, P, Any, Nets], Generic[P]):
    """Local training with accumulated gradients; subclasses say what is private."""

    Settings: ClassVar[type[VaeSettings]] = VaeSettings
    Download = Nets
    Upload: ClassVar[type[Any]] = FactoredUpload
    small: ClassVar[dict[str, Any]] = {"dim": 3, "epochs": 2, "chunk": 8}
    enough: ClassVar[dict[str, Any]] = {"dim": 16, "epochs": 2, "server_lr": 0.02, "beta": 0.2, "chunk": 256}
    enough_rounds = 20

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        chosen = self.settings
        altered = chosen.clip > 0 or chosen.noise > 0 or chosen.compress != "none"
        self.dense = chosen.gradients == "dense" or altered  # noise belongs on gradients, not on their factors
        twin = self.shares_local_encoder
        self.Download = TwinNets if twin else Nets  # type: ignore[misc]  # types on the wire follow the settings
        self.Factored = TwinFactored if twin else FactoredUpload
        whole = TwinDense if twin else DenseUpload
        self.Upload = whole if self.dense else self.Factored  # type: ignore[misc]

    @property
    def shares_local_encoder(self) -> bool:
        """Whether the server averages a second encoder, that of the users."""
        return False

    def sizes(self, n_items: int) -> Sizes:
        return Sizes(n_items, self.settings.dim)

    def plan(self, keys: Keys, alpha: float = 1.0) -> LocalPlan:
        """How clients train in this round; beta rises by the round's number."""
        chosen = self.settings
        risen = min(1.0, (keys.round - 1) / chosen.anneal) if chosen.anneal else 1.0
        if chosen.schedule == "first-round":
            risen = float(keys.round <= 1)
        return LocalPlan(
            epochs=chosen.epochs,
            rate=chosen.lr,
            shared=chosen.local_shared,
            beta=chosen.beta * max(0.0, risen),
            gate="fixed",
            weight=1.0,
            shared_rate=chosen.lr * alpha,
            accumulate=chosen.local_gradient == "accumulated",
        )

    def parts(self, private: Any, nets: Nets, bags: Bags, where: Span) -> PrivateParts | None:
        """The layers that some users have for themselves, as views; None without a local encoder."""
        return None

    def training_parts(self, private: Any, nets: Nets, bags: Bags, where: Span) -> PrivateParts | None:
        """The same, for training, which writes them."""
        return self.parts(private, nets, bags, where)

    def release(self, private: Any) -> None:
        """Called when a chunk is done with its private parts."""

    def start_server(self, world: World, keys: Keys) -> VaeServer:
        sizes = self.sizes(world.n_items)
        nets: dict[str, Array] = {
            **fresh_encoder(keys.server("global encoder"), sizes),
            **fresh_decoder(keys.server("decoder"), sizes),
        }
        if self.shares_local_encoder:
            own = fresh_encoder(keys.server("local encoder"), sizes)
            nets |= {mine: own[name] for name, mine in OWN.items()}
        zero = {name: np.zeros_like(array) for name, array in nets.items()}
        alpha = np.array([self.settings.alpha or 1.0 / max(1, world.n_users)], np.float32)
        return VaeServer(nets, zero, {name: array.copy() for name, array in zero.items()}, alpha)

    def download(self, server: VaeServer, clients: Int64) -> Nets:
        return self.Download(**server.nets, alpha=server.alpha)

    def local_update(self, private: P, download: Nets, block: Block, keys: Keys) -> Update[P, Any]:
        """ClientUpdate of Algorithm 1 for every user of the block, a chunk of users at a time."""
        import torch

        from fedrec.methods.vae.client_update import train_chunk

        plan, chosen = self.plan(keys, float(download.alpha[0])), self.settings
        nets = to_device(download.arrays(), self.device)
        values = dropped(block, keys, plan.epochs, chosen.dropout)
        recorded = {spec.name for spec in fields(self.Factored)} - {"counts", "ids", "values"}
        done: dict[str, Float32] = {}
        loss = np.zeros(block.n_users)
        streams = keys.users(block, "noise")
        for first in range(0, block.n_users, chosen.chunk):
            users = slice(first, min(first + chosen.chunk, block.n_users))
            bags, where = self.bags(block, users)
            noise = keyed.normal(streams[users], plan.epochs * chosen.dim).astype(np.float32)
            trained = train_chunk(
                nets,
                self.training_parts(private, download, bags, where),
                bags,
                torch.from_numpy(values[where.interactions]).to(self.device),
                torch.from_numpy(noise.reshape(-1, plan.epochs, chosen.dim)).to(self.device),
                plan,
            )
            self.release(private)
            for name, part in trained.at_home(recorded).items():
                done.setdefault(name, np.empty((block.n_users, *part.shape[1:]), np.float32))[users] = part
            loss[users] = trained.loss.cpu().numpy()
        factors = self.Factored(block.train.counts.astype(np.int64), block.train.values, values, **done)
        upload = dense_upload(factors, block) if self.dense else factors
        local: Any = LocalNets(download, factors) if plan.shared != "frozen" else None
        by_client = np.bincount(block.client_of_user, loss, minlength=block.n_clients)
        return Update(private, upload, by_client / np.maximum(1, np.diff(block.user_start)), local)

    def bags(self, block: Block, users: slice) -> tuple[Bags, Span]:
        """The items of some users, and where they and their interactions lie in the block."""
        start = block.train.start[users.start : users.stop + 1]
        inside = slice(int(start[0]), int(start[-1]))
        return Bags(start - start[0], block.train.values[inside], self.device), Span(users, inside)

    def model(self, download: Nets) -> LocalNets:
        return LocalNets(download, None)

    def score(self, private: P, model: LocalNets, block: Block, items: Int32 | None = None) -> Float32:
        """Logits at the mean of z_u, without dropout."""
        import torch

        from fedrec.methods.vae.client_update import ACTIVATIONS, DELTAS, code_chunk

        given_nets, factors = model.nets, model.changes
        nets = to_device(given_nets.arrays(), self.device)
        plan, values = self.plan(Keys(0, 1), float(given_nets.alpha[0])), normalised_inputs(block)
        scores = np.empty((block.n_users, block.n_items), np.float32)
        for first in range(0, block.n_users, self.settings.chunk):
            users = slice(first, min(first + self.settings.chunk, block.n_users))
            bags, where = self.bags(block, users)
            trained = None
            if factors is not None:
                changes = {n: getattr(factors, n)[users] for n in (*ACTIVATIONS, *DELTAS)}
                trained = to_device({**changes, "values": factors.values[where.interactions]}, self.device)
            given = torch.from_numpy(values[where.interactions]).to(self.device)
            logits = code_chunk(nets, self.parts(private, given_nets, bags, where), bags, given, plan, trained)
            scores[users] = logits.cpu().numpy()
            self.release(private)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        sizes = self.sizes(world.n_items)
        epochs: int = self.settings.epochs
        factors = epochs * (2 * sizes.n_items + 24 * sizes.dim)
        return 4 * (2 * factors + (4 * sizes.numbers if self.dense else 0))


def normalised_inputs(block: Block) -> Float32:
    """``r_u / ||r_u||`` at the items that users have, as in Mult-VAE: ``[interactions]``."""
    counts = block.train.counts
    return np.repeat(1.0 / np.sqrt(np.maximum(1, counts)), counts).astype(np.float32)


def dropped(block: Block, keys: Keys, epochs: int, probability: float) -> Float32:
    """Inputs of each epoch after dropout ``[interactions, epochs]``; drawn by user, epoch and item."""
    values = normalised_inputs(block)
    if probability == 0:
        return np.repeat(values[:, None], epochs, axis=1)
    streams = keys.users(block, "dropout")[block.train.owners]
    place = block.train.values.astype(np.uint64)
    drawn = np.empty((len(values), epochs), np.float32)
    bound = np.uint64(int(probability * 2.0**53))
    for epoch in range(epochs):
        index = (np.uint64(epoch * block.n_items + 1) + place) * np.uint64(keyed.GOLDEN)
        kept = (keyed.mix(streams + index) >> np.uint64(11)) >= bound
        drawn[:, epoch] = np.where(kept, values / np.float32(1 - probability), np.float32(0))
    return drawn

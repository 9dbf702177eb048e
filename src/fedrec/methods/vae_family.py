"""What the federated variational autoencoders share: messages, local work, the server's step.

FedDAE (:mod:`fedrec.methods.feddae`) adds a private encoder and a gate, FedVAE has neither. Symbols as in the
FedDAE paper: global encoder phi, decoder theta (shared); local encoder phi_u, gate psi_u (private).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedrec import keyed
from fedrec.backbones.vae import SHARED, Bags, Sizes, fresh_decoder, fresh_encoder, to_device
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Axis, Float32, Rows, per_client, per_interaction, per_user, shared
from fedrec.core.method import Keys, Method, Reply, Update
from fedrec.core.settings import PrivacySettings
from fedrec.data.ragged import Int32, Int64, Ragged, offsets
from fedrec.learn.adam import BETA_1, BETA_2, EPS

if TYPE_CHECKING:
    from fedrec.learn.dual_encoder import LocalPlan, PrivateParts

Float64 = NDArray[np.float64]


class VaeSettings(PrivacySettings):
    """Settings of the federated variational autoencoders; defaults from FedDAE's experiments."""

    dim: int = Field(256, ge=1, description="d of the latent variable; layers m-3d-2d-d (m-768-512-256)")
    epochs: int = Field(10, ge=1, description="local epochs a round (E)")
    lr: float = Field(1e-3, gt=0, description="learning rate on the clients (eta)")
    server_lr: float = Field(1e-3, gt=0, description="learning rate on the server (eta in lines 7 and 8)")
    server_optimizer: Literal["adam", "sgd"] = Field("adam", description="how the server descends")
    local_shared: Literal["frozen", "descent", "adam"] = Field(
        "descent",
        description="a client's copies of the shared layers in its local epochs: as downloaded, plain gradient "
        "descent (Algorithm 1, line 4), or an Adam of their own (many times slower)",
    )
    alpha: float = Field(
        0.0,
        ge=0,
        le=1,
        description="weight alpha_u of a client's loss (Eq. 7), by which descent of the copies is scaled; 0 stands "
        "for 1/n. With 1 the copies of users with long histories diverge at the paper's rate",
    )
    beta: float = Field(1.0, ge=0, description="weight of the KL term once annealed (beta of Eq. 6)")
    anneal: int = Field(100, ge=0, description="rounds in which beta rises from 0; 0 starts with all of it")
    dropout: float = Field(0.5, ge=0, lt=1, description="probability that an input of the encoders is dropped")
    gradients: Literal["factored", "dense"] = Field(
        "factored",
        description="how gradients cross the wire: as the E outer products that they are sums of (many times "
        "smaller), or whole (then a sum suffices); with clip, noise or compression always whole",
    )
    chunk: int = Field(64, ge=1, description="users that train together; changes nothing but speed")


@dataclass(frozen=True)
class VaeServer:
    """phi and theta, and the server's Adam."""

    nets: dict[str, Array]
    mean: dict[str, Array]
    square: dict[str, Array]
    alpha: Float32  # [1] alpha_u of Eq. (7), the same for all users
    step: int = 0


@dataclass(frozen=True)
class Nets(messages.Download):
    """The global encoder phi and the decoder theta."""

    items_in: Float32 = shared()  # [m, 3d]
    bias_in: Float32 = shared()  # [3d]
    encoder_mid: Float32 = shared()  # [3d + 1, 2d]
    encoder_out: Float32 = shared()  # [2d + 1, 2 x d] mean, log variance
    decoder_in: Float32 = shared()  # [d + 1, 2d]
    decoder_mid: Float32 = shared()  # [2d + 1, 3d]
    decoder_out: Float32 = shared()  # [3d + 1, m]
    alpha: Float32 = shared()  # [1] weight of a user's loss, 1/n

    def arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in SHARED}


@dataclass(frozen=True)
class FactoredUpload(messages.Upload):
    """Accumulated gradients of the shared layers as their factors: nabla W = sum over e of a_e delta_e^T.

    User after user; every factor has an entry for each local epoch. The bias's input is one and not sent.
    """

    counts: Int64 = per_user()  # [users] interactions of each user
    ids: Int32 = per_interaction()  # [interactions]
    values: Float32 = per_interaction()  # [interactions, E] inputs of the first layer
    hidden_wide: Float32 = per_user()  # [users, E, 3d]
    hidden_narrow: Float32 = per_user()  # [users, E, 2d]
    latent: Float32 = per_user()  # [users, E, d]
    decoded_narrow: Float32 = per_user()  # [users, E, 2d]
    decoded_wide: Float32 = per_user()  # [users, E, 3d]
    delta_in: Float32 = per_user()  # [users, E, 3d]
    delta_mid: Float32 = per_user()  # [users, E, 2d]
    delta_out: Float32 = per_user()  # [users, E, 2 x d]
    delta_decoder_in: Float32 = per_user()  # [users, E, 2d]
    delta_decoder_mid: Float32 = per_user()  # [users, E, 3d]
    delta_decoder_out: Float32 = per_user()  # [users, E, m]


@dataclass(frozen=True)
class DenseUpload(messages.Upload):
    """Accumulated gradients of the shared layers, whole; summed over the client's users."""

    users: Int64 = field(metadata={"axis": Axis.CLIENT, "protect": False})  # [clients] how many
    items_in: Rows = per_client()
    bias_in: Float32 = per_client()
    encoder_mid: Float32 = per_client()
    encoder_out: Float32 = per_client()
    decoder_in: Float32 = per_client()
    decoder_mid: Float32 = per_client()
    decoder_out: Float32 = per_client()


@dataclass(frozen=True)
class LocalNets(messages.Download):
    """What a client holds right after local descent: the download, and the factors of its changes."""

    nets: Nets = shared()
    changes: FactoredUpload = per_client()


LAYERS = (
    ("encoder_mid", "hidden_wide", "delta_mid"),
    ("encoder_out", "hidden_narrow", "delta_out"),
    ("decoder_in", "latent", "delta_decoder_in"),
    ("decoder_mid", "decoded_narrow", "delta_decoder_mid"),
    ("decoder_out", "decoded_wide", "delta_decoder_out"),
)
"""Each layer behind the first with the names of its two factors."""

P = TypeVar("P", bound=messages.Private)


class VaeMethod(Method[VaeServer, P, Any, Nets], Generic[P]):
    """Local training with accumulated gradients; subclasses say what is private."""

    Settings: ClassVar[type[PrivacySettings]] = VaeSettings
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
        if self.dense:
            self.Upload = DenseUpload  # type: ignore[misc]  # the type on the wire follows the settings

    def sizes(self, n_items: int) -> Sizes:
        return Sizes(n_items, self.settings.dim)

    def plan(self, keys: Keys, alpha: float = 1.0) -> LocalPlan:
        """How clients train in this round; beta rises by the round's number."""
        from fedrec.learn.dual_encoder import LocalPlan

        chosen = self.settings
        risen = min(1.0, (keys.round - 1) / chosen.anneal) if chosen.anneal else 1.0
        beta = chosen.beta * max(0.0, risen)
        return LocalPlan(chosen.epochs, chosen.lr, chosen.local_shared, beta, "fixed", 1.0, chosen.lr * alpha)

    def parts(self, private: Any, users: slice, interactions: slice) -> PrivateParts | None:
        """The private layers of some users, as views; None without a local encoder."""
        return None

    def training_parts(self, private: Any, users: slice, interactions: slice) -> PrivateParts | None:
        """The same, for training, which writes them."""
        return self.parts(private, users, interactions)

    def release(self, private: Any) -> None:
        """Called when a chunk is done with its private parts."""

    def start_server(self, world: World, keys: Keys) -> VaeServer:
        sizes = self.sizes(world.n_items)
        nets: dict[str, Array] = {
            **fresh_encoder(keys.server("global encoder"), sizes),
            **fresh_decoder(keys.server("decoder"), sizes),
        }
        zero = {name: np.zeros_like(array) for name, array in nets.items()}
        alpha = np.array([self.settings.alpha or 1.0 / max(1, world.n_users)], np.float32)
        return VaeServer(nets, zero, {name: array.copy() for name, array in zero.items()}, alpha)

    def download(self, server: VaeServer, clients: Int64) -> Nets:
        return Nets(**server.nets, alpha=server.alpha)

    def local_update(self, private: P, download: Nets, block: Block, keys: Keys) -> Update[P, Any, Nets]:
        """ClientUpdate of Algorithm 1 for every user of the block, a chunk of users at a time."""
        import torch

        from fedrec.learn.dual_encoder import ACTIVATIONS, DELTAS, train_chunk

        plan, chosen = self.plan(keys, float(download.alpha[0])), self.settings
        nets = to_device(download.arrays(), self.device)
        values = dropped(block, keys, plan.epochs, chosen.dropout)
        done: list[dict[str, Float32]] = []
        loss = np.zeros(block.n_users)
        streams = keys.users(block, "noise")
        for first in range(0, block.n_users, chosen.chunk):
            users = slice(first, min(first + chosen.chunk, block.n_users))
            bags, inside = self.bags(block, users)
            noise = keyed.normal(streams[users], plan.epochs * chosen.dim).astype(np.float32)
            trained = train_chunk(
                nets,
                self.training_parts(private, users, inside),
                bags,
                torch.from_numpy(values[inside]).to(self.device),
                torch.from_numpy(noise.reshape(-1, plan.epochs, chosen.dim)).to(self.device),
                plan,
            )
            self.release(private)
            done.append(trained.at_home())
            loss[users] = trained.loss.cpu().numpy()
        factors = FactoredUpload(
            block.train.counts.astype(np.int64),
            block.train.values,
            values,
            **{name: np.concatenate([part[name] for part in done]) for name in (*ACTIVATIONS, *DELTAS)},
        )
        upload = dense_upload(factors, block) if self.dense else factors
        local: Any = LocalNets(download, factors) if plan.shared == "descent" else None
        by_client = np.bincount(block.client_of_user, loss, minlength=block.n_clients)
        return Update(private, upload, by_client / np.maximum(1, np.diff(block.user_start)), local)

    def bags(self, block: Block, users: slice) -> tuple[Bags, slice]:
        """The items of some users, and where their interactions lie in the block."""
        start = block.train.start[users.start : users.stop + 1]
        inside = slice(int(start[0]), int(start[-1]))
        return Bags(start - start[0], block.train.values[inside], self.device), inside

    def aggregate(self, server: VaeServer, replies: Iterator[Reply[Any]], keys: Keys) -> VaeServer:
        """Lines 7 and 8 of Algorithm 1: the mean of the accumulated gradients, then one step."""
        total: dict[str, Float64] = {name: np.zeros(array.shape) for name, array in server.nets.items()}
        users = 0
        for reply in replies:
            add = add_dense if isinstance(reply.upload, DenseUpload) else add_factored
            users += add(total, reply.upload, self.device)
        if not users:
            return server
        return self.descend(server, {name: (sum_ / users).astype(np.float32) for name, sum_ in total.items()})

    def descend(self, server: VaeServer, gradient: dict[str, Array]) -> VaeServer:
        """One step of the server's optimiser along the mean gradient."""
        rate, step = self.settings.server_lr, server.step + 1
        if self.settings.server_optimizer == "sgd":
            nets = {name: array - rate * gradient[name] for name, array in server.nets.items()}
            return replace(server, nets={n: a.astype(np.float32) for n, a in nets.items()}, step=step)
        nets, means, squares = {}, {}, {}
        for name, g in gradient.items():
            mean = means[name] = np.float32(BETA_1) * server.mean[name] + np.float32(1 - BETA_1) * g
            square = squares[name] = np.float32(BETA_2) * server.square[name] + np.float32(1 - BETA_2) * g * g
            root = np.sqrt(square / np.float32(1 - BETA_2**step)) + np.float32(EPS)
            nets[name] = server.nets[name] - np.float32(rate / (1 - BETA_1**step)) * mean / root
        return VaeServer(nets, means, squares, server.alpha, step)

    def score(self, private: P, download: Any, block: Block, items: Int32 | None = None) -> Float32:
        """Logits at the mean of z_u, without dropout."""
        import torch

        from fedrec.learn.dual_encoder import ACTIVATIONS, DELTAS, code_chunk

        local = isinstance(download, LocalNets)
        given_nets: Nets = download.nets if local else download
        nets = to_device(given_nets.arrays(), self.device)
        plan, values = self.plan(Keys(0, 1), float(given_nets.alpha[0])), normalised_inputs(block)
        scores = np.empty((block.n_users, block.n_items), np.float32)
        for first in range(0, block.n_users, self.settings.chunk):
            users = slice(first, min(first + self.settings.chunk, block.n_users))
            bags, inside = self.bags(block, users)
            trained = None
            if local:
                changes = {n: getattr(download.changes, n)[users] for n in (*ACTIVATIONS, *DELTAS)}
                trained = to_device({**changes, "values": download.changes.values[inside]}, self.device)
            given = torch.from_numpy(values[inside]).to(self.device)
            logits = code_chunk(nets, self.parts(private, users, inside), bags, given, plan, trained)
            scores[users] = logits.cpu().numpy()
            self.release(private)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        sizes = self.sizes(world.n_items)
        factors = self.settings.epochs * (2 * sizes.n_items + 24 * sizes.dim)
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


def with_ones(values: Float32) -> Float32:
    """Factors ``[users, E, in]`` with the bias's input behind them."""
    return np.concatenate([values, np.ones((*values.shape[:2], 1), np.float32)], axis=2)


def add_factored(total: dict[str, Float64], upload: FactoredUpload, device: str = "cpu") -> int:
    """Add the gradients of all users of an upload: one matrix product a layer."""
    import torch
    from scipy.sparse import coo_matrix

    users, epochs = upload.delta_in.shape[:2]
    if not users:
        return 0
    column = np.repeat(np.arange(users), upload.counts)[:, None] * epochs + np.arange(epochs)
    row = np.repeat(upload.ids, epochs)
    shape = (total["items_in"].shape[0], users * epochs)
    inputs = coo_matrix((upload.values.ravel(), (row, column.ravel())), shape=shape).tocsr()
    deltas = upload.delta_in.reshape(users * epochs, -1)
    total["items_in"] += inputs @ deltas
    total["bias_in"] += deltas.sum(0, dtype=np.float64)

    def flat(array: Float32) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).reshape(users * epochs, -1).to(device)

    for name, left, right in LAYERS:
        product = flat(with_ones(getattr(upload, left))).T @ flat(getattr(upload, right))
        total[name] += product.cpu().numpy()
    return int(users)


def add_dense(total: dict[str, Float64], upload: DenseUpload, device: str = "cpu") -> int:
    """Add the gradients of all clients of an upload."""
    from fedrec.core.fold import add_rows

    add_rows(total["items_in"], upload.items_in)
    for spec in fields(upload):
        if spec.name not in ("users", "items_in"):
            for gradient in getattr(upload, spec.name):  # one client's at a time: memory stays at one
                total[spec.name] += gradient
    return int(upload.users.sum())


def dense_upload(factors: FactoredUpload, block: Block) -> DenseUpload:
    """Whole gradients of each client of a block: the sum over its users of sum over e of a_e delta_e^T."""
    sums: dict[str, Array] = {}
    for name, left, right in LAYERS:
        a, delta = with_ones(getattr(factors, left)), getattr(factors, right)
        gradients = np.zeros((block.n_clients, a.shape[2], delta.shape[2]), np.float32)
        for user, client in enumerate(block.client_of_user):
            gradients[client] += a[user].T @ delta[user]
        sums[name] = gradients
    bias = np.zeros((block.n_clients, factors.delta_in.shape[2]), np.float32)
    np.add.at(bias, block.client_of_user, factors.delta_in.sum(1))
    return DenseUpload(
        users=np.diff(block.user_start).astype(np.int64),
        items_in=_item_rows(factors, block),
        bias_in=bias,
        **sums,
    )


def _item_rows(factors: FactoredUpload, block: Block) -> Rows:
    """Gradient rows of the first layer, client by client, ids ascending; users' rows of one item are added."""
    rows = np.empty((len(factors.ids), factors.delta_in.shape[2]), np.float32)
    train = Ragged(offsets(factors.counts), factors.ids)
    for user in range(len(train)):
        inside = slice(train.start[user], train.start[user + 1])
        rows[inside] = factors.values[inside] @ factors.delta_in[user]
    client = block.client_of_user[train.owners]
    place = client.astype(np.int64) * block.n_items + factors.ids
    order = np.argsort(place, kind="stable")
    first = np.flatnonzero(np.concatenate([[True], np.diff(place[order]) > 0])) if len(order) else order
    kept = place[order][first]
    added = np.add.reduceat(rows[order], first, axis=0) if len(order) else rows
    counts = np.bincount(kept // block.n_items, minlength=block.n_clients)
    return Rows(offsets(counts), (kept % block.n_items).astype(np.int32), added, block.n_items)

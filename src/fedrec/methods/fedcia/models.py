"""The models that FedCIA's clients keep: mf, mlp or lightgcn, alone or mixed in one federation (section 6.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.backbones.base import Backbone
from fedrec.backbones.lightgcn import smoothed
from fedrec.backbones.mf import MatrixFactorisation
from fedrec.backbones.ncf import NeuralCollaborativeFiltering
from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, gather, per_client, per_user
from fedrec.core.method import Keys
from fedrec.data.ragged import segments
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.learn.trained import Trained

KINDS = ("mf", "mlp", "lightgcn")
PAPER_LR = {"mf": 0.1, "lightgcn": 0.1, "mlp": 0.001}
"""Learning rates of the public code."""


@dataclass(frozen=True)
class OwnModel(messages.Private):
    """A client's whole model; nothing of it leaves. Empty for gfcf, which has no parameters."""

    state_name = "fedcia.OwnModel"

    users: Float32 | None = per_user()  # [users, d]
    tables: Float32 | None = per_client()  # [clients, n_items, d], zero beyond a client's own width
    networks: dict[str, Array] = per_client()  # [clients, ...] of mlp


class Perceptron(NeuralCollaborativeFiltering):
    """``[u; v] -> d -> d / 2 -> 1``: for d = 32 the network that GPFedRec and FedCIA compare with."""

    name: ClassVar[str] = "mlp"

    def __init__(self, dim: int) -> None:
        super().__init__((dim, max(1, dim // 2)))


def architectures(settings: Any) -> list[tuple[str, int]]:
    """Kind and embedding dimension of the models in a federation, a third of the clients each (section 6.6)."""
    dim = int(settings.dim)
    if settings.mixed == "architectures":
        return [(name, dim) for name in KINDS]
    name = "mf" if settings.backbone == "gfcf" else str(settings.backbone)
    return [(name, dim >> 2), (name, dim >> 1), (name, dim)] if settings.mixed == "dims" else [(name, dim)]


def group(settings: Any, block: Block, client: int) -> int:
    """Which of the architectures a client has: its own id decides."""
    return int(block.client_keys[client] % np.uint64(len(architectures(settings))))


def kind(settings: Any, block: Block, client: int) -> str:
    return architectures(settings)[group(settings, block, client)][0]


def width(settings: Any, block: Block, client: int) -> int:
    return architectures(settings)[group(settings, block, client)][1]


def fresh_table(n_items: int, keys: Keys, settings: Any) -> Float32:
    """The item table ``[n_items, dim]`` that everybody starts with."""
    base = keyed.stream(keys.seed, keys.round, "items")
    rows = keyed.streams(base, np.arange(n_items, dtype=np.uint64))
    return np.asarray(settings.init_scale * keyed.normal(rows, settings.dim), np.float32)


def fresh_network(keys: Keys, settings: Any) -> dict[str, Array]:
    """The perceptron that everybody starts with; empty where nobody has one."""
    if all(name != "mlp" for name, _ in architectures(settings)):
        return {}
    one = Perceptron(settings.dim).start(np.array([keyed.stream(keys.seed, "networks")], np.uint64), settings.dim)
    return {name: values[0] for name, values in one.items()}


def start(world: World, block: Block, keys: Keys, settings: Any) -> OwnModel:
    """Fresh models: the same item table and network for everybody, user vectors of their own."""
    scale, table = settings.init_scale, fresh_table(world.n_items, keys, settings)
    users = (scale * keyed.normal(keys.users(block, "users"), settings.dim)).astype(np.float32)
    tables = np.repeat(table[None], block.n_clients, axis=0)
    if settings.mixed == "dims":
        for client in range(block.n_clients):
            own = width(settings, block, client)
            tables[client, :, own:] = 0.0
            users[block.user_start[client] : block.user_start[client + 1], own:] = 0.0
    one = fresh_network(keys, settings)
    networks = {name: np.repeat(values[None], block.n_clients, axis=0) for name, values in one.items()}
    return OwnModel(users, tables, networks)


def train(
    private: OwnModel, block: Block, keys: Keys, settings: Any, device: str
) -> tuple[OwnModel, NDArray[np.float64]]:
    """One round of local training of every client's own model (L_pred, Eq. 5); tables are written in place."""
    kinds = np.array([kind(settings, block, client) for client in range(block.n_clients)])
    names = np.unique(kinds)
    if len(names) == 1:
        return _train_kind(str(names[0]), private, block, keys, settings, device)
    loss = np.zeros(block.n_clients)
    for name in names:
        positions = np.flatnonzero(kinds == name)
        part, loss[positions] = _train_kind(
            str(name), gather(private, block, positions), block.take(positions), keys, settings, device
        )
        messages.scatter(private, block, positions, part)
    return private, loss


def _train_kind(
    name: str, private: OwnModel, block: Block, keys: Keys, settings: Any, device: str
) -> tuple[OwnModel, NDArray[np.float64]]:
    assert private.users is not None
    assert private.tables is not None
    drawn, ordered = keys.clients(block, "negatives"), keys.clients(block, "batches")
    settings = settings.model_copy(update={"lr": settings.lr or PAPER_LR[name]})
    trained: Trained
    if name == "lightgcn":
        from fedrec.learn.torch.graphs import train_graphs

        trained = train_graphs(
            block, private.users, private.tables, settings, settings.negatives, settings.layers, drawn, ordered, device
        )
    else:
        backbone: Backbone = MatrixFactorisation() if name == "mf" else Perceptron(settings.dim)
        samples = draw(block, settings.negatives, drawn, settings.engine, "bpr", device)
        networks = private.networks if name == "mlp" else {}
        trained = train_block(
            block, samples, private.users, private.tables, settings, ordered, backbone, networks, device
        )
    owner = np.repeat(np.arange(block.n_clients), np.diff(trained.rows.start))
    private.tables[owner, trained.rows.ids] += trained.rows.values
    kept = {**private.networks, **{n: private.networks[n] + change for n, change in trained.networks.items()}}
    return OwnModel(trained.users, private.tables, kept), trained.loss


def scores(private: OwnModel, tables: list[Float32], block: Block, settings: Any) -> Float32:
    """``[users, n_items]``, each client's users with its own model and its table ``[n_items, width]``."""
    assert private.users is not None
    found = np.empty((block.n_users, block.n_items), np.float32)
    for client, table in enumerate(tables):
        own = segments(block.user_start, np.array([client]))
        users = private.users[own, : table.shape[1]]
        name = kind(settings, block, client)
        if name == "mlp":
            networks = {n: array[client] for n, array in private.networks.items()}
            found[own] = Perceptron(settings.dim).scores(users, table, networks, np.zeros(len(own), np.int64))
            continue
        if name == "lightgcn":
            users, table = smoothed(block.train.take(own), users, table, settings.layers)
        found[own] = users @ table.T
    return found

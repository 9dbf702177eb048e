"""FedCIA's rival among unlike models: parameters averaged within clients of the same architecture (Figure 5, WAA).

Tables of different sizes do not add up, so a client's table meets those of its own kind and size alone. It crosses the
wire by its columns, as many rows as the client's model is wide: a small client sends a small table. Columns of all
architectures stand side by side in the server's table, and every column is the mean over those who sent it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core import messages
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32, Limit, Rows, per_client, shared
from fedrec.core.method import Keys, Update
from fedrec.core.sums import SumField, Summand, Summands, Sums
from fedrec.data.ragged import Int64, offsets
from fedrec.methods.fedcia import models
from fedrec.methods.fedcia.fedcia import SimilarityExchange
from fedrec.methods.fedcia.models import OwnModel


@dataclass(frozen=True)
class ParameterServer:
    """The tables of all architectures side by side, and the network of the perceptrons."""

    tables: Float32  # [n_items, widths of all architectures]
    networks: dict[str, Array]


@dataclass(frozen=True)
class ParameterUpload(messages.Upload):
    """Changes of a client's parameters, and the number of training interactions they come from."""

    columns: Rows = per_client(listed=True)  # rows [n_items] wide: columns of the table
    networks: Rows | None = per_client(listed=True)  # one row, of those who have a perceptron
    sizes: Int64 = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients]


@dataclass(frozen=True)
class ParameterDownload(messages.Download):
    """The server's parameters; empty: a client's own."""

    tables: Float32 | None = shared()
    networks: dict[str, Array] = shared()


OWN = ParameterDownload(None, {})


class ParameterExchange(SimilarityExchange):
    """``E_a = sum_k |D_k| E_k / sum_k |D_k|`` over the clients k of architecture a (section 6.3, WAA)."""

    def start_server(self, world: World, keys: Keys) -> ParameterServer:
        """The clients' common start."""
        table, widths = models.fresh_table(world.n_items, keys, self.settings), models.architectures(self.settings)
        return ParameterServer(
            np.concatenate([table[:, :width] for _, width in widths], axis=1), models.fresh_network(keys, self.settings)
        )

    def download(self, server: ParameterServer) -> ParameterDownload:
        """All architectures': nobody has to say beforehand which is its own."""
        return ParameterDownload(server.tables, server.networks)

    # -- the client

    def local_update(
        self, private: OwnModel, download: ParameterDownload, block: Block, keys: Keys
    ) -> Update[OwnModel, Any]:
        for own, mean in zip(self.own_tables(private, block), self.tables(private, download, block), strict=True):
            own[:] = mean
        kept, loss = models.train(self.with_networks(private, download, block), block, keys, self.settings, self.device)
        return Update(kept, self.changes(kept, download, block), loss, messages.held(OWN))

    def columns(self, block: Block) -> list[NDArray[np.int32]]:
        """Where each client's columns stand in the server's table."""
        start = offsets(np.array([width for _, width in models.architectures(self.settings)]))
        groups = [models.group(self.settings, block, client) for client in range(block.n_clients)]
        return [np.arange(start[own], start[own + 1], dtype=np.int32) for own in groups]

    def tables(self, private: OwnModel, received: Any, block: Block) -> list[Float32]:
        """The clients' tables: what was received of their architecture, or their own."""
        if received.tables is None:
            return self.own_tables(private, block)
        return [received.tables[:, own] for own in self.columns(block)]

    def with_networks(self, private: OwnModel, received: Any, block: Block) -> OwnModel:
        """With the received perceptron in the place of the client's own; other kinds have none that counts."""
        taken = {n: np.repeat(array[None], block.n_clients, axis=0) for n, array in received.networks.items()}
        return replace(private, networks=taken or private.networks)

    def changes(self, private: OwnModel, download: ParameterDownload, block: Block) -> ParameterUpload:
        """What clients send: how their columns moved, and the network of those who have one."""
        assert download.tables is not None
        ids, base = self.columns(block), download.tables
        start = offsets(np.array([len(own) for own in ids], np.int64))
        moved = [(table - base[:, own]).T for table, own in zip(self.own_tables(private, block), ids, strict=True)]
        columns = Rows(start, np.concatenate(ids), np.concatenate(moved), base.shape[1])
        networks = None
        names = sorted(private.networks)
        if names:
            has = np.array([models.kind(self.settings, block, c) == "mlp" for c in range(block.n_clients)])
            pairs = [(private.networks[name][has], download.networks[name]) for name in names]
            one = np.concatenate([(own - mean).reshape(len(own), mean.size) for own, mean in pairs], axis=1)
            networks = Rows(offsets(has.astype(np.int64)), np.zeros(len(one), np.int32), one, 1)
        return ParameterUpload(columns, networks, block.sizes.astype(np.int64))

    # -- the server

    def sum_fields(self, server: Any, users: int) -> dict[str, SumField]:
        n_items, width = server.tables.shape
        most = float(n_items * users)
        found = {"columns": SumField((width, n_items), most)}
        if server.networks:
            found["networks"] = SumField((1, sum(layer.size for layer in server.networks.values())), most)
        return found | {f"{n} size": SumField((f.shape[0], 1), bound=most, protected=False) for n, f in found.items()}

    def summands(self, upload: Any) -> Summands:
        """Every column with the client's weight |D_k|, and the weight itself for the columns that it has."""
        sent = {"columns": upload.columns} | ({} if upload.networks is None else {"networks": upload.networks})
        ones = {f"{n} size": replace(rows, values=np.ones((len(rows.ids), 1), np.float32)) for n, rows in sent.items()}
        return {name: Summand(rows, upload.sizes) for name, rows in (sent | ones).items()}

    def finish(self, server: Any, sums: Sums) -> Any:
        """Every architecture moves by the weighted mean of its clients' changes; one that nobody sent stays."""

        def moved(before: Array, name: str) -> Array:
            size = sums[f"{name} size"]  # [rows, 1]
            return np.asarray(before + sums[name] / np.where(size > 0, size, 1.0), np.float32)

        tables = np.ascontiguousarray(moved(server.tables.T, "columns").T)
        if not server.networks:
            return ParameterServer(tables, {})
        names = sorted(server.networks)
        flat = moved(np.concatenate([server.networks[n].reshape(-1) for n in names])[None], "networks")[0]
        cuts = np.cumsum([server.networks[n].size for n in names])[:-1]
        parts = zip(names, np.split(flat, cuts), strict=True)
        return ParameterServer(tables, {n: part.reshape(server.networks[n].shape) for n, part in parts})

    # -- scores

    def score(self, private: OwnModel, model: Any, block: Block) -> Float32:
        private = self.with_networks(private, model, block)
        return models.scores(private, self.tables(private, model, block), block, self.settings)

    def client_bytes(self, world: World) -> int:
        dim = self.settings.dim
        return 16 * world.n_items * dim + (32 * dim * dim if models.fresh_network(Keys(0, 0), self.settings) else 0)

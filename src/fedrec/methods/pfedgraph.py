"""pFedGraph: a personal mixture for each client, weighted by how similar the models are.

Ye et al., "Personalized federated learning with inferred collaboration graphs", ICML 2023; as the baseline
pFedGraph of FedCA: "graph aggregation by learning the similarities between individuals" (section 6.1), which is
FedCA's Eq. (8) with alpha != 0 and beta = 0 (section 5.2), exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedrec.core import disk_array
from fedrec.core.block import Block, World
from fedrec.core.method import Keys, Reply
from fedrec.data.ragged import Int64
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import UserVectors, vectors_stay
from fedrec.methods._shared.personal import (
    Networks,
    PersonalDownload,
    PersonalMethod,
    PersonalModel,
    PersonalServer,
    StackSettings,
    TicketUpload,
    collect,
    fresh_networks,
    fresh_tables,
    lowest,
    of_clients,
    tickets,
)


class PFedGraphSettings(StackSettings):
    alpha: float = Field(0.5, ge=0, description="weight of model similarity (FedCA Eq. 8)")
    similarity: Literal["distance", "cosine"] = Field(
        "distance",
        description="1 / (1 + ||Q_u - Q_v||^2) (FedCA Eq. 6), or the cosine of the tables (Ye et al.)",
    )
    r: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the clients that trained whose tables are mixed; --participation sets who trains",
    )


class PFedGraph(PersonalMethod[PersonalServer, UserVectors, TicketUpload, PersonalDownload]):
    """Q_u = sum_v w_uv Q_v, w_u = argmin ||w - p||^2 - 2 alpha s_u . w on the simplex."""

    name = "pfedgraph"
    Settings = PFedGraphSettings
    Upload, Download = TicketUpload, PersonalDownload
    enough: ClassVar[dict[str, Any]] = {"r": 1.0}
    card = vectors_stay(
        title="pFedGraph: personal mixtures of item tables by model similarity",
        paper="Ye et al., ICML 2023; as the baseline pFedGraph of FedCA (sections 5.2 and 6.1)",
        upload="change of the item table (and network), the number of training interactions, a random ticket",
        sum_suffices=False,
        robust="rows",
        departures=(
            "similarity as in FedCA's Eq. (6); the original takes cosines (similarity=cosine)",
            "weights come from exact projection onto the simplex instead of a QP solver",
            "the original's pull towards the mixture in local training is proximal=mu; off, as in FedCA's comparison",
        ),
    )

    def start_server(self, world: World, keys: Keys) -> PersonalServer:
        networks = fresh_networks(self.backbone, keys.seed, self.settings.dim, world.n_clients)
        return PersonalServer(fresh_tables(world, keys, self.settings), networks)

    def download(self, server: PersonalServer, clients: Int64) -> PersonalDownload:
        networks = {name: of_clients(values, clients) for name, values in server.networks.items()}
        return PersonalDownload(of_clients(server.tables, clients), networks)

    def start_tables(self, private: UserVectors, download: PersonalDownload) -> tuple[Any, Networks]:
        return download.tables, download.networks

    def sent(self, trained: Trained, model: PersonalModel, block: Block, keys: Keys) -> TicketUpload:
        return TicketUpload(trained.rows, trained.networks, block.sizes.astype(np.int32), tickets(block, keys))

    def aggregate(self, server: PersonalServer, replies: Iterator[Reply[TicketUpload]], keys: Keys) -> PersonalServer:
        from fedrec.maths.composite import composite_weights, mix

        tables = disk_array.copied(server.tables, self.settings.budget())
        networks = {name: values.copy() for name, values in server.networks.items()}
        answers = collect(tables, networks, replies)
        if answers is None:
            return server
        chosen = lowest(answers.tickets, self.settings.r)
        order = np.argsort(answers.clients[chosen], kind="stable")
        clients, sizes = answers.clients[chosen][order], answers.sizes[chosen][order]
        whole = None if len(clients) == len(tables) else clients
        weights = composite_weights(
            self.similar(tables, whole), None, np.maximum(sizes, 1e-12), self.settings.alpha, 0.0, device=self.device
        )
        mix(tables, weights, whole, out=tables, device=self.device)
        for values in networks.values():
            mix(values, weights, whole, out=values, device=self.device)
        return PersonalServer(tables, networks)  # those not aggregated keep what they trained

    def similar(self, tables: Any, clients: Int64 | None) -> Any:
        """s ``[n, n]``."""
        if self.settings.similarity == "cosine":
            from fedrec.maths.graphs import cosines

            return cosines(tables, clients, self.device)
        from fedrec.maths.composite import similarity, squared_distances

        return similarity(squared_distances(tables, clients, self.device))

"""The method `fedcia`: its card, and which of the paper's two algorithms a federation runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from fedrec.core.block import Block, World
from fedrec.core.messages import Float32
from fedrec.core.method import Card, Keys, Method, Reply, Update
from fedrec.core.sums import SumField, Summands, Sums
from fedrec.data.ragged import Int32, Int64
from fedrec.errors import BadInput
from fedrec.methods.fedcia import normalised
from fedrec.methods.fedcia.fedcia import SimilarityExchange
from fedrec.methods.fedcia.filters import FilterExchange
from fedrec.methods.fedcia.messages import CiaDownload, CiaServer, CiaUpload
from fedrec.methods.fedcia.models import OwnModel
from fedrec.methods.fedcia.settings import FedCiaSettings
from fedrec.methods.fedcia.within import ParameterDownload, ParameterExchange, ParameterUpload


class FedCia(Method[Any, OwnModel, Any, Any]):
    """The mean of what clients send, item similarities (section 5.2) or filters (section 5.3)."""

    name = "fedcia"
    Settings = FedCiaSettings
    Private = OwnModel
    Upload: ClassVar[type[Any]] = CiaUpload
    Download: ClassVar[type[Any]] = CiaDownload
    small: ClassVar[dict[str, Any]] = {"backbone": "mf", "lr": 0.05, "init_scale": 0.1}
    enough: ClassVar[dict[str, Any]] = {"backbone": "mf", "dim": 16, "lr": 0.1, "epochs": 5, "init_scale": 0.1}
    enough_rounds = 15
    anew = ("weight", "whole", "left", "right", "normal", "normal_right")
    card = Card(
        title="FedCIA: the mean of the clients' item similarities; every client keeps a model of its own",
        paper="Han et al., SIGIR 2025",
        private="user vectors, item table, network, interactions",
        upload="item similarity (mf, mlp, lightgcn) or filter (gfcf): a matrix of items by items, or its top factors; "
        "without noise, even a secure sum (--secure) of single users' filters holds whole histories: add --epsilon",
        sum_suffices=True,
        departures=(
            "alignment by the closed form (Procrustes) unless align=gradient: the server sends the top factors of C_s",
            "the similarity crosses the wire as its upper triangle: half the bytes, and no entry is noised twice",
            "the optimiser starts fresh each round",
            "the paper gives no scale for fresh embeddings; that of mf was chosen with the paper's ML-100K table in "
            "view",
            "mlp needs more than the public code's one step of 0.001 per round: its recipe has rate 0.01 and 10 local "
            "epochs",
            "truncated filters of gfcf need both singular vectors, since that filter is not symmetric; the loss of a "
            "round is the share of the norm that truncation loses",
            "noise is added to what is sent: to C_k itself in full form (section 5.2.5), to its factors in truncated "
            "form, where the noise of their product is neither Laplacian nor of the same size",
            "gradient steps minimise the norm that the public code uses; align_loss=mse takes Eq. (6)",
            "global_filter=normalised is not in the paper: with one user a client the mean is plain co-occurrence, "
            "which the server then normalises and completes by a low-pass filter of the whole",
            "gfcf has nothing to train: its mean runs over all rounds, so one round is enough, and more only bring in "
            "absent clients",
            "mixed: a client's own id decides which model it has, so the three shares are equal on average (34, 42 "
            "and 24 of the paper's 100 clients on ML-100K); all kinds have the same dim, start and rate unless lr is 0",
            "aggregate=within is not FedCIA but its rival in Figure 5: clients then send item table, network and "
            "number of interactions, and everybody receives the tables of all architectures",
        ),
    )

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        self.settings.check()
        self.exchange: FilterExchange | SimilarityExchange
        if self.settings.parameter_free:
            self.exchange = FilterExchange(self.settings)
        elif self.settings.aggregate == "within":
            self.exchange = ParameterExchange(self.settings, self.device)
            self.Upload, self.Download = ParameterUpload, ParameterDownload  # type: ignore[misc]
            self.also_sent = ("tables", "networks")  # type: ignore[misc]
        else:
            self.exchange = SimilarityExchange(self.settings, self.device)

    def start_server(self, world: World, keys: Keys) -> Any:
        if isinstance(self.exchange, ParameterExchange):
            return self.exchange.start_server(world, keys)
        return CiaServer(world.n_items)

    def start_clients(self, world: World, block: Block, keys: Keys) -> OwnModel:
        return self.exchange.start_clients(world, block, keys)

    def download(self, server: Any, clients: Int64) -> Any:
        if isinstance(self.exchange, ParameterExchange):
            return self.exchange.download(server)
        if server.normal is not None:
            return normalised.received(server)
        return CiaDownload(server.whole, server.left, server.right)

    def local_update(self, private: OwnModel, download: Any, block: Block, keys: Keys) -> Update[OwnModel, Any]:
        return self.exchange.local_update(private, download, block, keys)

    def aggregate(self, server: Any, replies: Iterator[Reply[Any]], keys: Keys) -> Any:
        if self.factors(server):  # thin factors of a mean are not the mean of thin factors
            return self._filtered(self.exchange.fold_factors(server, replies))
        return super().aggregate(server, replies, keys)

    def factors(self, server: Any) -> bool:
        """Whether clients send thin factors (section 5.4.2) instead of whole matrices."""
        return (
            isinstance(server, CiaServer)
            and self.settings.align != "none"
            and bool(self.settings.truncates(server.n_items))
        )

    def sum_fields(self, server: Any, users: int) -> dict[str, SumField]:
        if self.factors(server):
            raise BadInput("fedcia sends thin factors here, which do not add up; --set form=full sends whole matrices")
        return self.exchange.sum_fields(server, users)

    def summands(self, upload: Any, download: Any) -> Summands:
        return self.exchange.summands(upload)

    def finish(self, server: Any, sums: Sums, keys: Keys) -> Any:
        return self._filtered(self.exchange.finish(server, sums))

    def _filtered(self, server: Any) -> Any:
        """With the low-pass filter of the normalised mean, where that is asked for."""
        if self.settings.parameter_free and self.settings.global_filter == "normalised":
            return normalised.with_filter(server, self.settings.k, self.settings.alpha)
        return server

    def score(self, private: OwnModel, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        scores = self.exchange.score(private, model, block)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def settled_after(self) -> int | None:
        """Filters: after one round, unless uploads are noised anew in each."""
        return 1 if self.settings.parameter_free and not self.settings.noise else None

    def client_bytes(self, world: World) -> int:
        return self.exchange.client_bytes(world)

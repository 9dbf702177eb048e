"""What FedRAP and Fed3CR share: state, exchange and local training of clients with a shared and a private item table.

A client keeps a private item table V beside its copy C of the shared one (the consensus). Three pieces of Fed3CR can be
switched on and off, on top of any score function (its Figure 8): a transfer matrix W that adapts the consensus (Eq.
9-12), consistency (Eq. 15-16) and complementarity (Eq. 17-18). The objectives stand in the papers' files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fedrec import keyed
from fedrec.backbones import find as find_backbone
from fedrec.core import disk_array, wire
from fedrec.core.block import Block, World
from fedrec.core.messages import Array, Float32
from fedrec.core.method import Keys, Method, Update
from fedrec.data.ragged import Int32, Int64
from fedrec.learn.samples import draw
from fedrec.methods._shared.embedding import ItemDownload, ItemServer, ItemUpload, fresh, fresh_items, fresh_network
from fedrec.methods._shared.server_steps import WHOLE, GradientServer, MeanOfChanges
from fedrec.methods.two_views.generator import MATRIX, generator_sizes, start_generator
from fedrec.methods.two_views.settings import LocalViews, TwoViewPrivate, TwoViewSettings
from fedrec.methods.two_views.step import RATES, Objective

if TYPE_CHECKING:
    from fedrec.methods.two_views.step import Loss


@dataclass(frozen=True)
class Base:
    """What stands around an objective. Fed3CR's is plugged into other methods (Figure 8): the downloaded table is the
    consensus, a private table stands beside it, and the rest is the other method's own."""

    scorer: str
    """Its score function, as a backbone."""
    phases: tuple[dict[str, Any], ...] = field(default=({},))
    """Local training: what differs from the objective in each of its phases."""
    common_start: bool = False
    """Whether all clients start from one score function."""
    gradients: bool = False
    """Whether clients upload a gradient of the consensus, and the server descends along it."""


BASES = {
    "none": Base("mf"),
    # user vectors (and what is private) are improved with the downloaded table fixed; then its gradient, whole
    "fedmf": Base(
        "mf",
        (
            {"shared_rate": 0.0},
            {"lr": 0.0, "private_rate": 0.0, "lr_transfer": 0.0, "epochs": 1, "batch_size": WHOLE,
             "optimizer": "sgd", "reduction": "mean", "weight_decay": 0.0, "tolerance": 0.0},
        ),
        gradients=True,
    ),
    "fedncf": Base("ncf"),
    # first the score function with the tables fixed, then the tables with the score function fixed
    "pfedrec": Base("affine", ({"lr_items": 0.0}, {"lr": 0.0, "lr_transfer": 0.0}), common_start=True),
    "fedrap": Base("affine", common_start=True),
}  # fmt: skip


class TwoViews(MeanOfChanges, Method[ItemServer, TwoViewPrivate, ItemUpload, ItemDownload]):
    """Clients with two views of every item; a paper adds its objective. The server takes the mean of the changes."""

    Settings = TwoViewSettings
    Private, Upload, Download = TwoViewPrivate, ItemUpload, ItemDownload
    plain: ClassVar[Loss]
    """The paper's objective as plain formulas."""

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        self.backbone = find_backbone(self.base().scorer)

    def base(self) -> Base:
        """What stands around the objective."""
        return BASES["none"]

    def plain_loss(self, number: int) -> Loss:
        """The plain objective in round ``number``."""
        return type(self).plain

    def extra(self, number: int) -> dict[str, Any]:
        """Further terms of the objective in round ``number``."""
        return {}

    def objective(self, number: int) -> Objective:
        """The weights and rates of the local objective in round ``number`` (1, 2, ...)."""
        chosen = self.settings
        slower = chosen.decay ** (max(number, 1) - 1)
        rates = {name: getattr(chosen, name) * slower for name in RATES}
        given: dict[str, Any] = {f.name: getattr(chosen, f.name) for f in fields(Objective) if hasattr(chosen, f.name)}
        given |= {"lambda_": 0.0, "mu": 0.0, **rates, **self.extra(number)}
        return Objective(**given)

    def phases(self, number: int) -> tuple[Objective, ...]:
        """Local training of round ``number``, phase by phase: one, unless a method takes turns."""
        return tuple(replace(self.objective(number), **own) for own in self.base().phases)

    def start_server(self, world: World, keys: Keys) -> ItemServer:
        chosen = self.settings
        networks: dict[str, Array] = {}
        if self.backbone.kernel is None:
            networks = fresh_network(self.backbone, keys.seed, chosen.dim)
        if chosen.transfer == "ace":
            networks |= start_generator(keyed.stream(keys.seed, "transfer"), chosen.dim, chosen.layers)
        elif chosen.transfer != "none":
            networks[MATRIX] = np.eye(chosen.dim, dtype=np.float32)
        server = ItemServer(fresh_items(world, keys, chosen, "items", chosen.shared_scale), networks)
        return GradientServer.fresh(server) if self.base().gradients else server

    def start_clients(self, world: World, block: Block, keys: Keys) -> TwoViewPrivate:
        chosen = self.settings
        if self.base().common_start or chosen.scorer_start == "common":
            one = keyed.streams(keyed.stream(keys.seed, keys.round, "scorer"), np.zeros(1, np.uint64))
            users = np.repeat(fresh(one, chosen.dim, chosen), block.n_users, axis=0)
        else:
            users = fresh(keys.users(block, "users"), chosen.dim, chosen)
        # every client starts from the same private table: what differs later is what it learnt itself
        table = fresh_items(world, keys, chosen, "private items", chosen.private_scale)
        budget = disk_array.Budget(chosen.private_budget_mb, chosen.private_dir)
        tables = disk_array.zeros((block.n_clients, *table.shape), budget)
        disk_array.fill(tables, table)
        return TwoViewPrivate(users, np.zeros(block.n_users, np.float32), tables)

    def download(self, server: ItemServer, clients: Int64) -> ItemDownload:
        return ItemDownload(server.items, server.networks)

    def model(self, download: ItemDownload) -> LocalViews:
        return LocalViews(download.items, None, download.networks, {})

    def local_update(
        self, private: TwoViewPrivate, download: ItemDownload, block: Block, keys: Keys
    ) -> Update[TwoViewPrivate, ItemUpload]:
        """E epochs of gradient descent on the objective from the download, for a block of clients."""
        from fedrec.methods.two_views.train import train_two_views

        chosen, affine = self.settings, self.backbone.kernel == "affine"
        samples = draw(block, chosen.negatives, keys.clients(block, "negatives"))
        own = {"bias": private.bias} if affine else {}
        trained = train_two_views(
            block, samples, private.users, download.items, private.tables, {**download.networks, **own},
            self.backbone, self.phases(keys.round), self.plain_loss(keys.round), keys.clients(block, "batches"),
            engine=chosen.engine, device=self.device,
        )  # fmt: skip
        networks = dict(trained.networks)
        bias = private.bias + networks.pop("bias") if affine else private.bias
        rows = wire.rows_of_tables(trained.shared)
        local = LocalViews(download.items, None if self.base().gradients else rows, download.networks, networks)
        kept = TwoViewPrivate(trained.users, bias, private.tables)
        return Update(kept, ItemUpload(rows, networks), trained.loss, local)

    def score(self, private: TwoViewPrivate, model: LocalViews, block: Block, items: Int32 | None = None) -> Float32:
        from fedrec.methods.two_views.reading import Reader

        scores = Reader.of(self, private, model, block).scores()
        return scores if items is None else np.take_along_axis(scores, items, axis=1)

    def client_bytes(self, world: World) -> int:
        dim = int(self.settings.dim)
        table = 4 * world.n_items * dim
        made = 0
        if self.settings.transfer == "ace":
            made = 4 * sum((a + 1) * b for a, b in generator_sizes(dim, self.settings.layers))
        return 3 * table + 3 * made + 16 * world.n_items

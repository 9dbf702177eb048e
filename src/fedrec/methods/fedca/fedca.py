"""FedCA: personal mixtures of item tables, weighted by model similarity and data complementarity.

Zhang et al., "Beyond Similarity: Personalized Federated Recommendation with Composite Aggregation", ACM
Transactions on Information Systems 44(2), 2026. Symbols: user vector p_u, the client's item table Q_u, what stands
for its data X_u, the server's weights w_u. In the order of Algorithm 1:

    client   Q_u = rho Q_u + (1 - rho) Q_u^g                                                      (section 5.1.3)
             L_u = - sum_i r_ui log r^_ui + (1 - r_ui) log(1 - r^_ui),  r^_ui = f(p_u, q_u^i)     (Eq. 12)
             p_u = p_u - eta dL_u/dp_u,  Q_u = Q_u - eta dL_u/dQ_u                                (Eq. 13)
             X_u = k left singular vectors of the interacted rows of Q_u                          (section 5.1.1)
    server   s_uv = 1 / (1 + ||Q_u - Q_v||^2)                                                     (Eq. 6)
             c_uv = cos (1/k) sum_l arccos(x_u^l . x_v^l)                                         (Eq. 7)
             w_u = argmin x'x - (2 p + 2 alpha s_u + beta c_u)'x,  1'x = 1, x >= 0                (Eq. 8)
             Q_u^g = sum_v w_uv Q_v                                                               (line 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from fedrec.backbones.tables import ItemTable
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32
from fedrec.core.method import Keys, Reply, Update
from fedrec.data.ragged import Int32, Int64
from fedrec.learn.trained import Trained
from fedrec.methods._shared.embedding import EmbeddingMethod, fresh_items
from fedrec.methods._shared.personal import (
    Networks,
    PersonalMethod,
    PersonalModel,
    fresh_networks,
    fresh_tables,
    of_clients,
    tickets,
)
from fedrec.methods.fedca import auto
from fedrec.methods.fedca.card import CARD
from fedrec.methods.fedca.data_part import data_part
from fedrec.methods.fedca.messages import FedCaDownload, FedCaPrivate, FedCaServer, FedCaUpload, Reported, Terms
from fedrec.methods.fedca.mixing import collected, mixed
from fedrec.methods.fedca.settings import FedCaSettings, check


class FedCa(PersonalMethod[FedCaServer, FedCaPrivate, FedCaUpload, FedCaDownload]):
    """Composite aggregation of whole tables, one mixture for each client."""

    name = "fedca"
    Settings = FedCaSettings
    Private, Upload, Download = FedCaPrivate, FedCaUpload, FedCaDownload
    also_sent = ("tables", "networks")
    enough: ClassVar[dict[str, Any]] = {"alpha": 0.1, "beta": 0.1, "rho": 0.0, "r": 1.0}
    card = CARD

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        check(self.settings)

    def start_server(self, world: World, keys: Keys) -> FedCaServer:
        """Line 1: everybody starts from the same table and network."""
        first = fresh_items(world, keys, self.settings)
        networks = fresh_networks(self.backbone, keys.seed, self.settings.dim, world.n_clients)
        average = self.settings.train_from == "average"
        return FedCaServer(
            tables=fresh_tables(world, keys, self.settings),
            networks=networks,
            first=first,
            weights=np.eye(world.n_clients, dtype=np.float32),
            common=first.copy() if average else None,
            common_networks={name: values[0] for name, values in networks.items()} if average else {},
            trials=auto.Trials.none(world.n_clients, self.settings) if self.settings.auto else None,
        )

    def start_clients(self, world: World, block: Block, keys: Keys) -> FedCaPrivate:
        users = EmbeddingMethod.start_clients(self, world, block, keys).users
        if self.settings.rho == 0:
            return FedCaPrivate(users, None, {})
        networks = fresh_networks(self.backbone, keys.seed, self.settings.dim, block.n_clients)
        table = fresh_items(world, keys, self.settings)
        return FedCaPrivate(users, np.repeat(table[None], block.n_clients, axis=0), networks)

    def download(self, server: FedCaServer, clients: Int64) -> FedCaDownload:
        """Line 3: each client's own mixture."""
        networks = {name: of_clients(values, clients) for name, values in server.networks.items()}
        return FedCaDownload(of_clients(server.tables, clients), networks, server.common, server.common_networks)

    # -- the client: LocalTraining (Eq. 12 and 13, :meth:`train`), and what it sends

    def local_update(
        self, private: FedCaPrivate, download: Any, block: Block, keys: Keys
    ) -> Update[FedCaPrivate, FedCaUpload]:
        gains = auto.gains(self, private, download, block) if self.settings.auto else None
        done = super().local_update(private, download, block, keys)
        return replace(done, upload=replace(done.upload, gains=gains))

    def start_tables(self, private: FedCaPrivate, download: Any) -> tuple[Float32, Networks]:
        """Line 5: training starts from the mixture (or the average), blended with the client's own last table."""
        tables, networks = download.tables, download.networks
        if download.common is not None:
            tables = np.broadcast_to(download.common, tables.shape)
            networks = {n: np.repeat(one[None], len(tables), axis=0) for n, one in download.common_networks.items()}
        if private.tables is None or self.settings.blend == "inference":
            return tables.copy(), networks
        return self.blended(private, tables, networks, private.tables)

    def blended(
        self, private: FedCaPrivate, tables: Float32, networks: Networks, out: Float32
    ) -> tuple[Float32, Networks]:
        """Section 5.1.3: ``rho Q_u + (1 - rho) Q_u^g``; ``out`` holds Q_u and is written over."""
        rho = np.float32(self.settings.rho)
        for client in range(len(out)):  # one table of working memory
            out[client] *= rho
            out[client] += (1 - rho) * tables[client]
        return out, {n: rho * private.networks[n] + (1 - rho) * other for n, other in networks.items()}

    def after(self, tables: Float32, networks: Networks, trained: Trained) -> PersonalModel:
        """The whole tables: they are sent, and kept for the next blend."""
        owner = np.repeat(np.arange(len(tables)), np.diff(trained.rows.start))
        tables[owner, trained.rows.ids] += trained.rows.values
        return PersonalModel(tables, None, networks)

    def kept(self, private: FedCaPrivate, trained: Trained, model: PersonalModel) -> FedCaPrivate:
        if self.settings.rho == 0:
            return FedCaPrivate(trained.users, None, {})
        return FedCaPrivate(trained.users, model.tables, model.networks)

    def sent(self, trained: Trained, model: PersonalModel, block: Block, keys: Keys) -> FedCaUpload:
        return FedCaUpload(
            tables=model.tables,
            networks=model.networks,
            sizes=block.sizes.astype(np.int32),
            tickets=None if self.settings.r == 1 and not self.settings.auto else tickets(block, keys),
            **data_part(model.tables, trained.rows, block, keys, self.settings),
            gains=None,
        )

    def whole_values(self, server: FedCaServer, clients: Int64) -> dict[str, Any]:
        """Tables leave whole: what counts as a client's change is how far they are from what it was sent."""
        networks = {f"networks[{name}]": of_clients(values, clients) for name, values in server.networks.items()}
        return {"tables": of_clients(server.tables, clients), **networks}

    # -- the server: lines 7 to 9, and the mixture

    def aggregate(self, server: FedCaServer, replies: Iterator[Reply[FedCaUpload]], keys: Keys) -> FedCaServer:
        from fedrec.maths.composite import on_device

        found = collected(server, replies)
        if found is None:
            return server
        tables, networks, reported, absent = found
        answered, chosen = reported.clients, reported.aggregated(self.settings.r)

        placed = on_device(tables, self.device)
        terms = self.terms(placed, tables, chosen, server)
        trials = server.trials
        if trials is None:
            weights = self.weights(terms, self.settings.alpha, self.settings.beta)
        else:
            trials = trials.heard(answered, reported.gains).dealt(chosen.clients, chosen.tickets)
            weights = auto.weights(self, terms, trials.points[chosen.clients])
        kept = server.weights.copy()
        kept[answered] = 0
        kept[answered, answered] = 1  # who is not aggregated keeps its own table
        kept[np.ix_(chosen.clients, chosen.clients)] = weights.cpu().numpy()
        moved = replace(server, tables=tables, networks=networks, weights=kept, trials=trials)
        return mixed(moved, placed, server, terms, weights, absent, self.settings, self.device)

    def terms(self, placed: Any, tables: Float32, reported: Reported, server: FedCaServer) -> Terms:
        """p, s and c between the aggregated clients, as far as the settings need them."""
        from fedrec.maths.row_mixtures import standardised

        chosen, clients = self.settings, reported.clients
        alpha, beta = (chosen.beta, chosen.alpha) if chosen.weights == "code" else (chosen.alpha, chosen.beta)
        similar = self.similar(placed, tables, clients, server) if alpha else None
        complementary = self.complementary(reported) if beta else None
        for term in (similar, complementary):
            if term is not None and chosen.standardised:
                standardised(term)
            elif term is not None and not chosen.own_term:
                term.fill_diagonal_(0)
        return Terms(clients, self.proxy(tables, reported, server), similar, complementary)

    def proxy(self, tables: Float32, reported: Reported, server: FedCaServer) -> Any:
        """p ``[n]`` up to scale: what stands for L_u on the server (sections 5.1.1 and 5.2)."""
        from fedrec.maths.row_mixtures import distances

        if self.settings.proxy == "mean":
            return np.ones(len(reported.sizes))
        if self.settings.proxy == "size":
            return reported.sizes
        apart = distances(tables, server.sent, reported.clients)
        return np.exp(apart - apart.max())

    def similar(self, placed: Any, tables: Float32, clients: Int64, server: FedCaServer) -> Any:
        """s ``[n, n]`` of whole tables: ``1 / (1 + ||Q_u - Q_v||^2)`` (Eq. 6), or another similarity."""
        from fedrec.maths import composite
        from fedrec.maths.row_mixtures import cosines_of_changes

        whole = None if len(clients) == len(tables) else clients
        if self.settings.variant_similarity == "code":
            return composite.similarity_as_coded(placed, server.first, whole, self.device)
        if self.settings.variant_similarity == "changes":
            return cosines_of_changes(placed, server.sent, clients, self.device)
        return composite.similarity(composite.squared_distances(placed, whole, self.device))

    def complementary(self, reported: Reported) -> Any:
        """c ``[n, n]``: the cosine of the mean angle between the columns of X_u and X_v (Eq. 7)."""
        from fedrec.maths import composite

        if reported.components is not None:
            angles = composite.matched_angles(reported.components, self.device)
        else:
            angles = composite.mean_angles(reported.subspaces, reported.start, self.device)
        return composite.complementarity(angles, self.settings.complementarity)

    def weights(self, terms: Terms, alpha: float, beta: float, rows: Any = slice(None)) -> Any:
        """W ``[n, n]`` of the aggregated clients (Eq. 8): ``p + alpha s_u + beta/2 c_u`` put on the simplex."""
        from fedrec.maths import composite

        similar, complementary = (None if t is None else t[rows] for t in (terms.similar, terms.complementary))
        return composite.composite_weights(
            similar, complementary, terms.proxy, alpha, beta,
            normalise=self.settings.normalise, roles=self.settings.weights, device=self.device,
        )  # fmt: skip

    # -- local inference

    def score(self, private: FedCaPrivate, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        """Section 5.1.3: with the blend of the client's own table and the mixture, or with what was just trained."""
        if isinstance(model, PersonalModel):
            return super().score(private, model, block, items)
        return self.scores_with(private, model.tables, model.networks, block, items)

    def scores_with(
        self, private: FedCaPrivate, tables: Float32, networks: Networks, block: Block, items: Int32 | None = None
    ) -> Float32:
        """Scores with these tables ``[clients, n_items, d]`` in the blend."""
        if private.tables is not None and self.backbone.kernel == "dot":  # linear in the table: no blend is needed
            rho, owner = np.float32(self.settings.rho), block.client_of_user
            scores = rho * self.backbone.scores(private.users, private.tables, {}, owner)
            scores += (1 - rho) * self.backbone.scores(private.users, tables, {}, owner)
            return scores if items is None else np.take_along_axis(scores, items, axis=1)
        if private.tables is not None:
            tables, networks = self.blended(private, tables, networks, private.tables.copy())
        users = self.users_with(private, tables, networks, block)
        return ItemTable(tables, None).scores(users, block.client_of_user, items, self.backbone, networks)

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
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, Rows
from fedrec.core.method import Card, Keys, Reply
from fedrec.data.ragged import Int32, Int64
from fedrec.errors import BadInput
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
from fedrec.methods.fedca.messages import FedCaDownload, FedCaPrivate, FedCaServer, FedCaUpload, Reported
from fedrec.methods.fedca.settings import FedCaSettings


class FedCa(PersonalMethod[FedCaServer, FedCaPrivate, FedCaUpload, FedCaDownload]):
    """Composite aggregation of whole tables, one mixture for each client."""

    name = "fedca"
    Settings = FedCaSettings
    Private, Upload, Download = FedCaPrivate, FedCaUpload, FedCaDownload
    also_sent = ("tables", "networks")
    enough: ClassVar[dict[str, Any]] = {"alpha": 0.1, "beta": 0.1, "rho": 0.0, "r": 1.0}
    card = Card(
        title="FedCA: personal mixtures of item tables by model similarity and data complementarity",
        paper="Zhang et al., ACM TOIS 44(2), 2026",
        private="user vectors, interactions, the client's own last table",
        upload="the whole item table (and network), k left singular vectors of the interacted items' embeddings, "
        "the number of training interactions",
        sum_suffices=False,
        departures=(
            "Eq. (8) is solved exactly by projection onto the simplex instead of by a QP solver; Eq. (8) drops the "
            "factor 1 + alpha of Eq. (5), which normalise=eq5 keeps",
            "signs of singular vectors, which the paper leaves open, are such that a column sums to at least zero",
            "the blend (rho) is applied before local training, not only at inference, to the network as well; the "
            "proximal term (Table 9) pulls towards the table that training starts from",
            "raw of Table 11 is read as: the interacted items' embeddings themselves, columns scaled to length one",
            "public code: alpha and beta swapped and doubled (weights=code), one-component PCA similarity "
            "(variant_similarity=code), matched principal components (variant_complementarity=code; matching "
            "without regard to sign is our reading); aggregated share 0.1 there, 0.6 in the paper (r)",
            "where a client holds several users, an item counts once for each of them in I_u",
            "for very many clients there is fedca-approx (not in the paper)",
            "|D_u| and a random ticket (8 bytes together) leave the client beside what Table 7 counts",
        ),
    )

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        super().__init__(settings, device)
        if self.settings.neighbours:
            raise BadInput(f"fedca has no neighbours; use fedca-approx with neighbours={self.settings.neighbours}")

    def start_server(self, world: World, keys: Keys) -> FedCaServer:
        """Line 1: everybody starts from the same table and network."""
        return FedCaServer(
            tables=fresh_tables(world, keys, self.settings),
            networks=fresh_networks(self.backbone, keys.seed, self.settings.dim, world.n_clients),
            first=fresh_items(world, keys, self.settings),
            weights=np.eye(world.n_clients, dtype=np.float32),
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
        return FedCaDownload(of_clients(server.tables, clients), networks)

    # -- the client: the blend, LocalTraining (Eq. 12 and 13, :meth:`train`), and what it sends

    def start_tables(self, private: FedCaPrivate, download: Any) -> tuple[Float32, Networks]:
        """Section 5.1.3: ``rho Q_u + (1 - rho) Q_u^g``, written over the client's own last table."""
        rho, own = np.float32(self.settings.rho), private.tables
        if own is None:
            return download.tables, download.networks
        for client in range(len(own)):  # one table of working memory
            own[client] *= rho
            own[client] += (1 - rho) * download.tables[client]
        return own, {n: rho * private.networks[n] + (1 - rho) * other for n, other in download.networks.items()}

    def after(self, tables: Float32, networks: Networks, trained: Trained) -> PersonalModel:
        """The whole tables: they are sent, and kept for the next blend."""
        if self.settings.rho == 0:
            tables = tables.copy()  # those of the download
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
            tickets=None if self.settings.r == 1 else tickets(block, keys),
            **data_part(model.tables, trained.rows, block, keys, self.settings),
        )

    def whole_values(self, server: FedCaServer, clients: Int64) -> dict[str, Any]:
        """Tables leave whole: what counts as a client's change is how far they are from what it was sent."""
        networks = {f"networks[{name}]": of_clients(values, clients) for name, values in server.networks.items()}
        return {"tables": of_clients(server.tables, clients), **networks}

    # -- the server: lines 7 to 9, and the mixture

    def aggregate(self, server: FedCaServer, replies: Iterator[Reply[FedCaUpload]], keys: Keys) -> FedCaServer:
        from fedrec.maths.composite import mix, on_device

        tables = np.empty(server.tables.shape, np.float32)  # pages are taken as clients answer
        networks = {name: values.copy() for name, values in server.networks.items()}
        small: list[tuple[Int64, FedCaUpload]] = []
        for reply in replies:
            tables[reply.clients] = reply.upload.tables
            for name, values in reply.upload.networks.items():
                networks[name][reply.clients] = values
            small.append((reply.clients, replace(reply.upload, tables=tables[:0], networks={})))
        if not small:
            return server
        reported = Reported.of([clients for clients, _ in small], [upload for _, upload in small])
        answered, chosen = reported.clients, reported.aggregated(self.settings.r)
        absent = np.setdiff1d(np.arange(len(tables)), answered)
        tables[absent] = server.tables[absent]  # their next download is their last one

        whole = None if len(chosen.clients) == len(tables) else chosen.clients
        placed = on_device(tables, self.device)
        weights = self.weights(placed, whole, chosen, server.first)
        mix(placed, weights, whole, out=tables, device=self.device)  # Q_u^g = sum_v w_uv Q_v
        for values in networks.values():
            mix(values, weights, whole, out=values, device=self.device)
        kept = server.weights.copy()
        kept[answered] = 0
        kept[answered, answered] = 1  # who is not aggregated keeps its own table
        kept[np.ix_(chosen.clients, chosen.clients)] = weights.cpu().numpy()
        return FedCaServer(tables, networks, server.first, kept)

    def similar(self, tables: Any, clients: Int64 | None, first: Float32) -> Any:
        """s ``[n, n]`` of whole tables: ``1 / (1 + ||Q_u - Q_v||^2)`` (Eq. 6)."""
        from fedrec.maths import composite

        if self.settings.variant_similarity == "code":
            return composite.similarity_as_coded(tables, first, clients, self.device)
        return composite.similarity(composite.squared_distances(tables, clients, self.device))

    def complementary(self, reported: Reported) -> Any:
        """c ``[n, n]``: the cosine of the mean angle between the columns of X_u and X_v (Eq. 7)."""
        from fedrec.maths import composite

        if reported.components is not None:
            angles = composite.matched_angles(reported.components, self.device)
        else:
            angles = composite.mean_angles(reported.subspaces, reported.start, self.device)
        return composite.complementarity(angles, self.settings.complementarity)

    def weights(self, tables: Any, clients: Int64 | None, reported: Reported, first: Float32) -> Any:
        """W ``[n, n]`` of the aggregated clients (Eq. 8): ``p + alpha s_u + beta/2 c_u`` put on the simplex."""
        from fedrec.maths import composite

        chosen = self.settings
        alpha, beta = (chosen.beta, chosen.alpha) if chosen.weights == "code" else (chosen.alpha, chosen.beta)
        similar = self.similar(tables, clients, first) if alpha else None
        complementary = self.complementary(reported) if beta else None
        return composite.composite_weights(
            similar, complementary, reported.sizes, chosen.alpha, chosen.beta,
            normalise=chosen.normalise, roles=chosen.weights, device=self.device,
        )  # fmt: skip

    # -- local inference

    def score(self, private: FedCaPrivate, model: Any, block: Block, items: Int32 | None = None) -> Float32:
        """Section 5.1.3: with the blend of the client's own table and the mixture, or with what was just trained."""
        if private.tables is None or isinstance(model, PersonalModel):
            return super().score(private, model, block, items)
        if self.backbone.kernel != "dot":
            return super().score(replace(private, tables=private.tables.copy()), model, block, items)
        rho, owner = np.float32(self.settings.rho), block.client_of_user  # linear in the table: no blend is needed
        scores = rho * self.backbone.scores(private.users, private.tables, {}, owner)
        scores += (1 - rho) * self.backbone.scores(private.users, model.tables, {}, owner)
        return scores if items is None else np.take_along_axis(scores, items, axis=1)


def data_part(tables: Float32, rows: Rows, block: Block, keys: Keys, settings: FedCaSettings) -> dict[str, Any]:
    """X_u of each client, from its trained table (section 5.1.1); nothing where nobody needs it."""
    from fedrec.maths.subspaces import left_singular, principal_components, unit_columns

    if settings.beta == 0 and settings.weights == "paper":
        return {"subspaces": None, "components": None}
    if settings.variant_complementarity == "code":  # items of the training batch, negatives included
        owner = np.repeat(np.arange(block.n_clients), np.diff(rows.start))
        return {"subspaces": None, "components": principal_components(tables[owner, rows.ids], rows.start, settings.k)}
    owner = block.client_of_user[block.train.owners]
    start = block.train.start[block.user_start]
    interacted = tables[owner, block.train.values]  # [interactions, d] Q_u^s
    raw = settings.complementarity == "raw"
    found = unit_columns(interacted, start) if raw else left_singular(interacted, start, settings.k)
    if settings.noise_svd > 0:
        streams = keys.clients(block, "noise svd")
        found += (settings.noise_svd * laplace_rows(streams, start, found.shape[1])).astype(np.float32)
    return {"subspaces": found, "components": None}


def laplace_rows(streams: keyed.U64, start: Int64, width: int) -> NDArray[np.float64]:
    """Laplace(0, 1) numbers ``[rows, width]``; a number depends on its client's stream and its place in it."""
    counts = np.diff(start)
    owner = np.repeat(np.arange(len(counts)), counts)
    within = (np.arange(len(owner)) - start[owner]).astype(np.uint64) * np.uint64(width)
    rows = streams[owner] + within * np.uint64(keyed.GOLDEN)  # word i of a stream is mix(key + (i + 1) GOLDEN)
    return keyed.laplace(rows, width)

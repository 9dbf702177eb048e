"""The mixtures of a round: ``Q_u^g = sum_v w_uv Q_v`` (FedCA Algorithm 1, line 3), and the average beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.core.messages import Array, Float32
from fedrec.core.method import Reply
from fedrec.data.ragged import Int64
from fedrec.methods.fedca.messages import FedCaServer, FedCaUpload, Reported, Terms
from fedrec.methods.fedca.settings import FedCaSettings


def collected(
    server: FedCaServer, replies: Iterator[Reply[FedCaUpload]]
) -> tuple[Float32, dict[str, Array], Reported, Int64] | None:
    """Everybody's table and network as they were sent, the small fields, and who is absent: those stay as they were."""
    tables = np.empty(server.tables.shape, np.float32)  # pages are taken as clients answer
    networks = {name: values.copy() for name, values in server.networks.items()}
    small: list[Reply[FedCaUpload]] = []
    for reply in replies:
        tables[reply.clients] = reply.upload.tables
        for name, values in reply.upload.networks.items():
            networks[name][reply.clients] = values
        small.append(Reply(reply.clients, replace(reply.upload, tables=tables[:0], networks={})))
    if not small:
        return None
    reported = Reported.of(small)
    absent = np.setdiff1d(np.arange(len(tables)), reported.clients)
    tables[absent] = server.tables[absent]  # their next download is their last one
    return tables, networks, reported, absent


def mixed(
    moved: FedCaServer,
    placed: Any,
    before: FedCaServer,
    terms: Terms,
    weights: Any,
    absent: Int64,
    settings: FedCaSettings,
    device: str,
) -> FedCaServer:
    """``moved`` holds what clients sent, which becomes their mixtures; ``before`` is what training started from.

    Who is ``absent`` has no measures, and its mixture stays, unless there are none: then everybody's is the average.
    """
    from fedrec.maths.composite import mix

    tables, clients = moved.tables, terms.clients
    whole = None if len(clients) == len(tables) else clients
    p = np.asarray(terms.proxy, np.float64) / np.sum(terms.proxy)
    common_networks = moved.common_networks
    if moved.common is not None:
        common_networks = {
            name: np.tensordot(p, values[clients], axes=1).astype(np.float32) for name, values in moved.networks.items()
        }
    common = average = None
    alike = terms.similar is None and terms.complementary is None  # everybody's mixture is the average
    if settings.averaged == "rows" or moved.common is not None or alike:
        average, trained = average_rows(tables, before.sent, terms, settings.averaged == "rows", device)
        common = average if moved.common is not None else None
    if alike:
        tables[clients] = tables[absent] = average
    elif settings.averaged == "rows":
        from fedrec.maths.row_mixtures import mix_rows

        assert average is not None
        tables[clients] = mix_rows(tables, weights, clients, trained, average, device)
    else:
        mix(placed, weights, whole, out=tables, device=device)
    for values in moved.networks.values():
        mix(values, weights, whole, out=values, device=device)
    return replace(moved, common=common, common_networks=common_networks)


def average_rows(tables: Float32, sent: Float32, terms: Terms, by_row: bool, device: str) -> tuple[Float32, Any]:
    """``sum_v p_v Q_v`` ``[n_items, d]``, ``by_row`` each over those who trained it; and who did ``[n, n_items]``."""
    import torch

    from fedrec.maths.row_mixtures import mix_rows, trained_rows

    clients = terms.clients
    p = torch.as_tensor(terms.proxy, dtype=torch.float32, device=device)[None]
    p = p / p.sum()
    everybody = np.ones((len(clients), tables.shape[1]), bool)
    plain = mix_rows(tables, p, clients, everybody, np.zeros(tables.shape[1:], np.float32), device)[0]
    if not by_row:
        return plain, everybody
    trained = trained_rows(tables, sent, clients)
    return mix_rows(tables, p, clients, trained, plain, device)[0], trained

"""Seconds of FedCA's stages in one round (Table 8): what a client does, and what the server does for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core.method import Keys, Reply
from fedrec.errors import BadInput
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.resolve import resolve


@dataclass(frozen=True)
class Stages:
    """Seconds of one round: training and SVD of a single client (the mean over all), the server's three steps."""

    clients: int
    training: float
    svd: float
    similarity: float
    complementarity: float
    optimisation: float


def stages(given: dict[str, Any], repeat: int = 5) -> Stages:
    """Times of the first round of FedCA with all clients, in the order of Algorithm 1; one more before compiles."""
    prepared = prepare(resolve("fedca", {**given, "rounds": 1}))
    chosen: Any = prepared.method.settings
    if chosen.variant_complementarity == "code" or not (chosen.alpha and chosen.beta):
        raise BadInput("stages are those of the paper's method; leave variant_complementarity, and alpha and beta > 0")
    clients = prepared.people.block.n_clients
    mean = np.mean([_round(prepared) for _ in range(1 + repeat)][1:], axis=0)
    return Stages(clients, float(mean[0] / clients), float(mean[1] / clients), *map(float, mean[2:]))


def _round(prepared: Prepared) -> list[float]:
    """Seconds of all clients' training, of their SVD, and of the server's steps."""
    from fedrec.maths.composite import on_device
    from fedrec.methods.fedca.data_part import data_part
    from fedrec.methods.fedca.messages import Terms
    from fedrec.methods.fedca.mixing import collected

    method: Any = prepared.method
    chosen, server, keys = method.settings, prepared.runtime.server, Keys(prepared.settings.seed, 1)
    private, download, block = prepared.runtime.at_home(np.arange(prepared.people.block.n_clients))
    trained, done = _timed(lambda: method.local_update(private, download, block, keys))
    upload = done.upload
    svd, _ = _timed(lambda: data_part(upload.tables, None, block, keys, chosen))
    found = collected(server, iter([Reply(block.clients, upload)]))
    assert found is not None
    tables, _, reported, _ = found
    placed = on_device(tables, method.device)
    similarity, s = _timed(lambda: method.similar(placed, tables, reported.clients, server))
    complementarity, c = _timed(lambda: method.complementary(reported))
    terms = Terms(reported.clients, method.proxy(tables, reported, server), s, c)
    optimisation, _ = _timed(lambda: method.weights(terms, chosen.alpha, chosen.beta))
    return [trained - svd, svd, similarity, complementarity, optimisation]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    made = work()
    return time.perf_counter() - began, made

"""Aggregation weights of FedCA (Figure 7): similarity, complementarity and what they make together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.loop import Progress, run_rounds
from fedrec.core.method import Keys
from fedrec.data.ragged import offsets
from fedrec.errors import BadInput
from fedrec.experiment.analyses.points import OnRound, watch
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve


@dataclass(frozen=True)
class Weights:
    """Similarity, complementarity and composite weights between some clients ``[k, k]`` (Figure 7)."""

    clients: list[str]
    similarity: NDArray[np.float64]
    complementarity: NDArray[np.float64]
    composite: NDArray[np.float64]


def weights(given: dict[str, Any], count: int = 10, on_round: OnRound | None = None) -> Weights:
    """S, C and W of FedCA between ``count`` random clients, computed among all clients after training."""
    from fedrec.maths import composite

    prepared = prepare(resolve("fedca", dict(given)))
    runtime, people = prepared.runtime, prepared.people
    method: Any = prepared.method
    run_rounds(runtime, prepared.plan, Progress(), watch(on_round, "fedca"))
    block, chosen = people.block, method.settings
    if chosen.variant_complementarity == "code" or not chosen.beta:
        raise BadInput("the weights are shown for the paper's complementarity; leave variant_complementarity, beta > 0")
    if count > block.n_clients:
        raise BadInput(f"{count} clients asked for, the data has {block.n_clients}; ask for fewer")
    keys = Keys(prepared.settings.seed, prepared.settings.rounds + 1)
    done = method.local_update(runtime.private, method.download(runtime.server, block.clients), block, keys)
    upload = done.upload
    similar = composite.similarity(composite.squared_distances(upload.tables))
    angles = composite.mean_angles(upload.subspaces, offsets(upload.sizes))
    complementary = composite.complementarity(angles, chosen.complementarity)
    mixed = composite.composite_weights(
        similar,
        complementary,
        upload.sizes,
        chosen.alpha,
        chosen.beta,
        normalise=chosen.normalise,
        roles=chosen.weights,
    )
    some = keyed.sample(keyed.stream(keys.seed, "shown clients"), block.n_clients, count)
    part = np.ix_(some, some)
    return Weights(
        [people.client_ids[int(client)] for client in some],
        *(np.asarray(matrix, np.float64)[part] for matrix in (similar, complementary, mixed)),
    )

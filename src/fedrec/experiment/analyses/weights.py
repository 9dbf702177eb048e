"""Aggregation weights of FedCA (Figure 7): similarity, complementarity and what they make together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.data.ragged import offsets
from fedrec.errors import BadInput
from fedrec.experiment.analyses.points import OnRound, one_more_round
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
    block, chosen = prepared.people.block, prepared.method.settings
    if chosen.variant_complementarity == "code" or not chosen.beta:
        raise BadInput("the weights are shown for the paper's complementarity; leave variant_complementarity, beta > 0")
    if count > block.n_clients:
        raise BadInput(f"{count} clients asked for, the data has {block.n_clients}; ask for fewer")
    keys, done = one_more_round(prepared, on_round)
    upload, shape = done.upload, (chosen.alpha, chosen.beta)
    similar = composite.similarity(composite.squared_distances(upload.tables))
    angles = composite.mean_angles(upload.subspaces, offsets(upload.sizes))
    complementary = composite.complementarity(angles, chosen.complementarity)
    mixed = composite.composite_weights(
        similar, complementary, upload.sizes, *shape, normalise=chosen.normalise, roles=chosen.weights
    )
    some = keyed.sample(keyed.stream(keys.seed, "shown clients"), block.n_clients, count)
    part = np.ix_(some, some)
    return Weights(
        [prepared.people.client_ids[int(client)] for client in some],
        *(np.asarray(matrix, np.float64)[part] for matrix in (similar, complementary, mixed)),
    )

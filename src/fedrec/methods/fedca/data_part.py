"""What a client tells of its data instead of the data: X_u (FedCA section 5.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.messages import Float32, Rows
from fedrec.core.method import Keys
from fedrec.data.ragged import Int64
from fedrec.maths.subspaces import left_singular, principal_components, unit_columns
from fedrec.methods.fedca.settings import FedCaSettings


def data_part(tables: Float32, rows: Rows | None, block: Block, keys: Keys, settings: FedCaSettings) -> dict[str, Any]:
    """X_u of each client, from its trained table; nothing where nobody needs it. ``rows``: what it trained on."""
    if settings.beta == 0 and settings.weights == "paper":
        return {"subspaces": None, "components": None}
    if settings.variant_complementarity == "code":  # items of the training batch, negatives included
        assert rows is not None
        owner = np.repeat(np.arange(block.n_clients), np.diff(rows.start))
        components = principal_components(tables[owner, rows.ids], rows.start, settings.k)  # [clients, k, d]
        every = np.arange(block.n_clients + 1) * settings.k
        noisy = noised(components.reshape(-1, components.shape[2]), every, block, keys, settings)
        return {"subspaces": None, "components": noisy.reshape(components.shape)}
    owner = block.client_of_user[block.train.owners]
    start = block.train.start[block.user_start]
    interacted = tables[owner, block.train.values]  # [interactions, d] Q_u^s
    raw = settings.complementarity == "raw"
    found = unit_columns(interacted, start) if raw else left_singular(interacted, start, settings.k)
    return {"subspaces": noised(found, start, block, keys, settings), "components": None}


def noised(vectors: Float32, start: Int64, block: Block, keys: Keys, settings: FedCaSettings) -> Float32:
    """Laplace noise of scale delta' on what leaves (Table 6)."""
    if not settings.noise_svd:
        return vectors
    drawn = laplace_rows(keys.clients(block, "noise svd"), start, vectors.shape[1])
    return vectors + (settings.noise_svd * drawn).astype(np.float32)


def laplace_rows(streams: keyed.U64, start: Int64, width: int) -> NDArray[np.float64]:
    """Laplace(0, 1) numbers ``[rows, width]``; a number depends on its client's stream and its place in it."""
    counts = np.diff(start)
    owner = np.repeat(np.arange(len(counts)), counts)
    within = (np.arange(len(owner)) - start[owner]).astype(np.uint64) * np.uint64(width)
    rows = streams[owner] + within * np.uint64(keyed.GOLDEN)  # word i of a stream is mix(key + (i + 1) GOLDEN)
    return keyed.laplace(rows, width)

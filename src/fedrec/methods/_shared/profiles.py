"""What methods that cluster clients share: the user profile in the upload, and what the server makes of it.

FedCA's Table 7 counts ``m f + |I_u| f`` numbers for PerFedRec and FedFast: beside the item table a client
sends its profile, the embeddings of the items it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.tables import ItemTable
from fedrec.core.block import Block
from fedrec.core.messages import Float32, Limit, Rows, per_client, per_interaction
from fedrec.maths.clustering import Float64, means_of_lists
from fedrec.methods._shared.embedding import ItemUpload


@dataclass(frozen=True)
class ProfileUpload(ItemUpload):
    """Changes of the table and network, the number of training interactions, and the profile."""

    sizes: NDArray[np.int32] = per_client(protect=False, low=0, high=Limit.OWNED)  # [clients]
    profiles: Float32 | None = per_interaction(counted_by="sizes")  # [interactions, d], client after client


def interacted(block: Block, table: Float32, rows: Rows) -> Float32:
    """Embeddings of every client's own items after training ``[interactions, d]``.

    ``table`` ``[n_items, d]``, or ``[clients, n_items, d]``, is what training started from; ``rows`` its changes.
    """
    owner = block.client_of_user[block.train.owners]
    return ItemTable(table, rows).rows_of(owner, block.train.values.astype(np.int64)).astype(np.float32)


def centres(upload: ProfileUpload) -> Float64:
    """The mean of each client's profile ``[clients, d]``: one step from items to users along their interactions."""
    assert upload.profiles is not None, "the upload carries no profile"
    return means_of_lists(upload.profiles, upload.sizes.astype(np.int64))

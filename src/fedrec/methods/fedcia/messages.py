"""What FedCIA's server keeps and what crosses the wire, for filters and for models with parameters alike."""

from __future__ import annotations

from dataclasses import dataclass

from fedrec.core import messages
from fedrec.core.messages import Float32, Rows, per_client, shared


@dataclass(frozen=True)
class CiaServer:
    """The mean of what clients sent, as far as clients need it."""

    n_items: int
    weight: float = 0.0
    """Clients in the mean."""
    whole: Float32 | None = None  # [m, m] filter, or [m (m + 1) / 2] similarity
    left: Float32 | None = None  # [m, r] factors of it
    right: Float32 | None = None  # [m, r] where it is not symmetric
    normal: Float32 | None = None  # [m, m] or [m, r + k] what clients receive with global_filter=normalised
    normal_right: Float32 | None = None  # [m, r + k]


@dataclass(frozen=True)
class CiaUpload(messages.Upload):
    """One form of a client's similarity or filter; the other fields are empty."""

    similarity: Float32 | None = per_client()  # [clients, m (m + 1) / 2] upper triangle of E E'
    filters: Rows | None = per_client()  # rows of the filter, [m] wide
    left: Float32 | None = per_client()  # [clients, m, L]
    right: Float32 | None = per_client()  # [clients, m, L]


@dataclass(frozen=True)
class CiaDownload(messages.Download):
    """The global similarity or filter; empty before the first aggregation."""

    whole: Float32 | None = shared()
    left: Float32 | None = shared()
    right: Float32 | None = shared()


NOTHING = CiaDownload(None, None, None)

"""Unfold whatever compressed forms an upload carries."""

from __future__ import annotations

from fedrec.privacy.compressed import Compressed
from fedrec.privacy.fields import Sent, contents, with_fields


def restored(upload: Sent) -> Sent:
    """The upload with every compressed field back in its plain form."""
    return with_fields(upload, {n: c.restore() for _, n, c in contents(upload) if isinstance(c, Compressed)})

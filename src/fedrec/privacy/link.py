"""What every link of the outgoing chain does: an upload passes on its way out, and back on the server."""

from __future__ import annotations

from abc import abstractmethod

from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.privacy.compressed import Compressed
from fedrec.privacy.fields import Sent, contents, with_fields


class Link:
    """One thing done to an upload on its way out, and undone on the server."""

    @abstractmethod
    def apply(self, upload: Sent, block: Block, keys: Keys) -> Sent:
        """The upload as it leaves this link; the given one is not changed."""

    def restore(self, upload: Sent) -> Sent:
        """The upload as it came into this link, as far as can be known."""
        return upload


class Compression(Link):
    """A link that sends fields in a compressed form."""

    def restore(self, upload: Sent) -> Sent:
        return with_fields(upload, {n: c.restore() for _, n, c in contents(upload) if isinstance(c, Compressed)})

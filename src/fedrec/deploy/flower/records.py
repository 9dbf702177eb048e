"""An envelope as Flower's records and back. Imports stay lean: a node's process pays them for every message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

if TYPE_CHECKING:
    from fedrec.deploy.messages.envelope import Plain


def to_records(plain: Plain) -> RecordDict:
    """The head as JSON in a configuration record, the blocks as arrays of bytes."""
    head, blocks = plain
    arrays = {
        name: Array(dtype="uint8", shape=(len(data),), stype="fedrec.bytes", data=data) for name, data in blocks.items()
    }
    return RecordDict({"head": ConfigRecord({"json": json.dumps(head)}), "blocks": ArrayRecord(arrays)})


def from_records(content: RecordDict) -> Plain:
    """Head and blocks; whatever is not a letter raises :class:`~fedrec.deploy.messages.plain_values.BadLetter`."""
    from fedrec.deploy.messages.plain_values import BadLetter, parse

    try:
        head, blocks = content.config_records["head"]["json"], content.array_records["blocks"]
    except (KeyError, TypeError, AttributeError):
        raise BadLetter("the message has no head or no blocks") from None
    return parse(head), {name: array.data for name, array in blocks.items()}

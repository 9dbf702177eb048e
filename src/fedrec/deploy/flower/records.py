"""An envelope as Flower's records and back. Imports stay lean: a node's process pays them for every message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

if TYPE_CHECKING:
    from fedrec.deploy.envelope import Plain


def to_records(plain: Plain) -> RecordDict:
    """The head as JSON in a configuration record, the blocks as arrays of bytes."""
    head, blocks = plain
    arrays = {
        name: Array(dtype="uint8", shape=(len(data),), stype="fedrec.bytes", data=data) for name, data in blocks.items()
    }
    return RecordDict({"head": ConfigRecord({"json": json.dumps(head)}), "blocks": ArrayRecord(arrays)})


def from_records(content: RecordDict) -> Plain:
    head = json.loads(str(content.config_records["head"]["json"]))
    return head, {name: array.data for name, array in content.array_records["blocks"].items()}

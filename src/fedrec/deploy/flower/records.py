"""An envelope as Flower's records and back.

Flower sends every record and every array as an object of its own, each with calls of its own: a small letter is one
record, head and blocks one after the other. A large one has its blocks as arrays, which Flower cuts into pieces; what
many letters have in common, a download, is then handed over and kept once.
"""

from __future__ import annotations

import json
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedrec.deploy.messages.envelope import Plain
from fedrec.deploy.messages.plain_values import BadLetter, parse, whole_number

SMALL = 256 << 10
"""Bytes of all blocks up to which a letter is one record."""


def to_records(plain: Plain, small: int = SMALL) -> RecordDict:
    """The head as JSON and the blocks as bytes."""
    head, blocks = plain
    said = json.dumps(head)
    if sum(map(len, blocks.values())) <= small:
        lengths = json.dumps({"lengths": {name: len(data) for name, data in blocks.items()}})
        return RecordDict(
            {"letter": ConfigRecord({"json": said, "parts": lengths, "bytes": b"".join(blocks.values())})}
        )
    arrays = {
        name: Array(dtype="uint8", shape=(len(data),), stype="fedrec.bytes", data=data) for name, data in blocks.items()
    }
    return RecordDict({"head": ConfigRecord({"json": said}), "blocks": ArrayRecord(arrays)})


def from_records(content: RecordDict) -> Plain:
    """Head and blocks; whatever is not a letter raises :class:`~fedrec.deploy.messages.plain_values.BadLetter`."""
    try:
        whole = content.config_records.get("letter")
        if whole is not None:
            return parse(whole["json"]), _cut(parse(whole["parts"]), whole["bytes"])
        head, blocks = content.config_records["head"]["json"], content.array_records["blocks"]
    except (KeyError, TypeError, AttributeError):
        raise BadLetter("the message has no head or no blocks") from None
    return parse(head), {name: array.data for name, array in blocks.items()}


def _cut(parts: dict[str, Any], whole: Any) -> dict[str, bytes]:
    """The blocks of a letter that is one record; their lengths are the sender's word."""
    lengths = parts.get("lengths")
    if not isinstance(lengths, dict) or not isinstance(whole, bytes):
        raise BadLetter("the blocks of a letter are not bytes with their lengths")
    blocks, at = {}, 0
    for name, length in lengths.items():
        end = at + whole_number("the length of a block", length, len(whole))
        blocks[name] = whole[at:end]
        at = end
    if at != len(whole):
        raise BadLetter(f"the blocks of a letter have {len(whole)} bytes, and their lengths are {at} together")
    return blocks

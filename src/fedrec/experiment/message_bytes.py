"""A published table of communication, from the messages that the methods really build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.method import Keys
from fedrec.core.settings import build
from fedrec.data.ragged import Ragged, offsets
from fedrec.evaluation.statistics import Summary
from fedrec.experiment.reproduce import absent
from fedrec.methods.registry import find as find_method
from fedrec.recipes.published import PublishedTable, TableRow
from fedrec.report.model.reproduction import Entry, Line, Panel, Reproduction


def bytes_table(table: PublishedTable) -> Reproduction:
    """A table of communication, from the messages that the methods really build, without a model being trained."""
    panels = []
    for column in table.columns:
        size = table.sizes[column.key]
        lines = []
        for row in table.rows:
            why, counted = absent(row), {}
            if not why:
                counted = message_bytes(row, table.settings, size["items"], size["interactions"])
            ours = {metric: Summary(count / 1024, float("nan"), 1) for metric, count in counted.items()}
            pairs = zip(row.published[column.key], table.metrics, strict=True)
            entries = tuple(Entry(value, ours.get(metric)) for value, metric in pairs)
            lines.append(Line(row.name, row.method, entries, absent=why))
        panels.append(Panel(column, tuple(lines)))
    return Reproduction(table, tuple(panels), (0,), 0)


def message_bytes(row: TableRow, settings: Mapping[str, Any], items: int, interactions: int) -> dict[str, int]:
    """Bytes of the floating numbers in one client's download and upload, by the wire encoding.

    The client has so many interactions in a catalogue of so many items; both messages are those of its first round.
    Whole numbers beside the tables (a count, a lottery ticket: a few bytes) are left out, as the paper leaves them.
    """
    kind = find_method(row.method)
    own = {key: value for key, value in {**settings, **row.settings}.items() if key in kind.Settings.model_fields}
    fields = kind.Settings.model_fields
    method: Any = kind(build(kind.Settings, {**own, **({"epochs": 1} if "epochs" in fields else {})}, row.method))
    one = np.arange(1, dtype=np.uint64)
    train = Ragged(offsets(np.array([interactions])), np.arange(interactions, dtype=np.int32))
    block = Block(items, np.arange(1), one, np.array([0, 1]), one, train, train)
    world = World("one client", items, 1, 1)
    keys, form = Keys(0, 0), wire.Form.of(method.settings)
    download = method.download(method.start_server(world, keys), block.clients)
    update = method.local_update(method.start_clients(world, block, keys), download, block, Keys(0, 1))

    def floating(message: Any) -> int:
        arrays = (array for _, array in wire.message_arrays(message, form))
        return sum(array.nbytes for array in arrays if array.dtype.kind == "f")

    return {"download": floating(download), "upload": floating(update.upload)}

"""Foursquare check-ins (TSMC 2014): user, venue, category, its name, latitude, longitude, zone, UTC time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from fedrec.data import limits
from fedrec.data.readers import meanings
from fedrec.data.readers.faults import Faults
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.table import Table
from fedrec.errors import BadInput

NAMES = ["user", "item", "category", "category_name", "latitude", "longitude", "zone", "time"]
TIME_FORMAT = "%a %b %d %H:%M:%S +0000 %Y"


def read(path: Path) -> Rows:
    """``dataset_TSMC2014_NYC.txt`` or ``_TKY.txt``; the name of its category stands for a venue's title."""
    table = Table.open(path, "\t", quoted=False, encoding="latin-1")
    place = partial(table.place, header_lines=0)
    data = table.parse(NAMES, 0, NAMES).data
    when = pc.strptime(data["time"], format=TIME_FORMAT, unit="s", error_is_null=True)
    if when.null_count:
        row = int(np.argmax(pc.is_null(when).to_numpy()))
        found = limits.brief(data["time"][row].as_py())
        raise BadInput(f"{place(row)}: time {found} is not like 'Tue Apr 03 18:00:09 +0000 2012'")
    meanings.require_ids(data["user"], data["item"], Faults(data.num_rows, place))
    return Rows(
        users=data["user"],
        items=data["item"],
        times=np.asarray(pc.cast(when, "int64").to_numpy(), dtype=np.int64),
        titles=meanings.titles_of(data["item"], data["category_name"]),
        place=place,
    )

"""Item tables as clients hold them: a shared or personal base with changed rows on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrec.backbones.base import Backbone, dot_scores
from fedrec.backbones.mf import MatrixFactorisation
from fedrec.core.messages import Array, Float32, Rows
from fedrec.data.ragged import Int64, offsets, segments
from fedrec.extras import installed
from fedrec.threads import over_rows

_NUMBERS = 1 << 24
"""Numbers that one piece of the work may take: users are scored in pieces."""


@dataclass(frozen=True)
class ItemTable:
    """The table that each client holds, without one copy of it per client."""

    base: Float32  # [m, d] shared, or [clients, m, d]
    rows: Rows | None = None  # changes on top, client by client

    @property
    def n_items(self) -> int:
        return int(self.base.shape[-2])

    def of(self, client: int) -> Float32:
        """One client's whole table ``[m, d]``."""
        table = self.base if self.base.ndim == 2 else self.base[client]
        if self.rows is None:
            return table
        table = table.copy()
        own = slice(self.rows.start[client], self.rows.start[client + 1])
        table[self.rows.ids[own]] += self.rows.values[own]
        return table

    def rows_of(self, clients: Int64, items: Int64) -> Float32:
        """Row ``items[i]`` of the table of client ``clients[i]``, for every ``i``: ``[rows, d]``."""
        found = self.base[items] if self.base.ndim == 2 else self.base[clients, items]
        if self.rows is None or not len(self.rows.ids):
            return found
        owner = np.repeat(np.arange(len(self.rows.start) - 1), np.diff(self.rows.start))
        changed = owner * np.int64(self.n_items) + self.rows.ids  # ascends: rows are in the order of items
        wanted = clients * np.int64(self.n_items) + items
        at = np.minimum(np.searchsorted(changed, wanted), len(changed) - 1)
        moved = changed[at] == wanted
        found[moved] += self.rows.values[at[moved]]
        return found

    def scores(
        self,
        users: Float32,
        client_of_user: Int64 | None = None,
        items: NDArray[np.integer] | None = None,
        backbone: Backbone | None = None,
        networks: Mapping[str, Array] | None = None,
    ) -> Float32:
        """Scores of all items ``[users, m]``, or of ``items`` ``[users, k]``, under the dot product or another
        backbone. User ``i`` is held by client ``client_of_user[i]`` (default ``i``)."""
        owners = np.arange(len(users)) if client_of_user is None else np.asarray(client_of_user)
        width = self.n_items if items is None else items.shape[1]
        result = np.empty((len(users), width), np.float32)
        piece = max(1, _NUMBERS // max(1, self.n_items))
        for first in range(0, len(users), piece):
            part = slice(first, first + piece)
            if backbone is None or isinstance(backbone, MatrixFactorisation):
                found = self._dot(users[part], owners[part], result[part] if items is None else None)
                if networks and "bias" in networks:
                    found += networks["bias"][part, None]
            else:
                found = self._any(users[part], owners[part], backbone, networks or {})
            if items is not None:
                result[part] = np.take_along_axis(found, items[part], 1)
            elif found.base is not result:  # not made in its place
                result[part] = found
        return result

    def _dot(self, users: Float32, owners: Int64, out: Float32 | None) -> Float32:
        found = dot_scores(users, self.base, owners, out)
        if self.rows is None:
            return found
        if installed("numba"):
            from fedrec.backbones.changed_rows_kernel import add_changed

            changes = (self.rows.start, self.rows.ids, self.rows.values)
            over_rows(add_changed, len(users), (np.asarray(owners, np.int64), *changes, users, found))
            return found
        counts = np.diff(self.rows.start)[owners]
        into = offsets(counts)
        room = max(1, _NUMBERS // max(1, users.shape[1]))
        first = 0
        while first < len(users):
            # as many users as there is room for their changed rows, at least one
            last = max(first + 1, int(np.searchsorted(into, into[first] + room, "right")) - 1)
            index = segments(self.rows.start, owners[first:last])
            user = np.repeat(np.arange(first, last), counts[first:last])
            found[user, self.rows.ids[index]] += np.einsum("rd,rd->r", self.rows.values[index], users[user])
            first = last
        return found

    def _any(self, users: Float32, owners: Int64, backbone: Backbone, networks: Mapping[str, Array]) -> Float32:
        if self.rows is None:
            return backbone.scores(users, self.base, networks, owners)
        one = backbone.start(np.zeros(1, np.uint64), users.shape[1])
        found = np.empty((len(users), self.n_items), np.float32)
        for client in np.unique(owners):
            own = owners == client
            mine = {n: a if a.ndim < one[n].ndim else a[client] for n, a in networks.items()}
            found[own] = backbone.scores(users[own], self.of(int(client)), mine, np.zeros(int(own.sum()), np.int64))
        return found

"""Interaction membership with shadow models (IMIA)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec import keyed
from fedrec.attacks.contract import AttackCard, Exchanged, Float64, Found, Reader, Seen, Vector
from fedrec.attacks.per_item import along_first_direction, size_field, tables, touched
from fedrec.core.block import Block
from fedrec.core.messages import concatenate, gather
from fedrec.core.method import Keys
from fedrec.data.ragged import Ragged, offsets

SHADOWS = 3
"""Pretended clients for each real one."""
SEED = 0x51AD
USUAL_SIZE = 50
"""Items of a pretended client where the upload says nothing about sizes."""


class Shadows(Reader):
    """The server trains pretended clients with histories it knows on the real client's download, learns how the rows
    of their items differ from the others, and looks for the same in the real upload. Yuan et al. compare the updates
    themselves; here a logistic regression does, on what each item's numbers look like (so that any upload will do).
    """

    name = "imia"
    card = AttackCard(
        title="whether an item is in a history, by a classifier trained on pretended clients",
        paper="Yuan et al., Interaction-level membership inference attack against federated recommender systems, "
        "WWW 2023",
        who="server",
        sees="one upload of one client, what it was sent, the method and its settings",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        if not seen or not tables(seen[0]):
            return [None for _ in seen]
        from sklearn.linear_model import LogisticRegression

        inputs, labels = [], []
        for number in range(SHADOWS):
            for one, histories in zip(*_pretended(seen, number), strict=True):
                features, known = _features(one), np.isin(np.arange(one.world.n_items), histories)
                some = np.flatnonzero(known | (np.arange(len(known)) % 5 == number))  # not all of the many others
                inputs.append(features[some])
                labels.append(known[some])
        model = LogisticRegression(max_iter=500, class_weight="balanced")
        model.fit(np.concatenate(inputs), np.concatenate(labels))
        return [Found(model.decision_function(_features(one))) for one in seen]


def _features(seen: Seen) -> Float64:
    """``[n_items, features]`` what each item's numbers look like, whatever the user's vector is."""
    columns: list[Float64] = []
    for table in tables(seen).values():
        rows = touched(table)
        norm = np.linalg.norm(table, axis=1)
        usual = max(float(np.median(norm[rows])) if rows.any() else 0.0, 1e-12)
        columns += [rows.astype(float), np.minimum(norm / usual, 100.0)]
        if table.shape[1] < len(table):
            along = along_first_direction(table)
            columns.append(np.clip(along / max(float(np.abs(along[rows]).mean()) if rows.any() else 0.0, 1e-12), -9, 9))
        else:
            columns.append(np.diag(table) / max(float(np.abs(np.diag(table)).mean()), 1e-12))
    return np.stack(columns, axis=1)


def _pretended(seen: Sequence[Seen], number: int) -> tuple[list[Seen], list[NDArray[np.int32]]]:
    """Pretended clients in the place of the real ones, trained on their downloads, and what they were given."""
    m, method = seen[0].world.n_items, seen[0].method
    sizes = [min(m // 2, max(1, round(size_field(one.rounds[-1]) or USUAL_SIZE))) for one in seen]
    base = keyed.stream(SEED, number)
    histories = [keyed.sample(keyed.stream(base, place), m, size).astype(np.int32) for place, size in enumerate(sizes)]
    train = Ragged(offsets(np.array(sizes)), np.concatenate(histories))
    streams = keyed.streams(base, np.arange(len(seen), dtype=np.uint64))
    clients = np.array([one.client for one in seen])
    block = Block(m, clients, streams, np.arange(len(seen) + 1), streams, train, train)
    keys = Keys(int(base), seen[0].rounds[-1].number)
    private = method.start_clients(seen[0].world, block, Keys(int(base), 0))
    download = concatenate([one.rounds[-1].download for one in seen])
    upload = method.local_update(private, download, block, keys).upload
    made = []
    for place, one in enumerate(seen):
        own: Any = gather(upload, block, np.array([place]))
        last = one.rounds[-1]
        if isinstance(last.upload, Vector):  # the server knows what a client would put into the sum
            own = Vector({name: each.of(0)[None] for name, each in method.summands(own, last.download).items()})
        made.append(Seen(method, one.world, one.client, 1, (Exchanged(last.number, last.download, own),)))
    return made, histories

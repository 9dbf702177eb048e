"""The metrics that ride along with an upload: which item a node with one user holds out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fedrec.attacks.contract import Alone, AttackCard, Float64, Found, Reader, Seen
from fedrec.attacks.one_upload import NamedItems, PrincipalSign, TouchedRows
from fedrec.core.messages import personal_fields
from fedrec.core.newcomers import folded
from fedrec.core.population import new_block
from fedrec.data.ragged import Int32, Ragged, offsets
from fedrec.errors import BadInput


class MetricSums(Reader):
    """NDCG@20 over one held-out item is 1 / log2(rank + 2): the sums of one user say where that item stands.

    The server knows what it sent and reads the history out of the upload, so it can rank the catalogue as the node
    did. The item at the reported rank is the one; where the rank is below the cut, all above it are not.
    """

    name = "metrics"
    rounds = 3
    seeks = "held-out"
    card = AttackCard(
        title="a user's held-out item, from the metrics that are reported for the record",
        paper="this project's audit",
        who="server",
        sees="the metric sums of a node with one user, what it was sent, and its upload",
    )

    def read(self, seen: Sequence[Seen]) -> list[Found | None]:
        found: list[Found | None] = [None for _ in seen]
        histories = [history_of(one) if one.users == 1 else None for one in seen]
        able = [number for number, history in enumerate(histories) if history is not None]
        costs = {number: np.zeros(seen[number].world.n_items) for number in able}
        for place in range(min((len(one.rounds) for one in seen), default=0)):
            told = [number for number in able if seen[number].rounds[place].metrics is not None]
            try:
                ranked = list(_ranks([seen[n] for n in told], place, [histories[n] for n in told]))
            except BadInput:  # the method cannot rank for a history alone
                return found
            for number, ranks in zip(told, ranked, strict=True):
                rank, cut = reported_rank(seen[number].rounds[place].metrics or {})
                costs[number] += np.maximum(0.0, cut - ranks) if rank is None else np.abs(ranks - rank)
                scores = -costs[number] - ranks / (2.0 * len(ranks))  # of equals, what the model ranks first
                scores[histories[number]] = scores.min() - 1.0
                found[number] = Found(scores, blind=-ranks)
        return found


def reported_rank(metrics: Mapping[str, float]) -> tuple[float | None, int]:
    """Where one held-out item stands, from 0; None where it is below the cut. And that cut, 0 where nothing is said.

    >>> reported_rank({"NDCG@10": 0.0, "NDCG@20": 0.25, "NDCG@20/99": 1.0})
    (14.0, 20)
    >>> reported_rank({"NDCG@10": 0.0})
    (None, 10)
    >>> reported_rank({"NDCG@10": 0.01})  # less than the last place gives: an expectation over equal scores
    (None, 0)
    """
    full = {int(name[5:]): value for name, value in metrics.items() if name.startswith("NDCG@") and name[5:].isdigit()}
    cut = max(full, default=0)
    value = full.get(cut, 0.0)
    if value <= 0:
        return None, cut
    rank = 2.0 ** min(1.0 / value, 60.0) - 2.0
    return (rank, cut) if rank <= cut - 0.5 else (None, 0)


def history_of(seen: Seen) -> Int32 | None:
    """The items that an upload gives away: by name, by sign where others were drawn beside them, or by its rows."""
    drawn = float(getattr(seen.method.settings, "negatives", 0)) > 0
    for end in range(len(seen.rounds), 0, -1):  # the last one that says something: some methods send only once
        part = replace(seen, rounds=seen.rounds[:end])
        readers: tuple[Alone, ...] = (NamedItems(), PrincipalSign() if drawn else TouchedRows(), TouchedRows())
        for reader in readers:
            found = reader.one(part)
            if found is not None and found.chosen is not None and found.chosen.any():
                return np.flatnonzero(found.chosen).astype(np.int32)
    return None


def _ranks(seen: Sequence[Seen], place: int, histories: Sequence[Int32 | None]) -> Iterator[Float64]:
    """For each client ``[n_items]``, where items stand with what it was sent; its history comes last."""
    everyone = list(range(len(seen)))
    alike = bool(seen) and not personal_fields(seen[0].rounds[place].download)
    for some in [everyone] if alike else [[number] for number in everyone]:  # who was sent the same, together
        own = [history for history in (histories[number] for number in some) if history is not None]
        lists = Ragged(offsets(np.array([len(history) for history in own])), np.concatenate(own))
        first = seen[some[0]]
        block = new_block(lists, first.world.n_items)
        scores = folded(first.method, first.rounds[place].download, first.world, block, 0).astype(np.float64)
        for row, history in zip(scores, own, strict=True):
            row[history] = -np.inf
            ranks = np.empty(len(row))
            ranks[np.argsort(-row, kind="stable")] = np.arange(len(row))
            yield ranks

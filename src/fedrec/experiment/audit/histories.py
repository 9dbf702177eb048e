"""What whole histories are worth that were read out of messages: how many are somebody's, and how many nobody's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb

import numpy as np

from fedrec.attacks.contract import Float64, Found, Seen
from fedrec.core.block import Block
from fedrec.data.ragged import segments
from fedrec.experiment.audit.figures import Figures

Items = tuple[int, ...]


def histories_figures(
    found: Sequence[Found | None], seen: Sequence[Seen], block: Block, popularity: Float64
) -> Figures:
    """Over the users in the messages: those whose whole history is named, exactly (``histories``; ``standing`` in a
    message as it is), and what is named and nobody's (``false``). Precision counts what is named, recall users.

    ``chance`` and ``popular_recall``: any items, or the most popular ones, by who knows how many a user has.
    """
    pairs = [(None if guess is None else guess.histories, one) for guess, one in zip(found, seen, strict=True)]
    able = [(histories, one) for histories, one in pairs if histories is not None]
    if not able:
        return {}
    own = _histories(block, [one for _, one in able])
    users = sum(own.values())
    if not users:
        return {}
    every = [history for histories in {id(h): h for h, _ in able}.values() for history in histories]
    named = {_items(history.items) for history in every}
    stand = {_items(history.items) for history in every if history.after == 0}
    right = sum(own[items] for items in named)
    hits = sum(items in own for items in named)
    order = np.argsort(-popularity, kind="stable")
    usual = sum(count for items, count in own.items() if items == _items(order[: len(items)]))
    chance = sum(count / comb(block.n_items, len(items)) for items, count in own.items())
    return {
        "precision": hits / max(1, len(named)), "recall": right / users, "chance": chance / users,
        "popular_recall": usual / users, "users": float(users), "histories": float(right),
        "standing": float(sum(own[items] for items in stand)), "false": float(len(named) - hits),
    }  # fmt: skip


def _histories(block: Block, seen: Sequence[Seen]) -> Counter[Items]:
    """How many users in the messages have each history; users without items have none."""
    inside = [np.array([one.client]) if r.among is None else r.among for one in seen for r in one.rounds]
    users = segments(block.user_start, np.unique(np.concatenate(inside)))
    return Counter(items for user in users if (items := _items(block.train[int(user)])))


def _items(items: object) -> Items:
    return tuple(np.unique(np.asarray(items)).tolist())

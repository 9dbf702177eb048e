"""Items for users in training and for new ones, out of a finished run: the data's own ids, nothing a user has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block
from fedrec.core.population import Population, new_block
from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.core.state import BadState
from fedrec.data.ragged import Int32, Int64, Ragged, offsets
from fedrec.errors import BadInput, nearest
from fedrec.methods.registry import find as find_method
from fedrec.runs.folder import RunFolder
from fedrec.runs.history_key import read_key
from fedrec.runs.known import Known
from fedrec.runs.known import opened as histories_opened
from fedrec.runs.recommendations import Recommendation, best_columns, check_k, listed
from fedrec.runs.settings import RunSettings
from fedrec.simulate.clients import Clients
from fedrec.simulate.collected import Collected

CELLS = 1 << 25
"""Scores that are made at once."""
Ids = Iterable[str | int]
Scored = Callable[[Any], tuple[NDArray[np.float32], Ragged]]


@dataclass(frozen=True)
class Top:
    """The best items of some users."""

    users: Int64
    """``[users]`` positions among the recommender's users; numbers of the histories for new ones."""
    items: Int32
    """``[users, k]`` falling; -1 where a list is shorter."""
    scores: NDArray[np.float32]
    """``[users, k]``, NaN where a list is shorter."""


class Scoring(Protocol):
    """What makes the scores: all clients of a run, a centralised model, or what one node holds."""

    def scores(self, clients: Int64) -> NDArray[np.float32]:
        """``[users, n_items]`` of the users of some clients."""

    def scores_of_new(self, block: Block) -> NDArray[np.float32]:
        """``[users, n_items]`` of users that were not in training, by what they have."""


def keeper(method: Any, people: Population, settings: RunSettings) -> Clients | Collected:
    """What keeps a method's state of these people, outside of a run."""
    if isinstance(method, Reference):
        return Collected(method, people, settings.seed)
    return Clients(method, people, settings.seed, memory_mb=settings.memory_mb)


class Recommender:
    """A model that recommends. It may be kept open and asked by several threads."""

    hints = True
    """Whether an item that is not known is compared with all that are: a second, in a large catalogue."""

    def __init__(self, known: Known, model: Scoring) -> None:
        self.known, self.model = known, model
        self.user_ids, self.item_ids, self.titles = known.user_ids, known.item_ids, known.titles

    @classmethod
    def opened(cls, folder: RunFolder, known: Known) -> Recommender:
        """From a run's folder alone, without its data."""
        settings = folder.settings()
        kind = find_method(settings.method, settings.settings)
        method: Any = kind(build(kind.Settings, settings.settings, settings.method))  # scores are made on the CPU
        model = keeper(method, known.people, settings)
        model.restore(folder.model(model.expected()))
        return cls(known, model)

    # -- one user

    def recommend(
        self, user: str | int, k: int = 10, exclude: Ids = (), only: Ids | None = None
    ) -> list[Recommendation]:
        """The ``k`` best items for a user of the training, none of which the user has."""
        (top,) = self.stream([user], k, exclude, only)
        return listed(top.items[0], top.scores[0], self.item_ids, self.titles)

    def recommend_history(
        self, items: Ids, k: int = 10, exclude: Ids = (), only: Ids | None = None
    ) -> list[Recommendation]:
        """The ``k`` best items for somebody who was not in training and has these items, in order of time."""
        (top,) = self.stream_new([items], k, exclude, only)
        return listed(top.items[0], top.scores[0], self.item_ids, self.titles)

    # -- many users

    def stream(
        self, users: Sequence[str | int] | None = None, k: int = 10, exclude: Ids = (), only: Ids | None = None
    ) -> Iterator[Top]:
        """The best items of these users (all, where None), some users at a time, in the order given."""
        columns = self.allowed(exclude, only)
        wanted = np.arange(len(self.user_ids)) if users is None else self.positions(users)
        check_k(k)
        return self._streamed(wanted, wanted, self.scored, k, columns)

    def stream_new(
        self, histories: Sequence[Ids], k: int = 10, exclude: Ids = (), only: Ids | None = None
    ) -> Iterator[Top]:
        """The best items of people who were not in training, by what each of them has, some at a time."""
        columns = self.allowed(exclude, only)
        lists = [self.item_positions(items, "history") for items in histories]
        if not all(map(len, lists)):
            raise BadInput("a history without items says nothing about a person; give at least one item")
        check_k(k)
        return self._streamed(np.arange(len(lists)), lists, self.scored_new, k, columns)

    def positions(self, users: Iterable[str | int]) -> Int64:
        """Where users of these ids stand; an unknown one is bad input, which names nobody else."""
        names = [str(user) for user in users]
        found = [self._places.get(name, -1) for name in names]
        if -1 in found:
            lost = names[found.index(-1)]
            raise BadInput(
                f"{lost[:60]!r} is not among the {len(self.user_ids)} users of this model; ids are "
                "those of its data, and somebody new is served by what they have (--history)"
            )
        return np.array(found, np.int64)

    def item_positions(self, items: Ids, what: str = "items") -> Int32:
        """Where items of these ids stand, once each, in the order given; those that the model does not know are left
        out. If it knows none of them, that is bad input."""
        names = [str(item) for item in ([items] if isinstance(items, str | int) else items)]
        found = list(dict.fromkeys(place for name in names if (place := self._item_places.get(name)) is not None))
        if names and not found:
            few = self.hints and len(self.item_ids) < 100_000
            hint = nearest(names[0], self.item_ids.tolist()) if few else ""
            hint = hint if hint.startswith("did") else f"it has {len(self.item_ids)} items, by the ids of its data"
            raise BadInput(f"{what}: this model knows no item {names[0][:60]!r}; {hint}")
        return np.array(found, np.int32)

    def allowed(self, exclude: Ids, only: Ids | None) -> Int64 | None:
        """Items that may be recommended, ascending; None for all."""
        without = self.item_positions(exclude, "exclude")
        if only is None and not len(without):
            return None
        allowed = np.arange(len(self.item_ids)) if only is None else self.item_positions(only, "only")
        left = np.setdiff1d(allowed, without).astype(np.int64)
        if not len(left):
            raise BadInput("nothing is left to recommend: every item is excluded")
        return left

    def scored(self, users: Int64) -> tuple[NDArray[np.float32], Ragged]:
        """Scores ``[users, n_items]`` of users at these positions, at most ``at_once``, and what each of them has."""
        block = self.known.people.block
        clients = np.unique(block.client_of_user[users])
        rows = np.concatenate([np.arange(block.user_start[c], block.user_start[c + 1]) for c in clients])
        self._open_histories(rows)
        scores = self.model.scores(clients)
        if len(rows) != len(users) or (rows != users).any():
            scores = scores[np.searchsorted(rows, users)]  # rows ascend: clients hold neighbours
        return scores, self.known.owned.take(users)

    def scored_new(self, lists: Sequence[Int32]) -> tuple[NDArray[np.float32], Ragged]:
        """The same for people who were not in training, by positions of the items that each of them has."""
        counts = np.array([len(items) for items in lists])
        histories = Ragged(offsets(counts), np.concatenate(lists))
        if isinstance(self.model, Collected):
            self._open_histories(np.arange(len(self.user_ids)))
        return self.model.scores_of_new(new_block(histories, len(self.item_ids))), histories

    @property
    def at_once(self) -> int:
        """Users that are scored together, at most."""
        return max(1, CELLS // max(1, len(self.item_ids)))

    # -- within

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.user_ids.tolist())}

    @cached_property
    def _item_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.item_ids.tolist())}

    @cached_property
    def _key(self) -> bytes:
        return read_key()

    def _streamed(self, users: Int64, whole: Any, scored: Scored, k: int, columns: Int64 | None) -> Iterator[Top]:
        """Lists of ``users``, by the scores of ``whole``: places of users in training, histories of new ones."""
        for first in range(0, len(users), self.at_once):
            some = slice(first, first + self.at_once)
            yield Top(users[some], *best_columns(*scored(whole[some]), k, columns))

    def _open_histories(self, users: Int64) -> None:
        if self.known.hashed is None:
            return
        try:
            histories_opened(self.known, users, self._key)
        except BadState as problem:
            raise BadInput(f"{problem}; the histories of this run cannot be read with it") from None

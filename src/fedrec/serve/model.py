"""A recommender that answers many asks at once, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.data.ragged import Int32, Int64, Ragged
from fedrec.errors import BadInput
from fedrec.experiment.recommend import Recommender
from fedrec.runs.recommendations import best_columns
from fedrec.serve.asking import Ask, Filters, UnknownUser

Answer = bytes | BadInput


class Model:
    """One model in service. Only one thread asks it at a time."""

    def __init__(self, recommender: Recommender, about: dict[str, Any]) -> None:
        self.recommender, self.about = recommender, about
        recommender.hints = False  # whoever can ask could keep all others waiting with unknown items
        self._fragments: dict[int, str] = {}

    def warm(self) -> Model:
        """Answer once, so that nobody waits for what the first answer needs; a model that cannot is bad input."""
        self.recommender.positions([])
        self.recommender.item_positions([])
        self.recommender.recommend(str(self.recommender.user_ids[0]), 1)
        return self

    def answer(self, asks: Sequence[Ask]) -> list[Answer]:
        """An answer for each, in order: a list as JSON, or what is wrong with the ask."""
        answers: list[Answer | None] = [None] * len(asks)
        columns: dict[Filters, Int64 | None] = {}
        users: list[tuple[int, int]] = []
        new: list[tuple[int, Int32]] = []
        for number, ask in enumerate(asks):
            try:
                if ask.filters not in columns:
                    columns[ask.filters] = self.recommender.allowed(ask.filters.exclude, ask.filters.only)
                if ask.user is not None:
                    users.append((number, self._position(ask.user)))
                else:
                    new.append((number, self._history(ask)))
            except BadInput as problem:
                answers[number] = problem
        most, known = self.recommender.at_once, self.recommender
        for first in range(0, len(users), most):
            numbers, places = zip(*users[first : first + most], strict=True)
            self._fill(answers, asks, numbers, columns, partial(known.scored, np.array(places)))
        for first in range(0, len(new), most):
            numbers, lists = zip(*new[first : first + most], strict=True)
            self._fill(answers, asks, numbers, columns, partial(known.scored_new, lists))
        return [answer if answer is not None else BadInput("this was not answered") for answer in answers]

    def _position(self, user: str) -> int:
        try:
            return int(self.recommender.positions([user])[0])
        except BadInput:
            raise UnknownUser(
                f"no user {user[:60]!r} among the {len(self.recommender.user_ids)} users of this model; "
                "somebody new is served by what they have (POST /recommend with a history)"
            ) from None

    def _history(self, ask: Ask) -> Int32:
        items = self.recommender.item_positions(ask.history, "history")
        if not len(items):
            raise BadInput("a history without items says nothing about a person; give at least one item")
        return items

    def _fill(
        self,
        answers: list[Answer | None],
        asks: Sequence[Ask],
        numbers: Sequence[int],
        columns: dict[Filters, Int64 | None],
        scored: Callable[[], tuple[NDArray[np.float32], Ragged]],
    ) -> None:
        """Score together, then list together those that have the same filters."""
        try:
            scores, owned = scored()
        except BadInput as problem:
            for number in numbers:
                answers[number] = problem
            return
        groups: dict[Filters, list[int]] = {}
        for row, number in enumerate(numbers):
            groups.setdefault(asks[number].filters, []).append(row)
        for filters, rows in groups.items():
            among = [asks[numbers[row]] for row in rows]
            here = (scores, owned) if len(rows) == len(scores) else (scores[rows], owned.take(np.array(rows)))
            items, values = best_columns(*here, max(ask.k for ask in among), columns[filters])
            for row, ask, chosen, worth in zip(rows, among, items.tolist(), values.tolist(), strict=True):
                answers[numbers[row]] = self._json(chosen[: ask.k], worth)

    def _json(self, items: list[int], scores: list[float]) -> bytes:
        made = self._fragments
        parts = [
            f'{{"rank":{place},{made.get(item) or self._fragment(item)}{score:.9g}}}'
            for place, (item, score) in enumerate(zip(items, scores, strict=False), 1)
            if item >= 0
        ]
        return f'{{"items":[{",".join(parts)}]}}'.encode()

    def _fragment(self, item: int) -> str:
        titles = self.recommender.titles
        said = {"item": str(self.recommender.item_ids[item]), "title": None if titles is None else str(titles[item])}
        text = json.dumps(said, separators=(",", ":"))[1:-1] + ',"score":'
        self._fragments[item] = text
        return text

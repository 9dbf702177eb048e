"""Folding uploads into the server's state when some of them may be poison: try, and find out whose they were.

Inspection lets no upload through that a method's :meth:`~fedrec.core.method.Method.aggregate` cannot take. Should one
get through all the same, raise there, or leave a state with numbers that are not finite or that no client could work
with, the nodes are tried in halves until those are found without whom the fold succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrec.core.method import Keys, Method, Reply
from fedrec.core.misfit import finite

Uploads = Mapping[str, Any]
"""What nodes sent, by name."""


@dataclass(frozen=True)
class Fold:
    """The fold of one round, which can be tried with any of the nodes; the state before is never changed."""

    method: Method[Any, Any, Any, Any]
    before: Any
    keys: Keys
    replies: Callable[[Uploads], Iterator[Reply[Any]]]
    guard: Callable[[Any, Iterator[Reply[Any]], Keys], Any] | None = None
    """What folds instead of the method alone: the run's defence around it."""
    tried: Callable[[Any], bool] | None = None
    """Whether clients could work with a state; None: any finite one will do."""

    def attempt(self, uploads: Uploads) -> tuple[Any, str | None]:
        """The state with these uploads in it, and why it cannot be used (None where it can)."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is seen below
                fold = self.guard or self.method.aggregate
                state = fold(self.before, self.replies(uploads), self.keys)
        except Exception as problem:
            said = " ".join(str(problem).split())[:200]
            return self.before, f"its uploads cannot be folded: {type(problem).__name__}: {said}"
        if not finite(state):
            return self.before, "its uploads leave a state that is not finite"
        if self.tried is not None and not self.tried(state):
            return self.before, "its uploads leave a state that no client could work with"
        return state, None

    def without_culprits(self, uploads: Uploads) -> tuple[Any, dict[str, str]]:
        """The state with all uploads in it that can be folded, and whose are not in it, with the reason."""
        state, problem = self.attempt(uploads)
        if problem is None:
            return state, {}
        found = self.culprits(uploads)
        state, problem = self.attempt({name: one for name, one in uploads.items() if name not in found})
        return state, found if problem is None else dict.fromkeys(uploads, problem)

    def culprits(self, uploads: Uploads) -> dict[str, str]:
        """Whose uploads, alone or on top of the others', cannot be folded, and why; ``uploads`` together cannot."""
        names = list(uploads)
        if len(names) <= 1:
            return {name: self.attempt(uploads)[1] or "" for name in names}
        found: dict[str, str] = {}
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            part = {name: uploads[name] for name in half}
            if self.attempt(part)[1] is not None:
                found |= self.culprits(part)
        return found or self._too_many(uploads)

    def _too_many(self, uploads: Uploads) -> dict[str, str]:
        """Each half can be folded, both together cannot: those that do not go on top of the first half."""
        names, found = list(uploads), {}
        kept = {name: uploads[name] for name in names[: len(names) // 2]}
        for name in names[len(names) // 2 :]:
            problem = self.attempt({**kept, name: uploads[name]})[1]
            if problem is None:
                kept[name] = uploads[name]
            else:
                found[name] = problem
        return found

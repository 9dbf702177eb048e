"""Centralised references: what a method would reach if histories were collected. Ceiling and floor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from fedrec.core.block import World
from fedrec.core.messages import Float32
from fedrec.core.method import Card, Keys
from fedrec.core.settings import Settings
from fedrec.data.ragged import Int64, Ragged
from fedrec.errors import BadInput
from fedrec.keyed import U64

S = TypeVar("S")


@dataclass(frozen=True)
class Central:
    """All training data in one place, as a centralised model sees it."""

    world: World
    train: Ragged  # per user
    exclude: Ragged  # per user, sorted: never drawn as negatives
    ordered: bool = True
    """Whether the order of a user's items is one of time."""


def collected(title: str, paper: str, *departures: str) -> Card:
    """The card of a model that is trained on whole histories."""
    return Card(title, paper, "nothing: all histories are collected", "whole histories", True, departures)


class Reference(ABC, Generic[S]):
    """A centralised model. Instances hold settings only."""

    name: ClassVar[str]
    card: ClassVar[Card]
    Settings: ClassVar[type[Any]] = Settings
    one_shot: ClassVar[bool] = True
    """Whether one step is all there is; otherwise a round is an epoch."""
    rounds: ClassVar[int] = 1
    """Steps by default."""
    anew: ClassVar[tuple[str, ...]] = ()
    """Fields of the state that the next step makes again: they begin empty where the data has grown."""
    search: ClassVar[dict[str, Any]] = {}
    """What ``fedrec tune`` searches, as of a :class:`~fedrec.core.method.Method`."""
    reads_histories: ClassVar[bool] = True
    """Whether scores follow from a user's history alone, so that somebody new can be served."""

    def __init__(self, settings: Any = None, device: str = "cpu") -> None:
        self.settings: Any = self.Settings() if settings is None else settings
        self.device = device

    @abstractmethod
    def start(self, data: Central, keys: Keys) -> S:
        """The model before the first step."""

    @abstractmethod
    def step(self, state: S, data: Central, keys: Keys) -> tuple[S, float]:
        """One step (the whole fit, or one epoch) and its loss."""

    @abstractmethod
    def score(self, state: S, data: Central, users: Int64) -> Float32:
        """Scores ``[users, n_items]``; higher is better."""

    def score_new(self, state: S, data: Central, new: Central, users: U64, keys: Keys) -> Float32:
        """Scores ``[users, n_items]`` of users that were not in training, whose histories ``new`` has; ``data`` is what
        was trained on. By default for references that look at histories alone; others say how, or refuse."""
        if not self.reads_histories:
            raise BadInput(f"{self.name} has learnt a vector for each of its users, but none for anybody new")
        return self.score(state, new, np.arange(len(new.train)))


class InEpochs(Reference[S]):
    """A model that is trained in epochs, one a round."""

    one_shot = False
    rounds = 40

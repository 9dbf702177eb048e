"""How many optimiser steps a round is, and how many rounds a cap on steps allows: the same cap for every method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedrec.core.population import Population
from fedrec.core.reference import Reference
from fedrec.methods.registry import find as find_method


def steps_a_round(method: str, settings: Any, people: Population) -> float:
    """Optimiser steps of the mean client in a round; of the one optimiser where all data is in one place.

    A method without local epochs makes one pass a round, which counts as one step.
    """
    epochs = getattr(settings, "epochs", None)
    central = issubclass(find_method(method), Reference)
    if epochs is None and not central:
        return 1.0
    batch = getattr(settings, "batch_size", None)
    if batch is None:  # a client's whole history is one batch
        return float(epochs or 1)
    train = people.block.train
    sizes = np.bincount(people.block.client_of_user[train.owners], minlength=people.block.n_clients)
    if central:
        sizes = np.array([len(train.values)])
    negatives = getattr(settings, "negatives", None)
    if negatives is None:  # users, or their sequences, are what is drawn
        sizes = np.array([len(people.users)])
    elif getattr(settings, "objective", "bce") == "bpr":
        sizes = sizes * negatives
    else:
        sizes = sizes * (1 + negatives)
    return float(epochs or 1) * float(np.maximum(1, np.ceil(sizes / batch)).mean())


def rounds_within(cap: float, steps: float, most: int, least: int = 1) -> int:
    """Rounds of ``steps`` each within a cap, at most ``most`` and at least ``least``."""
    return max(1, min(most, max(least, math.floor(cap / max(steps, 1e-9)))))

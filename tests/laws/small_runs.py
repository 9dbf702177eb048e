"""Small runs and comparisons that the laws are written with."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.core.participation import Participation
from fedrec.core.population import population
from fedrec.core.settings import build
from fedrec.core.state import flatten
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import find
from fedrec.simulate.runtime import Simulator

SMALL = {"dim": 4, "epochs": 2, "batch_size": 64}
"""Settings that make a round fast, where a method has them."""

PATTERNS = {
    "everyone": Participation(1.0),
    "some": Participation(0.4),
    "resting": Participation(0.5, rest=True),
}


def small_settings(name: str, **more: Any) -> Any:
    kind = find(name)
    chosen = {**{k: v for k, v in SMALL.items() if k in kind.Settings.model_fields}, **getattr(kind, "small", {})}
    return build(kind.Settings, {**chosen, **more}, name)


def simulator(name: str, data: Any, seed: int = 3, protocol: str = "strict", **options: Any) -> Simulator:
    settings = options.pop("settings", {})
    task = find_protocol(protocol).prepare(data, seed)
    method = find(name)(small_settings(name, **settings))
    return Simulator(method, population(task), task, seed, **options)


def plan(rounds: int = 2, participation: Participation = PATTERNS["everyone"], seed: int = 3, **more: Any) -> Plan:
    return Plan(rounds, seed, participation, "download", "valid", "HR@10/99", **more)


def run(sim: Simulator, chosen: Plan) -> Progress:
    return run_rounds(sim, chosen, Progress(), lambda record, progress: None)


def same_state(left: Any, right: Any, tolerance: float = 2e-4) -> None:
    a, shape_a = flatten(left)
    b, shape_b = flatten(right)
    assert shape_a == shape_b
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=tolerance, atol=tolerance, err_msg=name)


def same_metrics(left: Progress, right: Progress) -> None:
    for one, other in zip(left.records, right.records, strict=True):
        assert one.valid == pytest.approx(other.valid, abs=1e-9)
        assert one.test == pytest.approx(other.test, abs=1e-9)


def reordered(data: Any, order: np.ndarray) -> Any:
    """The same users in another order: user ``order[i]`` becomes user ``i``."""
    place = np.argsort(order)
    users = place[data.users].astype(np.int32)
    rows = np.argsort(users, kind="stable")
    moved = {
        "users": users[rows],
        "items": data.items[rows],
        "user_ids": data.user_ids[order],
        "times": None if data.times is None else data.times[rows],
        "client_of_user": None if data.client_of_user is None else data.client_of_user[order],
    }
    return dataclasses.replace(data, **moved)

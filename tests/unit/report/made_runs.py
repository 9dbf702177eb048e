"""Finished runs made up in memory, with values that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrec.evaluation.protocols import find
from fedrec.report.model.runs import FinishedRun


def made_run(
    method: str,
    seed: int,
    values: Any,
    *,
    protocol: str = "strict",
    curve: Sequence[float] = (),
    keep_users: bool = True,
    clients: int | None = None,
) -> FinishedRun:
    """A run whose every metric has these values ``[users]``; ``curve`` is validation over rounds."""
    names = find(protocol).metrics.names
    own = np.asarray(values, np.float64)
    mean = float(np.nanmean(own))
    rounds = list(curve) or [mean]
    result = {
        "schema": "fedrec.result/1",
        "method": method,
        "protocol": protocol,
        "seed": seed,
        "rounds": len(rounds),
        "selected_round": 1 + int(np.argmax(rounds)),
        "data": {
            "name": "made",
            "users": len(own),
            "items": 50,
            "interactions": 999,
            "clients": len(own) if clients is None else clients,
        },
        "metrics": {"test": dict.fromkeys(names, mean), "valid": dict.fromkeys(names, rounds[-1])},
        "seconds": {"total": 2.0, "prepare": 0.5, "train": 1.0, "aggregate": 0.25, "evaluate": 0.25},
        "bytes": {"upload": 2048.0, "download": 4096.0},
        "memory": {"peak_mb": 1.0},
        "privacy": "made up",
        "settings": {"method": method, "seed": seed, "rounds": len(rounds), "settings": {"dim": 4}},
        "versions": {},
    }
    log = tuple({"round": i, "valid": dict.fromkeys(names, v)} for i, v in enumerate(rounds, 1))
    users = tuple(f"u{i}" for i in range(len(own)))
    return FinishedRun(result, log, users, dict.fromkeys(names, own) if keep_users else None)

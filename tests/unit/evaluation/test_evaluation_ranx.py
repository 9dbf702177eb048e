"""Metrics against an independent implementation, on rankings without ties."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from evaluation_worlds import make_data

from fedrec.evaluation.evaluating import evaluate
from fedrec.evaluation.protocols import find

RANX = {
    "HR": "hit_rate",
    "NDCG": "ndcg",
    "Recall": "recall",
    "Precision": "precision",
    "F1": "f1",
    "MRR": "mrr",
}
PLAIN = """
import json, sys
import ranx
wanted, listed, metrics = json.load(sys.stdin)
print(json.dumps(ranx.evaluate(ranx.Qrels(wanted), ranx.Run(listed), metrics, make_comparable=True), default=float))
"""


def theirs(wanted: Any, listed: Any, metrics: list[str]) -> dict[str, float]:
    """ranx as plain Python: compiling its metrics takes minutes, the rankings here milliseconds."""
    told = json.dumps([wanted, listed, metrics])
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], input=told, env=plain, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["strict", "paper-fedcia"])
def test_agrees_with_ranx(protocol: str) -> None:
    pytest.importorskip("ranx")
    task = find(protocol).prepare(make_data(n_users=25, n_items=80, per_user=40), 0)
    n_users, n_items = task.data.n_users, task.data.n_items
    numbers = np.random.default_rng(1)
    scores = np.stack([numbers.permutation(n_items) for _ in range(n_users)]).astype(np.float32)
    held = task.held("test")
    mine = evaluate(scores, held, task.protocol.metrics)
    users = np.flatnonzero(held.targets.counts).tolist()
    wanted = {str(u): {str(i): 1 for i in held.targets[u].tolist()} for u in users}
    for suffix in ("", "/99") if held.candidates is not None else ("",):
        listed = {}
        for u in users:
            drawn = np.arange(n_items) if not suffix else held.candidates[u][held.candidates[u] >= 0]  # type: ignore[index]
            ranked = (set(drawn.tolist()) | set(held.targets[u].tolist())) - set(held.masked[u].tolist())
            listed[str(u)] = {str(i): float(scores[u, i]) for i in ranked}
        found = theirs(wanted, listed, [f"{name}@{k}" for name in RANX.values() for k in (5, 10, 20)])
        for kind, name in RANX.items():
            for k in (5, 10, 20):
                expected = found[f"{name}@{k}"]
                assert np.nanmean(mine[f"{kind}@{k}{suffix}"]) == pytest.approx(expected, abs=1e-9), (kind, k)

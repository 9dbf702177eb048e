"""A result in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrec.evaluation.protocols import PROTOCOLS
from fedrec.report.model.columns import shown


def metrics_of(found: Mapping[str, Any]) -> list[str]:
    """The metrics that a table under the result's protocol shows, as far as they were computed."""
    test = found["metrics"]["test"]
    protocol = PROTOCOLS.get(str(found["protocol"]))
    names = [name for name in shown(protocol) if name in test] if protocol is not None else []
    return names or list(test)[:5]


def said(found: Mapping[str, Any]) -> str:
    """``<fedrec result: fedavg on ml-100k, strict, seed 0, round 93 of 100: HR@10 0.0700 ...>``."""
    test = found["metrics"]["test"]
    values = "  ".join(f"{name} {test[name]:.4f}" for name in metrics_of(found))
    where = f"{found['method']} on {found['data']['name']}, {found['protocol']}, seed {found['seed']}"
    return f"<fedrec result: {where}, round {found['selected_round']} of {found['rounds']}: {values}>"

"""Which metrics a table shows under a protocol, and which one orders it."""

from __future__ import annotations

from fedrec.evaluation.rules import Rules

STRICT = ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10", "HR@20")
SHOWN: dict[str, tuple[str, ...]] = {
    "strict": STRICT,
    # what the paper's tables show, then the honest figure beside it
    "paper-fedca": ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10"),
    "paper-fed3cr": ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10"),
    "paper-fediar": ("HR@5/99", "NDCG@5/99", "HR@10/99", "NDCG@10/99", "HR@10"),
    "paper-feddae": ("HR@20", "NDCG@20"),
    "paper-fedcia": ("F1@10!", "MRR@10!", "NDCG@10!", "F1@10", "NDCG@10"),
}


def shown(protocol: Rules) -> tuple[str, ...]:
    """The columns of a table; for a protocol without a list of its own, what it selects by comes first."""
    if protocol.name in SHOWN:
        return SHOWN[protocol.name]
    first = protocol.selection.metric
    return (first, *(name for name in STRICT if name in protocol.metrics.names and name != first))


def main_metric(protocol: Rules) -> str:
    """The metric that orders rows and is drawn: the one the protocol itself chooses the round by."""
    return protocol.selection.metric


def canary_metric(protocol: Rules) -> str:
    """The metric by which `local` is held against chance: the easiest ranking shows a leak best."""
    return next(name for name in ("HR@10/99", "HR@10", *protocol.metrics.names) if name in protocol.metrics.names)

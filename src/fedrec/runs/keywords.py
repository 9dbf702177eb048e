"""Options of a run as typed keywords of Python: those of :class:`fedrec.runs.settings.RunSettings`, and no others.

A test keeps the two in step. Nothing is imported here that takes time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict


class SharedOptions(TypedDict, total=False):
    """What all runs of a comparison have in common."""

    data_dir: str | Path | None
    protocol: str
    rounds: int
    participation: float
    rest: bool
    dropout: float
    robust: str
    robust_factor: float
    robust_share: float
    settings: dict[str, Any]
    device: Literal["cpu", "cuda"]
    runtime: Literal["simulate", "flower"]
    nodes: int
    node_sums: bool
    secure: bool
    secure_by: Literal["clients", "nodes"]
    secure_least: int
    secure_dropout: float
    secure_colluding: float
    secure_cohort: int
    secure_work: Literal["masks", "protocol", "sums"]
    epsilon: float | None
    delta: float
    min_interactions: int | None
    columns: str | Mapping[str, str] | None
    min_rating: float | None
    train_share: float
    clients: int | None
    spread: Literal["random", "blocks"]
    copies: int
    evaluate_every: int
    patience: int | None
    settle: float
    evaluate_users: int | None
    test: bool
    memory_mb: int
    checkpoint_seconds: float
    keep_selected: bool
    histories: Literal["stored", "hashed"]


class RunOptions(SharedOptions, total=False):
    """What one run may be given beside its method and its data."""

    seed: int

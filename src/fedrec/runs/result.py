"""What a result says: the one object that ``--json`` writes."""

from __future__ import annotations

import platform
import resource
from contextlib import suppress
from typing import Any

from fedrec.core.block import World
from fedrec.core.loop import Progress, Record
from fedrec.core.reference import Reference
from fedrec.runs.settings import RunSettings

SCHEMA = "fedrec.result/1"


def summary(
    settings: RunSettings,
    method: Any,
    data: dict[str, Any],
    progress: Progress,
    prepare_seconds: float,
    exposure: tuple[int, tuple[str, ...]] | None,
) -> dict[str, Any]:
    """The result of a run; ``data`` from :func:`describe`, ``exposure`` as the runtime saw it (may be None)."""
    records = progress.records
    best = next((r for r in records if r.round == progress.best_round), records[-1])
    seconds = {part: sum(r.seconds[part] for r in records) for part in ("train", "aggregate", "evaluate")}
    weight = sum(r.participants for r in records) or 1
    return {
        "schema": SCHEMA,
        "method": settings.method,
        "protocol": settings.protocol,
        "seed": settings.seed,
        "rounds": progress.round,
        "selected_round": progress.best_round,
        "data": data,
        "metrics": {"test": best.test or {}, "valid": best.valid or {}},
        "seconds": {"total": prepare_seconds + sum(seconds.values()), "prepare": prepare_seconds, **seconds},
        "bytes": {way: sum(r.bytes[way] * r.participants for r in records) / weight for way in ("upload", "download")},
        "memory": {"peak_mb": peak_memory_mb()},
        "privacy": privacy_statement(settings, method, data["clients"], exposure),
        **({"secure": secure_means(records)} if settings.secure else {}),
        "settings": settings.model_dump(mode="json", exclude={"data_dir"}),
        "versions": versions(),
    }


def secure_means(records: list[Record]) -> dict[str, Any]:
    """What secure sums cost per round and client: the mean of the records; of the smallest cohort the least."""
    found = [record.secure for record in records if record.secure is not None]
    if not found:
        return {}

    def mean(values: list[Any]) -> Any:
        if isinstance(values[0], dict):
            return {key: mean([value[key] for value in values]) for key in values[0]}
        return sum(values) / len(values)

    least = min(one["smallest_cohort"] for one in found)
    return {**mean(found), "smallest_cohort": least, "repeated": sum(one["repeated"] for one in found)}


def describe(world: World, interactions: int | None) -> dict[str, Any]:
    """What the result says of the data; a server that never saw it does not know the interactions."""
    return {
        "name": world.name,
        "users": world.n_users,
        "items": world.n_items,
        "interactions": interactions,
        "clients": world.n_clients,
    }


def privacy_statement(
    settings: RunSettings, method: Any, clients: int, exposure: tuple[int, tuple[str, ...]] | None
) -> str:
    """One line on what an upload gives away."""
    if isinstance(method, Reference):
        return "centralised: all histories are collected"
    from fedrec.privacy.accountant import account

    numbers, open_fields = exposure or (1, ())
    if not numbers and not open_fields:
        return "nothing leaves a client"
    found = account(
        method.settings,
        rounds=settings.rounds,
        coordinates=max(1, numbers),
        sum_suffices=method.card.sum_suffices,
        clients=max(1, round(settings.participation * clients)),
        population=clients,
        unprotected=open_fields,
    )
    central = f"; {found.central.statement}" if found.central is not None and found.central.holds else ""
    return found.local.statement + central


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def versions() -> dict[str, str]:
    """Versions that a reader needs to repeat the run."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("fedrec", "numpy", "scipy", "numba", "torch", "scikit-learn"):
        with suppress(PackageNotFoundError):  # numba may be missing; fedrec may run from its sources
            found[name] = version(name)
    return found

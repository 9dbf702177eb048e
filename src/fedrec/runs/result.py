"""What a result says: the one object that ``--json`` writes."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from fedrec.core.block import World
from fedrec.core.loop import Progress, Record
from fedrec.core.reference import Reference
from fedrec.privacy import card as cards
from fedrec.privacy.card import PrivacyCard
from fedrec.privacy.summed import SumNoise
from fedrec.runs.memory import peak_memory_mb
from fedrec.runs.origin import Origin
from fedrec.runs.plan import participation_of
from fedrec.runs.settings import RunSettings

SCHEMA = "fedrec.result/1"


def summary(
    settings: RunSettings,
    method: Any,
    data: dict[str, Any],
    progress: Progress,
    prepare_seconds: float,
    runtime: Any,
    origin: Origin | None = None,
    *,
    repeatable: bool = False,
) -> dict[str, Any]:
    """The result of a run; ``data`` from :func:`describe`. ``repeatable``: clients draw by the run's seed alone."""
    records = progress.records
    card = card_of(settings, method, records, runtime, 0 if origin is None else origin.rounds)
    if repeatable:
        card = cards.repeatable(card)
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
        "privacy": card.line,
        "privacy_card": card.as_dict(),
        **({"origin": asdict(origin)} if origin is not None else {}),
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


def _sendings(records: list[Record], runtime: Any) -> int:
    """How often a client can have sent what it sends once: what came too late was sent, and is asked for again.

    A server cannot tell it from what was never sent, so every round counts that somebody was missing from.
    """
    again = sum(bool(record.missing) for record in records[:-1]) if getattr(runtime, "answers_get_lost", False) else 0
    return 1 + again


def card_of(settings: RunSettings, method: Any, records: list[Record], runtime: Any, earlier: int = 0) -> PrivacyCard:
    """What the run guarantees each user; a runtime knows what its uploads hold, and the noise of its sums.

    ``earlier``: rounds that users took part in before, in the run that this one goes on from.
    """
    stated: PrivacyCard | None = getattr(runtime, "stated", None)  # by the server, where the rounds ran elsewhere
    if stated is not None:
        return stated
    card = _card_of(settings, method, records, runtime, earlier)
    return cards.over_nodes(card) if getattr(runtime, "hosts_apart", False) else card


def _card_of(settings: RunSettings, method: Any, records: list[Record], runtime: Any, earlier: int) -> PrivacyCard:
    if isinstance(method, Reference):
        return cards.collected()
    exposure = getattr(runtime, "exposure", None)
    if exposure is None and not settings.secure:  # no round ran in this process
        sent = earlier or any(record.participants for record in records)
        return cards.unknown() if sent else cards.nothing_sent()
    numbers, open_fields = exposure or (1, ())
    if not numbers and not open_fields:
        return cards.nothing_sent()
    if not settings.secure:
        rounds = len(records) - any(record.participants == 0 for record in records[:1])  # where an update starts
        return cards.of_uploads(
            method.settings,
            releases=earlier
            + (
                _sendings(records, runtime)
                if method.contributes_once
                else participation_of(settings).most(max(1, rounds))
            ),
            coordinates=max(1, numbers),
            contribution=method.contribution(),
            unprotected=open_fields,
        )
    smallest = min((one.secure["smallest_cohort"] for one in records if one.secure), default=settings.secure_least)
    summed: SumNoise | None = getattr(runtime, "summed", None)
    if summed is None:
        return cards.no_noise(f"the server sees sums of at least {smallest} participants (secure sums)")
    if method.contributes_once:  # a sum that was unmasked and lost: those in it were asked for their part again
        lost = sum(record.participants == 0 and not record.unsent for record in records)
        summed = replace(summed, releases=min(summed.releases + lost, max(1, len(records))))
    by_nodes = settings.secure_by == "nodes"
    return cards.of_sums(
        summed,
        smallest=smallest,
        who="nodes" if by_nodes else "clients",
        unit=cards.USER if method.contribution() is not None else cards.WHOLE_CLIENT,
        colluding=settings.secure_colluding,
        ledger=ledgers.stated() if (ledgers := getattr(runtime, "ledgers", None)) else None,
    )


def versions() -> dict[str, str]:
    """Versions that a reader needs to repeat the run."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("fedrec", "numpy", "scipy", "numba", "torch", "scikit-learn"):
        with suppress(PackageNotFoundError):  # numba may be missing; fedrec may run from its sources
            found[name] = version(name)
    return found

"""A federation without a network, for tests: the one that law 2 is checked with, and its log beside another's."""

from __future__ import annotations

from typing import Any

from fedrec.core.loop import Plan, Progress, run_rounds
from fedrec.deploy.flower.records import from_records, to_records
from fedrec.deploy.messages.envelope import Plain, fault_in, unpack_answer
from fedrec.deploy.messages.letters import Answer, Fault
from fedrec.deploy.messages.plain_values import BadLetter
from fedrec.experiment.prepare import prepare
from fedrec.laws.nodes import RUN, DirectExchange, federation
from fedrec.runs.settings import RunSettings

__all__ = ["RUN", "DirectExchange", "delivered", "federation", "in_process", "records_of"]


def delivered(plain: Plain) -> Answer | Fault:
    """A letter as it arrives over Flower's records, however it was altered."""
    try:
        found = from_records(to_records(plain))
        return fault_in(found) or unpack_answer(found)
    except BadLetter as problem:
        return Fault(f"not read: {problem}")


def records_of(runtime: Any, plan: Plan, progress: Progress) -> list[Any]:
    """The log of a whole run."""
    return run_rounds(runtime, plan, progress, lambda record, now: None).records


def in_process(settings: RunSettings) -> list[Any]:
    """The log of the same run in process."""
    prepared = prepare(settings)
    return records_of(prepared.runtime, prepared.plan, Progress())

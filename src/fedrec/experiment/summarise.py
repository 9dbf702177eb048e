"""What ``--json`` writes of a run, out of all that was prepared for it."""

from __future__ import annotations

from typing import Any

from fedrec.core.loop import Progress
from fedrec.experiment.prepare import Prepared
from fedrec.runs.result import describe, summary


def summarise(prepared: Prepared, progress: Progress) -> dict[str, Any]:
    """The one object that ``--json`` writes."""
    data, runtime = data_of(prepared), prepared.runtime
    return summary(prepared.settings, prepared.method, data, progress, prepared.seconds, runtime, prepared.origin)


def data_of(prepared: Prepared) -> dict[str, Any]:
    """What the result says of the data."""
    return describe(prepared.people.world, len(prepared.task.data))

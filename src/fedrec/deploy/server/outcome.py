"""The result of a run whose data stayed on its nodes: the object of ``--json``, with what a server can know."""

from __future__ import annotations

from dataclasses import dataclass

from fedrec.core.loop import Progress
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.job import Job
from fedrec.runs.folder import RunFolder
from fedrec.runs.result import describe, summary
from fedrec.runs.settings import RunSettings


@dataclass(frozen=True)
class Served:
    """A run after its last round, on the server."""

    settings: RunSettings
    job: Job
    runtime: Federation
    progress: Progress
    seconds: float
    """Until the first round."""


def finish(folder: RunFolder, served: Served) -> None:
    """Write the server's part of the selected model and the result."""
    runtime = served.runtime
    data = describe(runtime.world, interactions=None)  # nobody but the nodes knows how many
    result = summary(served.settings, runtime.method, data, served.progress, served.seconds, runtime)
    best = served.progress.best_state
    model = None if best is None else {"server": best["server"]}
    folder.finish(result, model, None, None)

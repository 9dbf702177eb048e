"""The result of a run whose data stayed on its nodes: the object of ``--json``, with what a server can know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedrec.runs.folder import RunFolder
from fedrec.runs.result import describe, summary

if TYPE_CHECKING:
    from fedrec.deploy.server.serve import Served


def finish(folder: RunFolder, served: Served) -> None:
    """Write the server's part of the selected model and the result."""
    runtime = served.runtime
    data = describe(runtime.world, interactions=None)  # nobody but the nodes knows how many
    exposure = getattr(runtime, "exposure", None)
    result = summary(served.settings, runtime.method, data, served.progress, served.seconds, exposure)
    best = served.progress.best_state
    model = None if best is None else {"server": best["server"]}
    folder.finish(result, model, None, None)

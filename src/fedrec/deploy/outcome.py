"""The result of a run whose data stayed on its nodes: the object of ``--json``, with what a server can know."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from fedrec.runs.folder import RunFolder

if TYPE_CHECKING:
    from fedrec.deploy.serve import Served


@dataclass(frozen=True)
class Unseen:
    """What a server knows of data it never saw."""

    name: str
    n_users: int
    n_items: int

    def __len__(self) -> int:
        return 0


def finish(folder: RunFolder, served: Served) -> None:
    """Write the server's part of the selected model and the result."""
    from fedrec import running  # the one place that says what a result holds

    world = served.runtime.world
    stand_in: Any = SimpleNamespace(
        settings=served.settings,
        task=SimpleNamespace(data=Unseen(world.name, world.n_users, world.n_items)),
        people=SimpleNamespace(world=world),
        method=served.runtime.method,
        runtime=served.runtime,
        seconds=served.seconds,
    )
    result = running.summary(stand_in, served.progress)
    result["data"]["interactions"] = None  # nobody but the nodes knows
    best = served.progress.best_state
    model = None if best is None else {"server": best["server"]}
    folder.finish(result, model, None, None)

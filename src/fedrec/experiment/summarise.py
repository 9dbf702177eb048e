"""A finished run as one object: what ``--json`` writes, and a model that recommends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedrec.core.loop import Progress
from fedrec.experiment.prepare import Prepared
from fedrec.experiment.recommend import recommend
from fedrec.runs.folder import RunFolder
from fedrec.runs.recommendations import Recommendation
from fedrec.runs.result import describe, summary


@dataclass
class Result:
    """A finished run: what ``--json`` writes, and a model that recommends."""

    json: dict[str, Any]
    prepared: Prepared
    folder: RunFolder | None
    per_user: dict[str, Any] | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """Test metrics of the selected round."""
        return dict(self.json["metrics"]["test"])

    def recommend(self, user: str | int, k: int = 10) -> list[Recommendation]:
        """The ``k`` best items for a user, none of which the user has."""
        return recommend(self.prepared, user, k)


def summarise(prepared: Prepared, progress: Progress) -> dict[str, Any]:
    """The one object that ``--json`` writes."""
    data, runtime = data_of(prepared), prepared.runtime
    return summary(prepared.settings, prepared.method, data, progress, prepared.seconds, runtime)


def data_of(prepared: Prepared) -> dict[str, Any]:
    """What the result says of the data."""
    return describe(prepared.people.world, len(prepared.task.data))

"""A finished run as one object: what ``--json`` writes, and a model that recommends with or without its data."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrec.errors import BadInput
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.recommend import Recommender
from fedrec.experiment.summarise import data_of
from fedrec.runs.folder import RunFolder
from fedrec.runs.known import known_of
from fedrec.runs.recommendations import Recommendation

log = logging.getLogger("fedrec.runs")


@dataclass
class Result:
    """A finished run: what ``--json`` writes, and a model that recommends."""

    json: dict[str, Any]
    folder: RunFolder | None
    per_user: dict[str, Any] | None = None
    made: Prepared | None = field(default=None, repr=False)
    """All that the run was carried out with, where it has just been."""

    @property
    def metrics(self) -> dict[str, float]:
        """Test metrics of the selected round."""
        return dict(self.json["metrics"]["test"])

    @cached_property
    def prepared(self) -> Prepared:
        """Data, protocol, method and runtime with the selected model; of a run read from disk, its data is needed."""
        if self.made is not None:
            return self.made
        assert self.folder is not None
        prepared = prepared_again(self.folder)
        prepared.runtime.restore(self.folder.model(prepared.runtime.expected()))
        return prepared

    @cached_property
    def recommender(self) -> Recommender:
        """The selected model, ready to recommend; without the data, unless the run was made by an older version."""
        if self.made is None and self.folder is not None:
            known = self.folder.known()
            if known is not None:
                return Recommender.opened(self.folder, known)
            log.warning(
                "%s does not keep what its model knows of the data, so the data is read again; "
                "a run of this version needs it no more",
                self.folder.path,
            )
        prepared = self.prepared
        return Recommender(known_of(prepared.task, prepared.people), prepared.runtime)

    def recommend(self, user: str | int, k: int = 10, exclude: Any = (), only: Any = None) -> list[Recommendation]:
        """The ``k`` best items for a user, none of which the user has."""
        return self.recommender.recommend(user, k, exclude, only)

    def recommend_history(self, items: Any, k: int = 10, exclude: Any = (), only: Any = None) -> list[Recommendation]:
        """The ``k`` best items for somebody who was not in training and has these items."""
        return self.recommender.recommend_history(items, k, exclude, only)


def opened(path: Path) -> Result:
    """A finished run, with its selected model."""
    folder = RunFolder.open(path)
    return Result(folder.result(), folder)


def place_of(data: str) -> Path | None:
    """Where data that was given as a file or folder lies; None for names."""
    given = Path(data).expanduser()
    return given.resolve() if given.exists() else None


def prepared_again(folder: RunFolder) -> Prepared:
    """What a run needs, from its data as it is now; other data than it was made from is bad input."""
    settings = folder.settings()
    before, place = folder.fingerprint()
    if place is not None and place.exists() and not Path(settings.data).expanduser().exists():
        settings = settings.model_copy(update={"data": str(place)})  # we stand in another folder
    prepared = prepare(settings)
    if before is None and folder.finished:  # of an older version: all that can be compared are counts
        seen, now = folder.result()["data"], data_of(prepared)
        if seen != now:
            raise BadInput(f"the data of {folder.path} has changed since the run ({seen} then, {now} now)")
    changed = None if before is None else before.change_to(prepared.fingerprint)
    if changed is not None:
        raise BadInput(
            f"the data of {folder.path} has changed since the run: {changed}; restore it, or start a new run "
            f"(`fedrec update {folder.path}` goes on from a finished one)"
        )
    return prepared

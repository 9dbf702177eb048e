"""A finished run as one object: what ``--json`` writes, and a model that recommends with or without its data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fedrec.core.loop import Record
from fedrec.errors import BadInput, quoted
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.recommend import Ids, Recommender
from fedrec.experiment.recommend_table import frame
from fedrec.report.figures.result import round_plot
from fedrec.report.page.result import result_html
from fedrec.report.text.result import said
from fedrec.runs.folder import RunFolder
from fedrec.runs.known import known_of
from fedrec.runs.recommendations import Recommendation
from fedrec.runs.settings import RunSettings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

log = logging.getLogger("fedrec.runs")


@dataclass(repr=False)
class Result:
    """A finished run: what ``--json`` writes, and a model that recommends."""

    json: dict[str, Any]
    folder: RunFolder | None
    per_user: dict[str, Any] | None = None
    made: Prepared | None = None
    """All that the run was carried out with, where it has just been."""
    rounds: tuple[Record, ...] = ()
    """The log of rounds, where it has just been made."""

    @property
    def metrics(self) -> dict[str, float]:
        """Test metrics of the selected round."""
        return dict(self.json["metrics"]["test"])

    @property
    def history(self) -> pd.DataFrame:
        """A row for each round: loss, participants, seconds, bytes, metrics (``valid HR@10``, ``test HR@10``)."""
        import pandas as pd

        parts = ("valid", "test", "seconds", "bytes")
        return pd.DataFrame(
            {
                **{key: row[key] for key in ("round", "loss", "participants")},
                **{f"{part} {name}": value for part in parts for name, value in (row[part] or {}).items()},
            }
            for row in self._rows()
        )

    def figure(self, metric: str | None = None) -> Figure:
        """A metric over rounds, on validation and test, as a matplotlib figure (``.savefig("curve.pdf")``)."""
        return round_plot(self.json, self._rows(), metric)

    def __repr__(self) -> str:
        return said(self.json)

    def _repr_html_(self) -> str:
        """What a notebook shows: the line, the table of metrics, the curve."""
        return result_html(self.json, self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        if self.rounds or self.folder is None:
            return [record.as_dict() for record in self.rounds]
        return self.folder.records()

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
            self.folder.model_file()  # says that there is none
            log.warning(
                "%s does not keep what its model knows of the data, so the data is read again; runs of this version do "
                "not need it",
                self.folder.path,
            )
        prepared = self.prepared
        return Recommender(known_of(prepared.task, prepared.people), prepared.runtime)

    @overload
    def recommend(
        self, user: str | int | np.integer[Any], k: int = 10, exclude: Ids | None = (), only: Ids | None = None
    ) -> list[Recommendation]: ...

    @overload
    def recommend(
        self, user: Sequence[str | int] | None, k: int = 10, exclude: Ids | None = (), only: Ids | None = None
    ) -> pd.DataFrame: ...

    def recommend(
        self,
        user: str | int | np.integer[Any] | Sequence[str | int] | None,
        k: int = 10,
        exclude: Ids | None = (),
        only: Ids | None = None,
    ) -> list[Recommendation] | pd.DataFrame:
        """The ``k`` best items for a user, none of which the user has; for several users (all, where None) a
        DataFrame of user, rank, item, title and score."""
        without, within = _ids(exclude), None if only is None else _ids(only)
        if isinstance(user, str | int | np.integer):
            return self.recommender.recommend(str(user), k, without, within)
        if user is not None and (isinstance(user, bytes) or not isinstance(user, Iterable)):
            raise BadInput(f"{quoted(user, 60)} is not a user's id; give a text or a whole number, or several of them")
        return frame(self.recommender, self.recommender.stream(user, k, without, within))

    def recommend_history(
        self, items: Ids, k: int = 10, exclude: Ids | None = (), only: Ids | None = None
    ) -> list[Recommendation]:
        """The ``k`` best items for somebody who was not in training and has these items."""
        within = None if only is None else _ids(only)
        return self.recommender.recommend_history(_ids(items), k, _ids(exclude), within)


def _ids(given: Any) -> Ids:
    """Ids of items: one may stand by itself, as a number of numpy too; None is none."""
    if given is None or (isinstance(given, Iterable) and not isinstance(given, bytes)):
        return () if given is None else given
    if isinstance(given, int | np.integer):
        return [int(given)]
    raise BadInput(f"{quoted(given, 60)} is not an item's id; give a text or a whole number, or several of them")


def opened(path: Path) -> Result:
    """A finished run, with its selected model."""
    folder = RunFolder.open(path)
    return Result(folder.result(), folder)


def settings_here(folder: RunFolder, here: Mapping[str, Any] | None = None) -> RunSettings:
    """A run's settings, with those of this machine (``here``: its device, its data folder) in place of its own.

    Where its data was a file that is not below this folder, with that file's own place; a data folder that is not on
    this machine gives way to the usual one.
    """
    settings = folder.settings().model_copy(update=dict(here or {}))
    now: dict[str, Any] = {"data": data_now(folder, settings)}
    if settings.data_dir is not None and not Path(settings.data_dir).exists():
        now["data_dir"] = None
    return settings.model_copy(update=now)


def data_now(folder: RunFolder, settings: RunSettings) -> str:
    """A run's data as it is named from here: by its own place, where we stand in another folder."""
    place = folder.fingerprint()[1]
    moved = place is not None and place.exists() and not Path(settings.data).expanduser().exists()
    return str(place) if moved else settings.data


def prepared_again(folder: RunFolder, here: Mapping[str, Any] | None = None) -> Prepared:
    """What a run needs, from its data as it is now; other data than it was made from is bad input."""
    before, _ = folder.fingerprint()
    prepared = replace(prepare(settings_here(folder, here)), origin=folder.origin())
    if before is None and folder.finished:  # of an older version: all that can be compared are counts
        seen, now = folder.result()["data"], prepared.described
        if seen != now:
            raise BadInput(f"the data of {folder.path} has changed since the run ({seen} then, {now} now)")
    changed = None if before is None else before.change_to(prepared.fingerprint)
    if changed is not None:
        raise BadInput(
            f"the data of {folder.path} has changed since the run: {changed}; restore it, or start a new run"
        )
    return prepared

"""Where a service's model comes from, and when there is a newer one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fedrec.core.population import Population
from fedrec.deploy.node.recommending import NodeModel, latest_finished
from fedrec.errors import BadInput
from fedrec.experiment.open import Result
from fedrec.experiment.recommend import Recommender
from fedrec.runs.files import RESULT, SETTINGS
from fedrec.runs.folder import RunFolder
from fedrec.runs.known import Known
from fedrec.runs.manifest import MANIFEST
from fedrec.runs.origin import newest
from fedrec.serve.model import Model

log = logging.getLogger("fedrec.serve")

Mark = tuple[Any, ...]


class Source(Protocol):
    """Something that a model is opened from."""

    def mark(self) -> Mark:
        """What changes when there is a newer model; cheap."""

    def open(self) -> Model:
        """The newest model, warm; bad input where it cannot be had."""


class RunSource:
    """A finished run's folder; with ``follow``, the last finished update of it that lies beside it."""

    def __init__(self, path: Path, follow: bool = False) -> None:
        self.path, self.follow = path, follow
        self._looked: dict[Mark, bool] = {}
        if not (path / SETTINGS).is_file():
            RunFolder.open(path)  # says what is wrong

    def mark(self) -> Mark:
        run = self._run()
        return run, *_marks(run)

    def open(self) -> Model:
        folder = RunFolder(self._run())  # not cleared of leftovers: they may be files that are being written
        result = Result(folder.result(), folder)
        about = {"method": result.json["method"], "round": result.json["selected_round"], "run": folder.path.name}
        return Model(result.recommender, about).warm()

    def _run(self) -> Path:
        return newest(self.path, self._believed) if self.follow else self.path

    def _believed(self, run: Path, update: Path) -> bool:
        key = (run, update, *_marks(run), *_marks(update))
        if key not in self._looked:
            wrong = _misfit(RunFolder(run), RunFolder(update))
            self._looked[key] = wrong is None
            if wrong is not None:
                log.warning("%s says that it is an update of %s and is not followed: %s", update, run, wrong)
        return self._looked[key]


def _misfit(run: RunFolder, update: RunFolder) -> str | None:
    """Why a folder cannot be the update of a run: an update has its method, its items and its users."""
    try:
        (method, old), (other, new) = ((folder.result()["method"], folder.known()) for folder in (run, update))
    except (BadInput, OSError) as problem:
        return str(problem)
    if method != other:
        return f"its method is {other}, not {method}"
    if old is None or new is None:
        return "it does not say whom and what it knows"
    gone = np.setdiff1d(old.item_ids, new.item_ids)
    if len(gone):
        return f"it has no item {str(gone[0])!r}, one of {len(gone)} that are missing"
    lost = len(np.setdiff1d(old.user_ids, new.user_ids))
    if lost:  # a log names no users
        return f"{lost} of the {len(old.user_ids)} users are missing"
    return None


class NodeSource:
    """A node's folder: its own users, by the last run that came to its end there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mark(self) -> Mark:
        run = latest_finished(self.folder)
        return run, file_mark(self.folder / run / "selected.json")

    def open(self) -> Model:
        model = NodeModel(self.folder)
        names, share = model.names, model.share
        clients = tuple(str(number) for number in range(share.block.n_clients))
        people = Population(share.world, share.block, np.arange(share.block.n_users), clients)
        titles = None if names.titles is None else np.array(names.titles, dtype=object)
        ids = np.array(names.items, dtype=np.str_), np.array(names.users, dtype=np.str_)
        known = Known(people, ids[0], titles, ids[1], share.owned)
        return Model(Recommender(known, model), {"method": model.method.name, "round": model.round}).warm()


def _marks(run: Path) -> list[Mark | None]:
    return [file_mark(run / name) for name in (RESULT, MANIFEST)]


def file_mark(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is another one."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

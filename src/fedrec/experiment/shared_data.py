"""Data that is loaded and split once for all runs of a process that ask for the same."""

from __future__ import annotations

from fedrec.core.population import Population
from fedrec.evaluation.task import Task
from fedrec.experiment.prepare import READING, load_data, split_data
from fedrec.runs.settings import RunSettings

ASKED = ("data", "data_dir", "protocol", "seed", "train_share", "clients", "spread", "copies", "test", *READING)
"""Settings that decide which data a run sees."""


class SharedData:
    """The last run's data, for the next one that wants the same; nothing else is held."""

    def __init__(self) -> None:
        self._asked = ""
        self._made: tuple[Task, Population] | None = None

    def of(self, settings: RunSettings) -> tuple[Task, Population]:
        """What :func:`~fedrec.experiment.prepare.prepare` takes as ``shared``."""
        asked = settings.model_dump_json(include=set(ASKED))
        if self._made is None or asked != self._asked:
            self._made = None  # before the next is loaded: two would be twice the memory
            self._made, self._asked = split_data(load_data(settings), settings), asked
        return self._made

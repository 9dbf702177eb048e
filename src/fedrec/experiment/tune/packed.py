"""Data as it was read, beside the searches: workers on other machines need neither its files nor their readers."""

from __future__ import annotations

import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.population import Population
from fedrec.data.interactions import Interactions
from fedrec.errors import BadInput
from fedrec.evaluation.task import Task
from fedrec.experiment.prepare import load_data, split_data
from fedrec.runs.atomic import keep_file
from fedrec.runs.settings import RunSettings

LEFT_OUT = ("titles", "understood", "notes", "rated_low")
"""What no trial looks at."""


def pack(path: Path, settings: RunSettings) -> None:
    """Write the data of a run, unless it is there."""
    if path.is_file():
        return
    data = load_data(settings)
    arrays = {field.name: getattr(data, field.name) for field in fields(data) if field.name not in LEFT_OUT}
    content: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items() if array is not None}

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # given a name, numpy would put .npz behind it
            np.savez_compressed(file, **content)

    path.parent.mkdir(parents=True, exist_ok=True)
    keep_file(path, write)


def unpack(path: Path, settings: RunSettings) -> tuple[Task, Population]:
    """The data of a run, split by its protocol."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        data = Interactions(**{**content, "name": str(content["name"])})
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise BadInput(f"{path} is damaged; remove it, and start again where the data is") from None
    return split_data(data, settings)

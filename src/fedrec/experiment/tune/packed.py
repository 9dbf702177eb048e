"""Data as it was read, beside the searches: workers on other machines need neither its files nor their readers."""

from __future__ import annotations

import math
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fedrec.core.population import Population
from fedrec.data import limits
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
        with open(path, "rb") as file:
            _look_at(path, file)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                content = {name: archive[name] for name in archive.files}
        data = Interactions(**{**content, "name": str(content["name"])})
    except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise BadInput(f"{path} is damaged; remove it, and start again where the data is") from None
    return split_data(data, settings)


def _look_at(path: Path, file: BinaryIO) -> None:
    """Refuse what would take more memory than a file of its size may, or is no such file, before an array is made."""
    limit, known = limits.unpacked(path.stat().st_size), {field.name for field in fields(Interactions)}
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if sum(part.file_size for part in parts) > limit:
            raise limits.too_large(path, limit)
        names = [part.filename.removesuffix(".npy") for part in parts]
        if len(set(names)) < len(names) or not known.issuperset(names):
            raise ValueError("it holds something else")
        for part in parts:
            with archive.open(part) as one:
                if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("it is packed in another way")
                if np.lib.format.read_magic(one) != (1, 0):
                    raise ValueError("it is of another version")
                shape, _, kind = np.lib.format.read_array_header_1_0(one)
                if not kind.itemsize or one.tell() + math.prod(shape) * kind.itemsize != part.file_size:
                    raise ValueError("an array is not as large as it says")

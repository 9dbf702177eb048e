"""A finished run, read back from its folder."""

from __future__ import annotations

from pathlib import Path

from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.summarise import Result, data_of
from fedrec.runs.folder import RunFolder


def opened(path: Path) -> Result:
    """A finished run, with its selected model."""
    folder = RunFolder.open(path)
    result = folder.result()
    prepared = prepare(folder.settings())
    seen, now = result["data"], data_of(prepared)
    if seen != now:
        raise BadInput(f"the data of {path} has changed since the run ({seen} then, {now} now)")
    prepared.runtime.restore(folder.model(prepared.runtime.expected()))
    return Result(result, prepared, folder)

"""A run's folder: the only place that writes one.

settings.yaml            all that defines the run
rounds.jsonl             one line a round: loss, metrics, seconds, bytes
checkpoint.safetensors   where it stands, while it runs
model.safetensors        state of the selected round, for recommendations
users.parquet            test metrics of every user at the selected round (users.csv where pyarrow is missing)
result.json              the object that --json writes; its presence means the run is finished
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.loop import PerUser, Progress, Record
from fedrec.core.state import flatten, unflatten
from fedrec.errors import BadInput
from fedrec.runs.atomic import clear_leftovers, replace_file, write_text
from fedrec.runs.settings import RunSettings

CHECKPOINT, MODEL, ROUNDS, RESULT, SETTINGS, USERS, USERS_PLAIN = (
    "checkpoint.safetensors",
    "model.safetensors",
    "rounds.jsonl",
    "result.json",
    "settings.yaml",
    "users.parquet",
    "users.csv",
)


class RunFolder:
    """Reads and writes one run's folder. Every file is whole at every moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last_checkpoint = time.monotonic()  # a run of seconds needs none, and all state may be large
        self._checkpoint_took = 0.0

    @classmethod
    def create(cls, path: Path, settings: RunSettings) -> RunFolder:
        """A new folder; one that is already used or cannot be written is bad input."""
        import yaml

        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(f"{path} is already used; choose another --out, or continue it with --resume {path}")
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_text(path / SETTINGS, yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False))
        except OSError as problem:
            raise BadInput(f"cannot write to {path}: {problem.strerror}; choose another --out") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run."""
        if not (path / SETTINGS).is_file():
            raise BadInput(f"{path} is not a run's folder (it has no {SETTINGS}); give one that `fedrec run` made")
        folder = cls(path)
        if os.access(path, os.W_OK):
            clear_leftovers(path)
        return folder

    def settings(self) -> RunSettings:
        import yaml

        return RunSettings(**yaml.safe_load((self.path / SETTINGS).read_text(encoding="utf-8")))

    @property
    def finished(self) -> bool:
        return (self.path / RESULT).is_file()

    def result(self) -> dict[str, Any]:
        if not self.finished:
            raise BadInput(f"{self.path} is not finished; continue it with `fedrec run --resume {self.path}`")
        return json.loads((self.path / RESULT).read_text(encoding="utf-8"))

    def append(self, record: Record) -> None:
        """One more line in the log of rounds."""
        with open(self.path / ROUNDS, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(record.as_dict()) + "\n")

    def records(self) -> list[dict[str, Any]]:
        """The log of rounds, without a line that a kill cut short."""
        path = self.path / ROUNDS
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1] if line]

    def checkpoint_if_due(self, progress: Progress, snapshot: Callable[[], Any], every_seconds: float) -> None:
        """Save where the run stands, if the last time was long enough ago.

        Where all state is large, writing may take longer than a round; it gets a tenth of the time at most.
        """
        began = time.monotonic()
        if began - self._last_checkpoint >= max(every_seconds, 10 * self._checkpoint_took if every_seconds else 0):
            self.checkpoint(progress, snapshot())
            self._last_checkpoint = time.monotonic()
            self._checkpoint_took = self._last_checkpoint - began

    def checkpoint(self, progress: Progress, state: Any) -> None:
        """Save where the run stands."""
        about = {
            "round": progress.round,
            "best_round": progress.best_round,
            "best_value": progress.best_value,
            "judged_since_best": progress.judged_since_best,
            "records": [record.as_dict() for record in progress.records],
        }
        content = {"state": state, "best_state": progress.best_state, "best_per_user": progress.best_per_user}
        self._save(CHECKPOINT, content, about)

    def restore(self, modules: tuple[str, ...] = ()) -> Progress:
        """Where the run stood at its last checkpoint; a fresh start where there is none."""
        if not (self.path / CHECKPOINT).is_file():
            (self.path / ROUNDS).unlink(missing_ok=True)
            return Progress()
        content, about = self._load(CHECKPOINT, modules)
        records = [Record(**{**r, "missing": tuple(r["missing"])}) for r in about["records"]]
        text = "".join(json.dumps(record.as_dict()) + "\n" for record in records)
        write_text(self.path / ROUNDS, text)
        return Progress(
            round=about["round"],
            best_round=about["best_round"],
            best_value=about["best_value"],
            judged_since_best=about["judged_since_best"],
            records=records,
            **content,
        )

    def finish(self, result: dict[str, Any], model: Any, per_user: PerUser | None, user_ids: Any) -> None:
        """Write the selected model, the users' metrics and, last, the result."""
        if model is not None:
            self._save(MODEL, model, {})
        if per_user:
            import pandas as pd

            table = pd.DataFrame({"user": np.asarray(user_ids, dtype=str), **per_user})
            if find_spec("pyarrow"):
                replace_file(self.path / USERS, lambda temporary: table.to_parquet(temporary))
            else:  # a machine that only trains
                replace_file(self.path / USERS_PLAIN, lambda temporary: table.to_csv(temporary, index=False))
        write_text(self.path / RESULT, json.dumps(result, indent=2) + "\n")
        (self.path / CHECKPOINT).unlink(missing_ok=True)

    def model(self, modules: tuple[str, ...] = ()) -> Any:
        """State of the selected round."""
        if not (self.path / MODEL).is_file():
            raise BadInput(f"{self.path} has no saved model; run it without --no-models")
        return self._load(MODEL, modules)[0]

    def per_user(self) -> Any:
        """Test metrics of every user at the selected round, as a table; None where they were not kept."""
        import pandas as pd

        if (self.path / USERS).is_file():
            return pd.read_parquet(self.path / USERS)
        plain = self.path / USERS_PLAIN
        return pd.read_csv(plain, dtype={"user": str}) if plain.is_file() else None

    def _save(self, name: str, content: Any, about: dict[str, Any]) -> None:
        from safetensors.numpy import save_file

        arrays, structure = flatten(content)
        metadata = {"structure": structure, "about": json.dumps(about)}
        replace_file(self.path / name, lambda temporary: save_file(arrays, temporary, metadata=metadata))

    def _load(self, name: str, modules: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
        from safetensors import safe_open

        with safe_open(self.path / name, framework="numpy") as file:
            metadata = file.metadata()
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return unflatten(arrays, metadata["structure"], modules), json.loads(metadata["about"])


def free_folder(base: Path, name: str) -> Path:
    """``base/name``, or with the first free number behind it."""
    path, number = base / name, 2
    while path.exists() and any(path.iterdir()):
        path, number = base / f"{name}-{number}", number + 1
    return path

"""A run's folder: the only place that writes one (its files: :mod:`fedrec.runs.files`).

Files that change while the run goes on carry their own checksums (:mod:`fedrec.runs.sealed`,
:mod:`fedrec.runs.state_file`); those of a finished run are listed in the manifest (:mod:`fedrec.runs.manifest`).
A file is checked before anything is computed from it. A folder of 0.1.0 has no checksums; it is read with a warning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from fedrec.core.disclosed import Disclosed
from fedrec.core.kinds import Parts, fits
from fedrec.core.loop import PerUser, Progress, Record
from fedrec.core.settings import build
from fedrec.core.state import BadState, Expected
from fedrec.data.fingerprint import Fingerprint
from fedrec.errors import BadInput
from fedrec.extras import installed
from fedrec.runs.atomic import clear_leftovers, keep_file, keep_text, private_folder, room_for, writing_to
from fedrec.runs.files import (
    CHECKPOINT,
    DATA,
    JOB,
    KNOWN,
    MODEL,
    RESULT,
    ROUNDS,
    SETTINGS,
    USERS,
    USERS_PLAIN,
)  # fmt: skip
from fedrec.runs.known import STORED, Known, restored
from fedrec.runs.manifest import MANIFEST, Manifest, write_manifest
from fedrec.runs.new_folder import clear_half_made, half_made, leftovers_of, refuse_used
from fedrec.runs.origin import ORIGIN, Origin, read_origin
from fedrec.runs.plain_json import metrics_with_nan, plain_json
from fedrec.runs.result_form import wrong_in
from fedrec.runs.rounds import Log, append_record, have_checksums, read_log, record_of, sync, write_records
from fedrec.runs.sealed import (
    Damaged,
    damaged,
    is_sealed,
    json_object,
    read_sealed_json,
    read_sealed_yaml,
    sealed_json,
    sealed_yaml,
    warn_unsealed,
    whole,
)
from fedrec.runs.settings import RunSettings
from fedrec.runs.state_file import has_checksum, load_state, save_state
from fedrec.runs.users_table import read_users
from fedrec.runs.yaml_file import dump_yaml, parse_yaml

EDITED = "restore it from a copy, or start a new run with other settings"
START_OVER = "restore it from a copy, or remove it: resuming then starts the run over"
RUN_AGAIN = "restore it from a copy, or repeat the run"

DATA_SCHEMA = "fedrec.data/1"
_FINGERPRINT = Parts({"path": str | None, "name": str, "counts": dict[str, int], "parts": dict[str, str]})

_ABOUT = Parts(
    {"round": int, "best_round": int, "best_value": float, "judged_since_best": int, "records": list[dict[str, Any]]}
)
"""What a checkpoint says beside its state."""


class RunFolder:
    """Reads and writes one run's folder. Every file is whole at every moment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last_checkpoint = time.monotonic()  # a run of seconds needs none, and all state may be large
        self._checkpoint_took = 0.0
        self._read_manifest: Manifest | None = None

    @classmethod
    def create(
        cls,
        path: Path,
        settings: RunSettings,
        *,
        private: bool = False,
        origin: Origin | None = None,
        start: Progress | None = None,
        learns_from: tuple[Fingerprint, Path | None] | None = None,
        more: Callable[[Path], None] = lambda path: None,
    ) -> RunFolder:
        """A new folder; one that is already used or cannot be written is bad input.

        It says what the run ``learns_from`` and where that lies; an update, too, its ``origin`` and where it
        ``start``s; ``more`` writes what else it cannot do without. Until all that is written there are no settings.
        What a kill left of a run that was being made there is cleared, so whoever calls this keeps others from it.
        """
        refuse_used(path)
        with writing_to(path, "--out"):
            clear_half_made(path)
            if private:
                private_folder(path)
            path.mkdir(parents=True, exist_ok=True)
            if origin is not None:
                origin.write(path)
            if start is not None:
                cls(path).checkpoint(start, start.state)
            if learns_from is not None:
                cls(path).write_fingerprint(*learns_from)
            more(path)
            text = sealed_yaml(dump_yaml(settings.model_dump(mode="json")))
            keep_text(path / SETTINGS, text, private=private)
            if start is not None and start.records:
                write_records(path / ROUNDS, start.records)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run."""
        if half_made(path):
            raise BadInput(f"{path} holds no run yet: it was killed before it began; begin it again with --out {path}")
        if not (path / SETTINGS).is_file():
            raise BadInput(f"{path} is not a run's folder (it has no {SETTINGS}); give one that `fedrec run` made")
        return cls(path)

    def write_fingerprint(self, found: Fingerprint, path: Path | None) -> None:
        """Say what the run learns from and, where that is a file, where it lies."""
        plain = {"schema": DATA_SCHEMA, "path": None if path is None else str(path), **found.as_dict()}
        keep_text(self.path / DATA, sealed_json(plain, indent=2))

    def fingerprint(self) -> tuple[Fingerprint | None, Path | None]:
        """What the run learnt from and where that lay; None for a folder made before there were fingerprints."""
        path = self.path / DATA
        if not path.is_file():
            if self._manifest is not None and DATA in self._manifest.files:
                raise damaged(path, "it is gone", RUN_AGAIN)
            return None, None
        plain = read_sealed_json(path, EDITED, must=True)
        if plain.pop("schema", None) != DATA_SCHEMA or not fits(plain, _FINGERPRINT):
            raise damaged(path, "it is not a fingerprint of this version", EDITED)
        place = plain.pop("path")
        return Fingerprint(**plain), None if place is None else Path(place)

    def origin(self) -> Origin | None:
        """Which run this one goes on from; None where it began by itself."""
        if self._manifest is not None and ORIGIN in self._manifest.files:
            self._manifest.check(ORIGIN, advice=RUN_AGAIN)
        return read_origin(self.path)

    def settings(self) -> RunSettings:
        path = self.path / SETTINGS
        if self._manifest is not None:
            self._manifest.check(SETTINGS, advice=EDITED)
        return build(RunSettings, parse_yaml(path, self._settings_text()[0]), str(path))

    def _settings_text(self) -> tuple[str, bool]:
        """The settings' text, and whether it has a checksum; one is missed where any other file has one.

        A manifest vouches for settings without one: of a run that an older version began.
        """
        vouched = self.finished and (self.path / MANIFEST).is_file()
        others = any((self.path / name).is_file() for name in (DATA, ORIGIN, MANIFEST)) or is_sealed(self.path / JOB)
        others = others or has_checksum(self.path / CHECKPOINT) or have_checksums(self.path / ROUNDS)
        return read_sealed_yaml(self.path / SETTINGS, EDITED, must=others and not vouched)

    @property
    def finished(self) -> bool:
        return (self.path / RESULT).is_file()

    @property
    def _manifest(self) -> Manifest | None:
        """What the files of a finished run must be; None while it runs, and for a folder of 0.1.0."""
        if not self.finished:
            return None
        if self._read_manifest is None and (self.path / MANIFEST).is_file():
            self._read_manifest = Manifest(self.path)
        if self._read_manifest is not None:
            return self._read_manifest
        if self._settings_text()[1]:  # a folder with checksums has one
            raise Damaged(f"{self.path / MANIFEST} is missing, so its run cannot be checked; {RUN_AGAIN}")
        warn_unsealed(self.path)
        return None

    def result(self) -> dict[str, Any]:
        if not self.finished:
            again = f"fedrec run --resume {quote(str(self.path))}"
            raise BadInput(f"{self.path} is not finished; continue it with `{again}`")
        path = self.path / RESULT
        data = whole(path, RUN_AGAIN)
        if self._manifest is not None:
            self._manifest.check(RESULT, data, RUN_AGAIN)
        found = metrics_with_nan(json_object(path, data, RUN_AGAIN))
        wrong = wrong_in(found)
        if wrong:
            raise damaged(path, f"it does not say {wrong!r} as a result does", RUN_AGAIN)
        return found

    def append(self, record: Record) -> None:
        """One more line in the log of rounds."""
        append_record(self.path / ROUNDS, record)

    def records(self) -> list[dict[str, Any]]:
        """The log of rounds, without a line that a kill cut short."""
        return self.log().records

    def log(self, before: Log = Log()) -> Log:
        """The same, to be read on where it ended ``before``; once the run is over, all of it is checked again."""
        if self._manifest is not None:
            self._manifest.check(ROUNDS)
            before = Log()
        return read_log(self.path / ROUNDS, before)

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
            "judged_since_best": progress.evaluated_since_best,
            "records": [record.as_dict() for record in progress.records],
        }
        if progress.disclosed is not None:
            about["disclosed"] = progress.disclosed.as_dict()
        content = {"state": state, "best_state": progress.best_state, "best_per_user": progress.best_per_user}
        save_state(self.path / CHECKPOINT, content, about)

    def restore(self, expected: Expected = Expected()) -> Progress:
        """Where the run stood at its last checkpoint, to go on from there; a fresh start where there is none.

        What a killed process left half written is removed here and not on opening: whoever only reads a run must not
        take away what its process is writing. ``expected`` is what the runtime's snapshot must be; without it, arrays
        and plain values.
        """
        path = self.path / CHECKPOINT
        self._refuse_lost_result()
        with room_for(self.path):
            if not self.finished:
                (self.path / MANIFEST).unlink(missing_ok=True)  # of an end that never came
            clear_leftovers(self.path)
        self.seal_settings()
        if not path.is_file():
            origin = self.origin()
            if origin is not None and not origin.starts_over:
                raise BadInput(
                    f"{path} is gone, and this update continues from it; repeat it: fedrec update {origin.run}"
                )
            with room_for(self.path / ROUNDS):
                (self.path / ROUNDS).unlink(missing_ok=True)
            return Progress()
        state, best = expected.hint, expected.optional
        whole = Parts({"state": state, "best_state": best, "best_per_user": PerUser | None})
        forms = {f"/{part}{at}": form for part in ("state", "best_state") for at, form in expected.forms.items()}
        content, about = load_state(path, replace(expected, hint=whole, forms=forms), START_OVER)
        try:
            disclosed = Disclosed.of(about.pop("disclosed", None))
            if not fits(about, _ABOUT) or not 0 <= about["best_round"] <= about["round"]:
                raise BadState("it does not say where the run stood")
            records = [record_of(plain) for plain in about.pop("records")]
        except BadState as problem:
            raise damaged(path, str(problem), START_OVER) from None
        write_records(self.path / ROUNDS, records)
        since = about.pop("judged_since_best")  # as files of every version name it
        return Progress(records=records, disclosed=disclosed, evaluated_since_best=since, **about, **content)

    def _refuse_lost_result(self) -> None:
        """A run that was finished is not made again without a word; a kill on the way to the result leaves a trace."""
        came = (self.path / CHECKPOINT).is_file() or any(leftovers_of(self.path, RESULT))
        if (self.path / MANIFEST).is_file() and not self.finished and not came:
            raise damaged(self.path / RESULT, "it is gone", RUN_AGAIN)

    def seal_settings(self) -> None:
        """Give settings of an older version a checksum, before files that have one stand beside them."""
        if not self.finished and not (text := self._settings_text())[1]:
            private = not (self.path / SETTINGS).stat().st_mode & 0o077
            keep_text(self.path / SETTINGS, sealed_yaml(text[0]), private=private)

    def finish(
        self,
        result: dict[str, Any],
        model: Any,
        per_user: PerUser | None,
        user_ids: Any,
        known: tuple[dict[str, Any], dict[str, Any]] | None = None,
    ) -> None:
        """Write the selected model, what it knows of its data (:func:`fedrec.runs.known.stored`), the users' metrics,
        the manifest of all files and, last, the result."""
        if model is not None:
            save_state(self.path / MODEL, model)
        if model is not None and known is not None:
            save_state(self.path / KNOWN, *known)
        if per_user:
            import pandas as pd

            table = pd.DataFrame({"user": np.asarray(user_ids, dtype=str), **per_user})
            if installed("pyarrow"):
                keep_file(self.path / USERS, lambda temporary: temporary.write_bytes(table.to_parquet()))
            else:  # a machine that only trains
                keep_file(self.path / USERS_PLAIN, lambda temporary: table.to_csv(temporary, index=False))
        sync(self.path / ROUNDS)
        text = plain_json(result)
        names = (SETTINGS, DATA, ORIGIN, ROUNDS, MODEL, KNOWN, USERS, USERS_PLAIN)
        final = [name for name in names if (self.path / name).is_file()]

        def write(
            temporary: Path,
        ) -> None:  # a manifest never lies there without a result, or a trace of one
            temporary.write_text(text, encoding="utf-8")
            write_manifest(self.path, final, {RESULT: text})

        try:
            keep_file(self.path / RESULT, write)
        except BaseException:
            if not self.finished:
                (self.path / MANIFEST).unlink(missing_ok=True)
            raise
        self._read_manifest = None
        with room_for(self.path / CHECKPOINT):
            (self.path / CHECKPOINT).unlink(missing_ok=True)

    def model(self, expected: Expected = Expected()) -> Any:
        """State of the selected round."""
        path = self.model_file()
        if self._manifest is not None:
            self._manifest.check(MODEL, advice=RUN_AGAIN)
        return load_state(path, expected, RUN_AGAIN, checked=self._manifest is not None)[0]

    def model_file(self) -> Path:
        """Where the model lies; a run that keeps none is bad input."""
        if (self.path / MODEL).is_file():
            return self.path / MODEL
        if self._manifest is not None and MODEL in self._manifest.files:
            raise damaged(self.path / MODEL, "it is gone", RUN_AGAIN)
        if self.finished and not self.result()["selected_round"]:
            raise BadInput(
                f"{self.path} has no saved model: there was no user to choose a round on; run it on other data"
            )
        raise BadInput(f"{self.path} has no saved model; run it without --no-models")

    def known(self) -> Known | None:
        """What the model knows of its data; None for a folder made before that was kept, or by a server without it."""
        path = self.path / KNOWN
        if not path.is_file():
            if self._manifest is not None and KNOWN in self._manifest.files:
                raise damaged(path, "it is gone", RUN_AGAIN)
            return None
        if self._manifest is not None:
            self._manifest.check(KNOWN, advice=RUN_AGAIN)
        value, about = load_state(path, STORED, RUN_AGAIN, checked=self._manifest is not None)
        try:
            return restored(value, about)
        except BadState as problem:
            raise damaged(path, str(problem), RUN_AGAIN) from None

    def per_user(self) -> Any:
        """Test metrics of every user at the selected round, as a table; None where they were not kept."""
        name = USERS if (self.path / USERS).is_file() else USERS_PLAIN
        path = self.path / name
        if not path.is_file():
            return None
        if self._manifest is not None:
            self._manifest.check(name, advice=RUN_AGAIN)
        try:
            return read_users(path)
        except BadState as problem:
            raise damaged(path, str(problem), RUN_AGAIN) from None

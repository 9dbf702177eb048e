"""Under which catalogue and filters a node takes part with its owner's own data: those of its first run.

Whom a node hosts, and whether its data fits a catalogue at all, depends on that data. A server that met it again and
again, each time with an item less or a filter more, would learn who has what, without any round and at no charge. So
the terms of the first meeting are kept, whatever came of it: a later catalogue must hold all of theirs, and the filters
must be the same. Where the data did not fit, nothing else is tried until the owner has changed the data, or has removed
the file to allow other terms.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedrec.deploy.processes import one_at_a_time
from fedrec.errors import BadInput
from fedrec.privacy.ledger import Withheld
from fedrec.runs.atomic import private_folder, write_text
from fedrec.runs.sealed import read_sealed_json, sealed_json
from fedrec.runs.settings import RunSettings

log = logging.getLogger("fedrec.deploy")

FILE = "terms.json"
FILTERS = ("protocol", "min_interactions", "min_rating")


class Terms:
    """The terms of one node."""

    def __init__(self, folder: Path, data: str) -> None:
        self.path, self.data = folder / FILE, Path(data)

    @contextmanager
    def held(self, settings: RunSettings, catalogue: tuple[str, ...]) -> Iterator[None]:
        """Prepare data inside; refused where these are other terms than the node's, or where its data did not fit."""
        private_folder(self.path.parent, mark="flower")
        with one_at_a_time(self.path.with_name(".terms.lock")):
            asked = {name: getattr(settings, name) for name in FILTERS} | {"catalogue": list(catalogue)}
            known = read_sealed_json(self.path) if self.path.is_file() else None
            if known is not None:
                self._refuse_other(known, asked)
            if known is None:
                self._write(asked)  # before anything is known of the data
            try:
                yield
            except BadInput as problem:
                if known is None or known.get("unfit") is not None:
                    log.warning("%s; mend the data, or remove %s to allow other terms", problem, self.path)
                    self._write((known or asked) | {"unfit": self._mark()})
                raise
            self._write(asked)

    def _refuse_other(self, known: dict[str, Any], asked: dict[str, Any]) -> None:
        other = [name for name in FILTERS if known[name] != asked[name]]
        lacking = set(known["catalogue"]) - set(asked["catalogue"])
        if other or lacking:
            what = (
                "another " + " and ".join(name.replace("_", "-") for name in other) if other else "a smaller catalogue"
            )
            log.warning("refused %s; to allow other terms than those of the first run, remove %s", what, self.path)
            raise Withheld(f"this node keeps to the terms of its first run, and this one has {what}; ask its owner")
        if known.get("unfit") is not None and known["unfit"] == self._mark():
            log.warning("its data did not fit the first run; mend it, or remove %s", self.path)
            raise Withheld("this node could not take part in its first run; its owner has to look at it")

    def _mark(self) -> list[int]:
        """What changes when the owner changes the data: sizes and times of its file, or of all files in its folder."""
        try:
            files = [path for path in self.data.rglob("*") if path.is_file()] if self.data.is_dir() else [self.data]
            found = [path.stat() for path in files]
        except OSError:
            return [0, 0]
        return [sum(one.st_size for one in found), max((one.st_mtime_ns for one in found), default=0)]

    def _write(self, terms: dict[str, Any]) -> None:
        write_text(self.path, sealed_json(terms), private=True)

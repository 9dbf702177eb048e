"""A federated run's job, beside its settings in the run's folder: what server and starter agree on.

federation.json   run id, rules, where data is, the public catalogue's file; then the roster
served.json       the server's last word: done, or why not
catalogue.txt     the public item ids in order, where nodes bring their own files
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fedrec.deploy.roster import Roster
from fedrec.deploy.rules import Rules
from fedrec.runs.atomic import write_text

JOB, SERVED, CATALOGUE = "federation.json", "served.json", "catalogue.txt"


@dataclass(frozen=True)
class Job:
    """What a federated run is, beside its settings."""

    rules: Rules
    n_items: int
    data_name: str
    own_data: bool
    """Whether nodes bring their own files, or host shares of a named data set."""
    catalogue: tuple[str, ...] = ()
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    roster: Roster | None = None

    def write(self, folder: Path) -> None:
        plain = {
            "run": self.run,
            "rules": self.rules.model_dump(mode="json"),
            "n_items": self.n_items,
            "data_name": self.data_name,
            "own_data": self.own_data,
            "roster": None if self.roster is None else self.roster.as_dict(),
        }
        if self.catalogue:
            write_text(folder / CATALOGUE, "\n".join(self.catalogue) + "\n")
        write_text(folder / JOB, json.dumps(plain) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Job:
        plain = json.loads((folder / JOB).read_text(encoding="utf-8"))
        listed = folder / CATALOGUE
        catalogue = tuple(listed.read_text(encoding="utf-8").split("\n")[:-1]) if listed.is_file() else ()
        return cls(
            rules=Rules(**plain["rules"]),
            n_items=int(plain["n_items"]),
            data_name=plain["data_name"],
            own_data=bool(plain["own_data"]),
            catalogue=catalogue,
            run=plain["run"],
            roster=None if plain["roster"] is None else Roster.from_dict(plain["roster"]),
        )

    def with_roster(self, roster: Roster) -> Job:
        return replace(self, roster=roster)


def write_served(folder: Path, **said: Any) -> None:
    write_text(folder / SERVED, json.dumps(said) + "\n")


def read_served(folder: Path) -> dict[str, Any] | None:
    path = folder / SERVED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

"""A federated run's job, beside its settings in the run's folder: what server and starter agree on.

federation.json   run id, rules, where data is, the public catalogue's checksum; then the roster
served.json       the server's last word: done, or why not
attempts.json     how often the newest secure sums were begun, while the run goes on: members join no attempt twice
catalogue.txt     the public item ids in order, where nodes bring their own files

All are private to the server's user. The JSON files carry their own checksums; the catalogue's is in federation.json.
Both of these are written before the settings, so a folder that is a run's has them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.settings import build
from fedrec.data.interactions import numeric_order
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.rules import Rules
from fedrec.errors import BadInput
from fedrec.runs.atomic import write_text
from fedrec.runs.files import CATALOGUE, JOB
from fedrec.runs.sealed import damaged, digest, read_sealed_json, sealed_json, whole

SCHEMA, SERVED, ATTEMPTS = "fedrec.federation/1", "served.json", "attempts.json"
ADVICE = "restore it from a copy, or start a new run"


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
    members: dict[str, Any] = field(default_factory=dict)
    """Who takes part in secure sums (:mod:`fedrec.deploy.members`); empty where there are none."""

    def write(self, folder: Path) -> None:
        plain = {
            "schema": SCHEMA,
            "run": self.run,
            "rules": self.rules.model_dump(mode="json"),
            "n_items": self.n_items,
            "data_name": self.data_name,
            "own_data": self.own_data,
            "roster": None if self.roster is None else self.roster.as_dict(),
        }
        if self.members:
            plain["members"] = self.members
        if self.catalogue:
            text = "\n".join(self.catalogue) + "\n"
            plain["catalogue"] = digest(text.encode())
        write_text(folder / JOB, sealed_json(plain), private=True)
        if self.catalogue:
            write_text(folder / CATALOGUE, text, private=True)

    @classmethod
    def read(cls, folder: Path) -> Job:
        path = folder / JOB
        if not path.is_file():
            raise BadInput(f"{folder} is not the folder of a federated run (it has no {JOB})")
        plain = read_sealed_json(path, ADVICE)
        catalogue = _catalogue(folder, plain.get("catalogue"))
        try:
            return cls(
                rules=build(Rules, plain["rules"], str(path)),
                n_items=int(plain["n_items"]),
                data_name=str(plain["data_name"]),
                own_data=bool(plain["own_data"]),
                catalogue=catalogue,
                run=str(plain["run"]),
                roster=None if plain["roster"] is None else Roster.from_dict(plain["roster"]),
                members=dict(plain.get("members", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise damaged(path, f"it is not a job ({type(problem).__name__}: {problem})", ADVICE) from None


def read_catalogue(path: Path) -> tuple[str, ...]:
    """Item ids, one a line; ordered as data is (by number where all are whole numbers, else by text).

    So the numbering does not depend on the file's order, and equals that of the same items read as data.
    """
    if not path.is_file():
        raise BadInput(f"{path} is not a file; give a text file with one item id a line")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").split("\n")]
    listed = [line for line in lines if line]
    if len(listed) < 2:
        raise BadInput(f"{path} lists {len(listed)} items; a catalogue has at least 2, one id per line")
    if len(set(listed)) < len(listed):
        twice = next(item for item in listed if listed.count(item) > 1)
        raise BadInput(f"{path} lists {twice!r} twice; list each item once")
    ids = np.array(listed, dtype=np.str_)
    whole = all(item.lstrip("-").isdecimal() for item in listed)
    order = numeric_order(ids) if whole else np.argsort(ids, kind="stable")
    return tuple(str(item) for item in ids[order])


def _catalogue(folder: Path, checksum: str | None) -> tuple[str, ...]:
    """The item ids, if they are those of the job; a job of 0.1.0 has no checksum of them."""
    path = folder / CATALOGUE
    if not path.is_file():
        if checksum is not None:
            raise BadInput(f"{path} is missing; {ADVICE}")
        return ()
    data = whole(path, ADVICE)
    if checksum is not None and digest(data) != checksum:
        raise damaged(path, f"its checksum is not the one in {JOB}", ADVICE)
    return tuple(data.decode().split("\n")[:-1])


def write_attempts(folder: Path, begun: Mapping[int, int]) -> None:
    """How often each sum was begun; the newest will do."""
    newest = {str(number): begun[number] for number in sorted(begun)[-4:]}
    write_text(folder / ATTEMPTS, sealed_json({"begun": newest}), private=True)


def read_attempts(folder: Path) -> dict[int, int]:
    try:
        found = read_sealed_json(folder / ATTEMPTS, "remove it and resume the run")["begun"]
        return {int(number): int(count) for number, count in found.items()}
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise damaged(folder / ATTEMPTS, "it does not count attempts", "remove it and resume the run") from None


def write_served(folder: Path, **said: Any) -> None:
    write_text(folder / SERVED, sealed_json(said), private=True)


def read_served(folder: Path) -> dict[str, Any] | None:
    try:
        return read_sealed_json(folder / SERVED, "remove it and resume the run")
    except FileNotFoundError:
        return None

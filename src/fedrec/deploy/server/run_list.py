"""Which runs a server was given, newest last; ``runs.json`` in the server's folder."""

from __future__ import annotations

import time
from pathlib import Path

from fedrec.deploy.processes import one_at_a_time
from fedrec.deploy.server.pulse import alive
from fedrec.runs.atomic import write_text
from fedrec.runs.sealed import read_sealed_json, sealed_json

LIST = "runs.json"


def remember(home: Path, folder: Path) -> None:
    """Put a run at the end of the list."""
    with one_at_a_time(home / f".{LIST}.lock"):
        known = [entry for entry in _read(home) if entry["folder"] != str(folder.resolve())]
        now = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
        text = sealed_json({"runs": [*known, {"folder": str(folder.resolve()), "given": now}]}, indent=1)
        write_text(home / LIST, text, private=True)


def runs(home: Path) -> list[tuple[Path, str]]:
    """Folders of the runs that are still there, and when each was given to the server last."""
    found = [(Path(entry["folder"]), str(entry["given"])) for entry in _read(home)]
    return [(folder, given) for folder, given in found if folder.is_dir()]


def going_on(home: Path) -> Path | None:
    """The run that the server carries out now."""
    return next((folder for folder, _ in runs(home) if alive(folder)), None)


def _read(home: Path) -> list[dict[str, str]]:
    try:
        return list(read_sealed_json(home / LIST, "remove it: it is only a list")["runs"])
    except FileNotFoundError:
        return []

"""What an operator asks of a running federation: its runs, its nodes, its log; and how a run is ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from fedrec.deploy.admission import Admission, fingerprint
from fedrec.deploy.last_words import without_codes
from fedrec.deploy.server.presence import last_seen
from fedrec.deploy.server.pulse import SILENT, STOP, alive, duration, state_of
from fedrec.deploy.server.run_list import going_on, runs
from fedrec.errors import BadInput
from fedrec.runs.folder import RunFolder

ONLINE = 30.0
"""Seconds since the last call within which a node counts as connected; it calls several times a second."""
LOG = "superlink.log"
"""The server's log, in its folder."""


def check_state(state: Path) -> Path:
    """A server's folder, or one clear line."""
    if not (state / "config.toml").is_file():
        raise BadInput(
            f"{state} is not a server's folder; start it with `fedrec deploy server --state {quote(str(state))}`"
        )
    return state.resolve()


def list_runs(state: Path) -> list[str]:
    """A line for each run that this server was given, newest last."""
    lines = []
    for folder, given in runs(check_state(state)):
        try:
            run = RunFolder.open(folder)
            settings = run.settings()
            where = f"{settings.method}, round {len(run.records())} of {settings.rounds}, {state_of(folder)}"
        except BadInput as problem:  # one damaged folder does not hide the others
            where = str(problem)
        lines.append(f"{folder}  given {given}  {where}")
    return lines or ["no runs yet"]


def list_nodes(state: Path) -> list[str]:
    """A line for each admitted node: its key, and when it was last heard of."""
    home = check_state(state)
    seen, lines = last_seen(home), []
    for name, key in sorted(Admission(home).nodes().items()):
        when = seen.get(fingerprint(key))
        if when is None:
            heard = "never heard of"
        else:
            quiet = max(0.0, time.time() - when)
            heard = "connected" if quiet < ONLINE else f"last heard of {duration(quiet)} ago"
        lines.append(f"{name}  key {fingerprint(key)}  {heard}")
    return lines or ["no nodes admitted; `fedrec deploy register NAME.pub` admits one"]


def stop_run(state: Path, folder: Path | None, patience: float = 60.0) -> Path:
    """End a run, by default the one that goes on. Its folder stays, and it can be resumed."""
    home = check_state(state)
    found = folder or going_on(home)
    if found is None or not alive(found):
        what = "no run goes on" if folder is None else f"{folder} does not go on"
        raise BadInput(f"{what}; `fedrec deploy list --state {quote(str(state))}` shows all runs")
    (found / STOP).touch()
    end = time.monotonic() + max(patience, SILENT)
    while alive(found):
        if time.monotonic() > end:
            raise RuntimeError(f"{found} does not end; its server's log is {home / LOG}")
        time.sleep(0.2)
    (found / STOP).unlink(missing_ok=True)
    return found


def log_lines(state: Path, last: int, follow: bool) -> Iterator[str]:
    """The end of the server's log; with ``follow``, also what is written from now on."""
    path = check_state(state) / LOG
    if not path.is_file():
        raise BadInput(f"{path} is not there; the server has not been started yet")
    with open(path, encoding="utf-8", errors="replace") as handle:
        yield from (without_codes(line.rstrip("\n")) for line in deque(handle, maxlen=last))
        line = ""
        while follow:
            line += handle.readline()
            if line.endswith("\n"):
                yield without_codes(line.rstrip("\n"))
                line = ""
            else:
                time.sleep(0.3)

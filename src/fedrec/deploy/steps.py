"""The steps of a deployment on separate machines: server, registration, node, run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from fedrec.core.loop import Progress, Record
from fedrec.deploy.admission import Admission, check_name, check_private_key
from fedrec.deploy.flower.commands import NODE, Cluster, ServerFiles, Value, node_command, register, run_command
from fedrec.deploy.flower.knocking import turned_away
from fedrec.deploy.flower.tasks import Link
from fedrec.deploy.members import read_members, read_sums_key
from fedrec.deploy.node.news import News
from fedrec.deploy.node.share import refuse_global
from fedrec.deploy.operating import check_state
from fedrec.deploy.ports import check_place, free_ports
from fedrec.deploy.processes import Crew, StartFailed, apart
from fedrec.deploy.server.job import SERVED, Job, read_catalogue, read_served
from fedrec.deploy.server.pulse import ENDED, SILENT, alive, state_of
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.run_list import going_on, remember
from fedrec.deploy.watching import RunFailed, Watch
from fedrec.errors import BadInput
from fedrec.evaluation.headline import headline
from fedrec.interrupts import terminable
from fedrec.privacy.ledger import OwnerPolicy
from fedrec.runs.alone import alone
from fedrec.runs.atomic import private_folder, writing_to
from fedrec.runs.folder import RunFolder
from fedrec.runs.new_folder import refuse_used
from fedrec.runs.settings import RunSettings
from fedrec.secure.identity import public_bytes

Say = Callable[[str], None]

REFUSED = 305
"""What a SuperNode says when it is refused: not registered, or its predecessor is not yet missed."""


STARTED = "Successfully started run"
"""What Flower's command says once the server has a run."""


def server(state: Path, keys: Path, host: str, port: int, say: Say) -> None:
    """Run the server in the foreground until it is interrupted."""
    files = ServerFiles.below(keys.resolve())
    for file in (files.ca, files.certificate, files.key):
        if not file.is_file():
            make = f"fedrec deploy keys {quote(str(keys))} --host NAME"
            raise BadInput(f"{keys} has no {file.name}; make it with `{make}`")
    home = state.resolve()
    check_place(host, port)
    with writing_to(state, "--state"):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    # a second server would write its own secrets over those that the first one's processes were started with
    with alone(home, "--state"), terminable(), Cluster(home, port, files, host=host) as cluster:
        cluster.start_link(home / "state.db")
        crew = cluster.crew
        say(f"server ready on {host}:{port} for admitted nodes; its log is {crew.log('superlink')}")
        crew.members["superlink"].wait()
        raise StartFailed(f"the server stopped: {crew.last_words('superlink')}; its log is {crew.log('superlink')}")


def admit(state: Path, public_key: Path, name: str | None = None) -> str:
    """Admit a node by its public key, with the server that runs on this machine; returns its name."""
    return register(check_state(state), public_key, name)


def revoke(state: Path, name: str) -> None:
    """Take a node's key off the list: it is out from its next call, and from the next round, on."""
    Admission(check_state(state)).revoke(name)


def node(
    name: str,
    data: Path,
    folder: Path,
    server_address: str,
    ca: Path,
    key: Path,
    port: int | None,
    say: Say,
    patience: float = 90.0,
    secure: Mapping[str, Value] | None = None,
    policy: OwnerPolicy = OwnerPolicy(),
) -> None:
    """Run a node in the foreground until it is interrupted; right after a crash, wait to be let in again."""
    check_name(name)
    for file, what in ((ca, "the server's ca.crt"), (key, "the node's private key")):
        if not file.is_file():
            raise BadInput(f"{file} is not a file; give {what}")
    if not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}", server_address):
        raise BadInput(f"--server {server_address!r} is not HOST:PORT; write it as server.example.org:8000")
    check_private_key(key)
    users, interactions = apart(counted)(data)  # bad data is known now, not in the first round
    home = folder.resolve() / "flower"
    with writing_to(folder, "--folder"):
        private_folder(folder)
        private_folder(home)
    limits = {name: repr(value) for name, value in asdict(policy).items()}
    own = {"folder": str(folder.resolve()), "data": str(data.resolve()), **limits, **(secure or {})}
    link, port = Link(server_address, ca.resolve()), port or free_ports(1)[0]
    with alone(home, "--folder"), terminable(), Crew(home) as crew:
        command = node_command(home / "node.toml", name, own, link, port, key.resolve(), NODE)
        say(f"{name}: {users} users, {interactions} interactions; connecting to {server_address}")
        end = time.monotonic() + patience
        while True:
            news = News(crew.log("supernode"), lambda line: say(f"{name}: {line}"))
            member = crew.start("supernode", command)
            while (status := member.poll()) is None:
                news.look()
                time.sleep(0.3)
            news.look()
            said = crew.said("supernode")
            # Flower says 305, or nothing where the door turns the node away; a wrong certificate stays wrong
            refused = "handshake" not in said and (
                f"Exit Code: {REFUSED}" in said or turned_away(server_address, ca.resolve(), key.resolve())
            )
            if not refused:
                words = f"{crew.last_words('supernode')}; its log is {crew.log('supernode')}"
                raise StartFailed(f"the node stopped with status {status}: {words}")
            if time.monotonic() > end:
                raise StartFailed("the server does not let this node in: its key is not registered, or was revoked")
            say("the server does not let this node in (not registered, or still counted as online): trying again")
            time.sleep(5.0)


def counted(data: Path) -> tuple[int, int]:
    """Users and interactions of a node's data; bad input where it cannot be read."""
    from fedrec.data.load import load

    found = load(str(data))
    return found.n_users, len(found)


def secure_options(
    members: Path | None, sums_key: Path, name: str, least: int, colluding: float
) -> dict[str, Value] | None:
    """A node's part in secure sums, as it is configured; bad files are known before the node starts."""
    if members is None:
        return None
    known, key = read_members(members), read_sums_key(sums_key)
    if known.get(name, {}).get("key") != public_bytes(key).hex():
        raise BadInput(f"{members} has another key for {name!r} than {sums_key}, or none; make it again")
    if least < 3 or not 0 <= colluding < 1:
        raise BadInput(f"cohorts of {least}, of which {colluding:g} collude; give at least 3, and a share below 1")
    return {
        "members": str(members.resolve()),
        "sums-key": str(sums_key.resolve()),
        "secure-least": least,
        "secure-colluding": colluding,
    }


def create_run(settings: RunSettings, items: Path, rules: Rules, out: Path, members: Path | None = None) -> RunFolder:
    """The folder of a new run over nodes with their own data."""
    refuse_global(settings)
    if settings.secure != (members is not None):
        raise BadInput("--secure and --members FILE belong together: give both, or neither")
    known = {} if members is None else read_members(members)
    catalogue = read_catalogue(items)
    job = Job(rules, len(catalogue), settings.data, own_data=True, catalogue=catalogue, members=known)
    refuse_used(out)
    with alone(out):
        return RunFolder.create(out, settings, private=True, more=job.write)


def run(
    state: Path, folder: RunFolder, on_round: Callable[[Record, Progress], None] | None, say: Say = lambda line: None
) -> dict[str, Any]:
    """Have the server carry a run out (from its last round on), and wait for its result.

    A run that goes on already is only followed. An interrupt ends the waiting, not the run.
    """
    home = check_state(state)
    if folder.finished:
        return folder.result()
    follows, other = alive(folder.path), going_on(home)
    if follows:
        say("this run goes on already: following it")
    elif other is not None:
        say(f"waiting for {other} to end: one run at a time (`fedrec deploy stop --state {quote(str(state))}` ends it)")
    watch = Watch(folder, on_round)
    with terminable(), Crew(home) as crew:
        try:
            if not follows:
                (folder.path / SERVED).unlink(missing_ok=True)
                remember(home, folder.path)
                crew.start("run", run_command(home, folder.path))
            over = _Ending(home, folder.path, crew)
            while not over():
                watch.look()
                time.sleep(0.5)
        except KeyboardInterrupt:
            say(f"the run goes on without this command; follow it: fedrec deploy status {quote(str(folder.path))}")
            say(f"end it: fedrec deploy stop {quote(str(folder.path))} --state {quote(str(state))}")
            raise
        watch.look()
        said = read_served(folder.path) or {}
        if not said.get("done"):
            stopped = said.get("state") == "stopped"
            words = f"the run ended: {crew.last_words('run')}; the server's log is {crew.log('superlink')}"
            ended = "the run was stopped" if stopped else words
            raise RunFailed(said.get("reason") or ended)
    return folder.result()


@dataclass
class _Ending:
    """Whether a run has ended: it says so, or nobody carries it out any more.

    Flower's command that started it may end before it (its stream of logs breaks under load): that says nothing.
    """

    home: Path
    folder: Path
    crew: Crew
    quiet_since: float | None = None

    def __call__(self) -> bool:
        said, member = (read_served(self.folder) or {}).get("state"), self.crew.members.get("run")
        if said in ENDED:
            return True
        if member is None:
            return not alive(self.folder)
        if member.poll() is None or going_on(self.home) is not None:  # this one, or the one that it waits for
            return False
        if said is not None or STARTED not in self.crew.said("run"):
            return True
        self.quiet_since = self.quiet_since or time.monotonic()
        return time.monotonic() - self.quiet_since > 4 * SILENT


def status(folder: RunFolder) -> list[str]:
    """Where a run stands, in a few lines."""
    served, records, settings = read_served(folder.path), folder.records(), folder.settings()
    said, state = served or {}, state_of(folder.path)
    if served is None and settings.runtime != "flower":
        state = "a simulation, " + ("done" if folder.finished else "running or interrupted")
    lines = [f"{folder.path}: {state}, round {len(records)} of {settings.rounds}"]
    if said.get("reason"):
        lines.append(f"  {said['reason']}")
    for record in records[-3:]:
        shown = f"  valid {headline(record['valid'])}" if record["valid"] else ""
        lines.append(f"  round {record['round']}  loss {record['loss']:.4f}{shown}")
        lines += [f"    missing: {who}" for who in record["missing"]]
    return lines

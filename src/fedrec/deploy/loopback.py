"""``fedrec run --runtime flower``: a whole federation on this machine, over real sockets on loopback.

The rounds run inside Flower's ServerApp, on nodes that each host a share of the data's clients; this process
starts all that, watches, stops it, and collects the outcome as an in-process run leaves it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.loop import PerUser, Progress
from fedrec.core.messages import concatenate
from fedrec.core.population import Population
from fedrec.core.settings import build
from fedrec.core.state import Expected
from fedrec.deploy.flower.commands import Cluster
from fedrec.deploy.members import FILE, collect_members, make_sums_key, read_members
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions, refuse_whole_users
from fedrec.deploy.node.worker import config_of
from fedrec.deploy.ports import free_ports
from fedrec.deploy.server.federation import snapshot_of
from fedrec.deploy.server.job import SERVED, Job, read_served
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.watching import OnRound, RunFailed, Watch
from fedrec.errors import BadInput
from fedrec.evaluation.task import Task
from fedrec.interrupts import terminable
from fedrec.privacy.card import PrivacyCard
from fedrec.runs.atomic import private_folder
from fedrec.runs.files import JOB
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings
from fedrec.simulate.runtime import Simulator

NODES = "nodes"
"""The nodes' own folders, below the run's folder until it is finished."""


class Loopback(Simulator):
    """Runs rounds over Flower; evaluated and restored models are those of the in-process runtime."""

    def __init__(self, method: Any, people: Population, task: Task, seed: int, settings: RunSettings) -> None:
        refuse_whole_users(settings)
        if settings.nodes > people.world.n_clients:
            raise BadInput(
                f"{settings.nodes} nodes for {people.world.n_clients} clients; a node hosts at least one client"
            )
        if settings.secure and settings.secure_by == "nodes" and settings.nodes < settings.secure_least:
            raise BadInput(
                f"a secure sum of {settings.nodes} nodes; give --nodes {settings.secure_least} or more, "
                "or --secure-by clients"
            )
        super().__init__(
            method, people, task, seed, memory_mb=settings.memory_mb, evaluate_users=settings.evaluate_users
        )
        self.settings = settings

    def carry_out(self, folder: RunFolder | None, on_round: OnRound | None) -> Progress:
        """From where the folder stands to the end of the run; returns what an in-process run ends with."""
        with tempfile.TemporaryDirectory(prefix="fedrec-flower-") as temporary:
            home = Path(temporary)
            if folder is None:
                folder = RunFolder.create(home / "run", self.settings)
            self._federate(home / "flwr", folder, on_round)
            return self._collect(folder)

    def node_options(self, folder: RunFolder) -> list[NodeOptions]:
        chosen, place = self.settings, folder.path / NODES
        names = [f"node{number:0{len(str(chosen.nodes - 1))}d}" for number in range(chosen.nodes)]
        common: dict[str, Any] = {
            "hosted": chosen.data,
            "parts": chosen.nodes,
            "data_dir": chosen.data_dir,
            "device": chosen.device,
            "memory_mb": chosen.memory_mb,
            "repeatable": True,
            "secure_least": chosen.secure_least,
            "secure_colluding": chosen.secure_colluding,
        }
        made = [NodeOptions(name, place / name, part=part, **common) for part, name in enumerate(names)]
        if not chosen.secure:
            return made
        return [replace(one, members=place / FILE, sums_key=one.folder / f"{one.name}.sums") for one in made]

    def _federate(self, home: Path, folder: RunFolder, on_round: OnRound | None) -> None:
        nodes = self.node_options(folder)
        rules = build(Rules, {"nodes": len(nodes)}, "federation")
        if not (folder.path / JOB).is_file():
            members = self._make_members(folder) if self.settings.secure else {}
            world = self.people.world
            Job(rules, world.n_items, world.name, own_data=False, members=members).write(folder.path)
        (folder.path / SERVED).unlink(missing_ok=True)
        link_port, *ports = free_ports(1 + len(nodes))
        with terminable(), Cluster(home, link_port) as cluster:
            cluster.start_link()
            for options, port in zip(nodes, ports, strict=True):
                cluster.start_node(options.name, port, config_of(options))
            run = cluster.start_run(folder.path)
            watch = Watch(folder, on_round)
            while run.poll() is None and not (read_served(folder.path) or {}).get("done"):
                watch.look()
                stopped = [n for n, member in cluster.crew.members.items() if n != "run" and member.poll() is not None]
                if stopped:
                    raise RunFailed(f"{stopped[0]} stopped: {cluster.crew.last_words(stopped[0])}")
                time.sleep(0.2)
            watch.look()
            said = read_served(folder.path) or {}
            if not said.get("done"):
                raise RunFailed(said.get("reason") or f"the run stopped: {cluster.crew.last_words('run')}")

    def expected_of_server(self) -> Expected:
        """What the server's checkpoint must be: it has no private state."""
        return snapshot_of(self.server)

    def _make_members(self, folder: RunFolder) -> dict[str, Any]:
        """Keys for secure sums; here this process is everybody's operator."""
        place, count = folder.path / NODES, self.people.world.n_clients
        public = []
        for options in self.node_options(folder):
            private_folder(options.folder)
            public.append(make_sums_key(options.folder, options.name, count)[1])
        collect_members(public, place / FILE)
        return read_members(place / FILE)

    def _collect(self, folder: RunFolder) -> Progress:
        """The server's progress, with the nodes' private state and users' metrics beside it.

        Only here, where all nodes are this machine's own, can these be put together.
        """
        said = read_served(folder.path) or {}
        self.stated = PrivacyCard(**{**said["card"], "not_covered": tuple(said["card"]["not_covered"])})
        progress = folder.restore(self.expected_of_server())
        job = Job.read(folder.path)
        nodes = [Node(options, job.run) for options in self.node_options(folder)]
        if progress.best_state is not None:
            name = f"judged-{progress.best_round}.safetensors"
            private = concatenate([node.private(name) for node in nodes if node.store.has(name)])
            progress.best_state = {"server": progress.best_state["server"], "private": private}
        progress.best_per_user = self._per_user(nodes, progress.best_round)
        return progress

    def clear(self, folder: RunFolder) -> None:
        """Remove what only the federation needs, when the result is there: until then, the run may have to go on."""
        shutil.rmtree(folder.path / NODES, ignore_errors=True)
        for name in (SERVED, JOB):
            (folder.path / name).unlink(missing_ok=True)

    def _per_user(self, nodes: list[Node], number: int) -> PerUser | None:
        """Test values of each user in the data's own order."""
        name = f"judged-{number}.users"
        if not all(node.store.has(name) for node in nodes):
            return None
        parts = [node.store.read(name, PerUser)[0] for node in nodes]
        back = np.empty_like(self.people.users)
        back[self.people.users] = np.arange(len(back))
        return {metric: np.concatenate([part[metric] for part in parts])[back] for metric in parts[0]}

"""``fedrec deploy try``: a whole federation on this machine, with keys, TLS, admitted nodes and their own files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.settings import build
from fedrec.data.load import load
from fedrec.deploy import steps
from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.flower.commands import Cluster, ServerFiles, register
from fedrec.deploy.node.recommending import recommend
from fedrec.deploy.ports import free_ports
from fedrec.deploy.server.presence import last_seen
from fedrec.deploy.server.rules import Rules
from fedrec.errors import BadInput
from fedrec.interrupts import terminable
from fedrec.runs.recommendations import Recommendation
from fedrec.runs.settings import RunSettings
from fedrec.threads import thread_count


def try_out(
    folder: Path, chosen: RunSettings, data: str, on_round: Any, say: Callable[[str], None]
) -> tuple[str, list[Recommendation]]:
    """Cut data into nodes' files, federate them over real sockets, and recommend on the first node."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty; give a new folder with --out")
    folder = folder.resolve()  # Flower takes no relative paths
    nodes = chosen.nodes
    files = cut(data, nodes, folder)
    names = list(files)
    make_server(folder / "certificates", ["127.0.0.1"])
    for name in names:
        make_node(folder / "keys", name)
    port, *ports = free_ports(1 + nodes)
    home = folder / "server"
    rules = build(Rules, {"nodes": nodes, "wait": 120.0 + 30.0 * nodes}, "deploy try")  # all start at once
    with terminable(), Cluster(home, port, ServerFiles.below(folder / "certificates")) as cluster:
        cluster.start_link(home / "state.db")
        say(f"server on 127.0.0.1:{port}, its folder {home}")
        for name, own_port in zip(names, ports, strict=True):
            register(home, folder / "keys" / f"{name}.pub")
            _until_few_are_starting(home, len(cluster.nodes))
            own = {"folder": str((folder / name).resolve()), "data": str(files[name].resolve())}
            cluster.start_node(name, own_port, own, folder / "keys" / name)
            say(f"{name}: admitted and started")
        steps.run(home, steps.create_run(chosen, folder / "items.txt", rules, folder / "run"), on_round, say)
    user = str(load(str(files[names[0]])).user_ids[0])
    return f"{names[0]}, user {user}", recommend(folder / names[0], user)


def _until_few_are_starting(home: Path, started: int, patience: float = 60.0) -> None:
    """Starting is the hardest work of a node's life: all at once, they would keep the server from answering."""
    end = time.monotonic() + patience
    while started - len(last_seen(home)) >= 2 * thread_count() and time.monotonic() < end:
        time.sleep(0.2)


def cut(data: str, nodes: int, folder: Path) -> dict[str, Path]:
    """A data set's users dealt out to nodes, a CSV file each, and the public catalogue beside them."""
    found = load(data)
    if found.n_users < nodes:
        raise BadInput(f"{data} has {found.n_users} users; that is too few for {nodes} nodes")
    folder.mkdir(parents=True, exist_ok=True)
    width, files = len(str(nodes)), {}
    times = found.times if found.times is not None else np.arange(len(found))
    for number in range(nodes):
        own = found.users % nodes == number
        rows = zip(found.user_ids[found.users[own]], found.item_ids[found.items[own]], times[own], strict=True)
        name = f"node-{number + 1:0{width}d}"
        files[name] = folder / f"{name}.csv"
        files[name].write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows), encoding="utf-8")
    (folder / "items.txt").write_text("\n".join(map(str, found.item_ids)) + "\n", encoding="utf-8")
    return files

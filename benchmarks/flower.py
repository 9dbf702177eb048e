"""What a federated round costs beside Flower's own floor.

    python benchmarks/flower.py [--data ml-100k] [--nodes 4] [--rounds 10] [--method fedavg]

After every exchange of a real run, the same nodes exchange as many random bytes with an app that does nothing:
that is the floor (polling and moving the bytes). A round is everything from the
end of one floor exchange to the end of the next real one: packing, sending, the nodes' work, checking, folding,
writing the checkpoint. Prints both and the overhead; needs the data set (``fedrec data get ml-100k``).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrec.deploy.flower.node_process import Handle


def floor_too(config: dict[str, Any], handle: Handle) -> Handle:
    """On a node: a message that asks for nothing but bytes is answered with bytes."""

    def answer(plain: Any) -> Any:
        head, _ = plain
        return ({"kind": "floor"}, {"data": os.urandom(int(head["reply"]))}) if "reply" in head else handle(plain)

    return answer


def measured_run(folder: Path, grid: Any, home: Path) -> None:
    """On the server: a run in which every exchange is followed by an empty one of the same size."""
    from fedrec.deploy.flower.grid import QUERY, GridExchange
    from fedrec.deploy.flower.records import to_records
    from fedrec.deploy.messages.letters import Answer, Ask, Fault
    from fedrec.deploy.server.serve import serve

    class Measured(GridExchange):
        began: float | None = None

        def send(self, asks: Mapping[str, Ask], deadline: float) -> dict[str, Answer | Fault]:
            began = time.perf_counter() if self.began is None else self.began
            answers = super().send(asks, deadline)
            real = time.perf_counter() - began
            ids = {hello.name: i for i, hello in self.hellos.items()}
            packed = {}
            for name, answer in answers.items():
                down = len(asks[name].download) + asks[name].positions.nbytes
                back = sum(map(len, answer.uploads)) if isinstance(answer, Answer) else 0
                packed[name] = (ids[name], to_records(({"reply": max(1, back)}, {"data": os.urandom(down)})))
            start = time.perf_counter()
            self._round_trip(packed, QUERY, "floor", deadline)
            self.began = time.perf_counter()
            line = {
                "round": max(ask.train or ask.evaluate for ask in asks.values()),
                "real": real,
                "floor": self.began - start,
                "down": sum(len(ask.download) for ask in asks.values()),
                "up": sum(len(u) for a in answers.values() if isinstance(a, Answer) for u in a.uploads),
                "faults": [n for n, a in answers.items() if isinstance(a, Fault)],
            }
            with open(folder / "floor.jsonl", "a", encoding="utf-8") as handle:
                handle.write(json.dumps(line) + "\n")
            return answers

    serve(folder, lambda word, poll: Measured(grid, word, poll=poll))


def command_line() -> None:
    import argparse

    from fedrec.core.settings import build
    from fedrec.deploy.flower.commands import Cluster
    from fedrec.deploy.ports import free_ports
    from fedrec.deploy.server.job import Job, read_served
    from fedrec.deploy.server.rules import Rules
    from fedrec.experiment.prepare import prepare
    from fedrec.experiment.resolve import resolve
    from fedrec.runs.folder import RunFolder

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="ml-100k")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--method", default="fedavg")
    given = parser.parse_args()

    settings = resolve(given.method, {"data": given.data, "rounds": given.rounds})
    world = prepare(settings).people.world
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        run = RunFolder.create(home / "run", settings)
        Job(build(Rules, {"nodes": given.nodes}, "benchmark"), world.n_items, world.name, own_data=False).write(
            run.path
        )
        link_port, *ports = free_ports(1 + given.nodes)
        own = (str(Path(__file__).resolve()),)
        with Cluster(home / "flwr", link_port, start=own, taker=own) as cluster:
            cluster.start_link()
            for part, port in enumerate(ports):
                config = {"folder": str(home / f"node{part}"), "part": part, "parts": given.nodes, "repeatable": True}
                cluster.start_node(f"node{part}", port, config)
            member = cluster.start_run(run.path)
            while member.poll() is None and not (read_served(run.path) or {}).get("done"):
                time.sleep(0.5)
            if not (read_served(run.path) or {}).get("done"):
                sys.exit(f"the run stopped:\n{cluster.crew.tail('run', 30)}")
        lines = (run.path / "floor.jsonl").read_text(encoding="utf-8").splitlines()
        report(world, given, [json.loads(line) for line in lines])


def report(world: Any, given: Any, lines: list[dict[str, Any]]) -> None:
    print(f"{given.method} on {world.name}: {world.n_clients} clients on {given.nodes} nodes, {os.cpu_count()} cores")
    for line in lines:
        print(
            f"  round {line['round']:2d}  {line['real']:6.2f} s  floor {line['floor']:6.2f} s  "
            f"{line['down'] / 2**20:6.2f} MiB down  {line['up'] / 2**20:6.2f} MiB up  {' '.join(line['faults'])}"
        )
    real, floor = (statistics.mean(line[kind] for line in lines) for kind in ("real", "floor"))
    print(f"mean {real:.2f} s, floor {floor:.2f} s, overhead {100 * (real / floor - 1):.0f} %")


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    if given.endswith(".toml"):
        from fedrec.deploy.flower import node_process

        node_process.start(floor_too)
    elif given.endswith(".json"):
        from fedrec.deploy.flower import server_process

        server_process.main(measured_run)
    else:
        command_line()

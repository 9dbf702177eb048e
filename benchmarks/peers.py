"""One round of federated matrix factorisation beside FedJAX, pfl-research, Flower's simulation engine and a naive loop.

    python benchmarks/peers.py [--clients N] [--repeats 3] [--optimizer sgd] [--only fedjax,pfl] [--envs DIR]

Every one gets the same clients, model, start, samples and order of samples, drawn once here; a round is the local
training of all clients and the mean of their item tables, weighted by samples. First the tables are compared: where
they differ, no times are printed. Then rounds are timed in turns, in one run. Each peer has an environment of its own
below ``--envs``, made when it is not there; one that cannot be made or fails is named, and the others go on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import numpy as np
from platformdirs import user_cache_path

from bench import block_of
from environments import PEERS, Failed, Peer, Seconds, Worker, python_of
from fedrec.core.block import Block, World
from fedrec.core.method import Keys
from fedrec.core.sums import Folding
from fedrec.learn.samples import draw
from fedrec.learn.train import train_block
from fedrec.methods._shared.embedding import EmbeddingSettings
from fedrec.methods.fedavg import FedAvg
from naive import orders_of
from talk import Array, Work

HERE = Path(__file__).resolve().parent
RATES = {"sgd": 1.0, "adam": 0.01}
"""Learning rates under which a round moves the table far enough to be compared."""
CAVEATS = """\
fedrec, training        one call for all clients on all cores; samples drawn beforehand, as for everybody
fedrec, whole update    the same, and it draws its own samples; both exclude evaluation and counting bytes
FedJAX                  for_each_client and the mean of its fed_avg; batches padded and made before the clock starts;
                        rows by hand: the step is not jax.grad and an optimiser but plain SGD written for the rows
pfl-research            one process, one torch thread (its best here), batches made before the clock starts; it can
                        spread clients over processes with torch.distributed, which is not measured
Flower simulation       a virtual node per client on ray, a core each; the nodes train with the naive loop; a round
                        contains the engine's own polling and its copies of every item table
naive loop              one process, one torch thread (its best); DataLoader, module and optimiser per client
Others shuffle nothing: they are handed the order of samples; fedrec computes it inside the clock.
First rounds (compilation, start of processes) are not timed. One model, one data set, one machine."""


@dataclass(frozen=True)
class Setting:
    """What everybody trains."""

    work: Work
    rounds: dict[str, Callable[[], Array]]
    """Our own ways to make the round."""
    about: str


def setting_of(given: argparse.Namespace) -> Setting:
    """The work of one round, and our own rounds over it."""
    block, kind = block_of(given.data)
    if given.clients and given.clients < block.n_clients:  # every n-th by size, so that they are like all of them
        by_size = np.argsort(block.sizes, kind="stable")
        block = block.take(np.sort(by_size[np.linspace(0, block.n_clients - 1, given.clients).astype(int)]))
    settings = EmbeddingSettings(
        dim=given.dim, epochs=given.epochs, lr=RATES[given.optimizer], optimizer=given.optimizer
    )
    method, keys = FedAvg(settings), Keys(0, 1)
    world = World(kind, block.n_items, block.n_users, block.n_clients)
    server, private = method.start_server(world, Keys(0, 0)), method.start_clients(world, block, Keys(0, 0))
    samples = draw(block, settings.negatives, keys.clients(block, "negatives"))
    order = keys.clients(block, "batches")
    own = np.repeat(np.arange(block.n_clients), np.diff(samples.start))
    download = method.download(server, block.clients)

    def mean(upload: object) -> Array:
        folding = Folding(method.sum_fields(server, 1))
        folding.add(block.clients, method.summands(upload, download))
        return np.asarray(method.finish(server, folding.sums(), keys).items)

    def training() -> Array:
        trained = train_block(block, samples, private.users, server.items, settings, order, method.backbone)
        return mean(method.upload(trained, block))

    work = Work(
        table=server.items,
        users=private.users,
        start=samples.start,
        item=samples.rows_ids[samples.rows_start[own] + samples.row],
        label=samples.label.astype(np.float32),
        order=_orders(block, samples.start, order, settings.epochs),
        batch=settings.batch_size,
        lr=settings.lr,
        optimizer=settings.optimizer,
    )
    return Setting(
        work,
        {
            "fedrec, training": training,
            "fedrec, whole update": lambda: mean(method.local_update(private, download, block, keys).upload),
        },
        f"{kind}: {block.n_clients} clients, {block.n_items} items, {len(work.item)} samples; d={settings.dim}, "
        f"{settings.epochs} epochs, batch {settings.batch_size}, {settings.optimizer} {settings.lr}; "
        f"{len(os.sched_getaffinity(0))} cores",
    )


def _orders(block: Block, start: Array, keys: Array, epochs: int) -> Array:
    """The order of everybody's samples ``[epochs, samples]``."""
    counts = np.diff(start)
    each = [orders_of(int(counts[c]), int(keys[c]), epochs) for c in range(block.n_clients)]
    return np.concatenate(each, axis=1).astype(np.int32)


def started(peers: list[Peer], envs: Path, work: Path, folder: Path) -> dict[str, Worker]:
    """Workers that run; one line about each that does not."""
    found = {}
    for peer in peers:
        try:
            found[peer.name] = Worker(peer, python_of(peer, envs), work, folder)
        except Failed as problem:
            print(f"{peer.name} is left out: {problem}", flush=True)
    return found


def equal(setting: Setting, workers: dict[str, Worker], tolerance: float) -> bool:
    """Whether everybody's table is ours, to a tolerance in parts of the largest change."""
    ours = setting.rounds["fedrec, training"]()
    moved = float(np.abs(ours - setting.work.table).max())
    print(f"largest change of an item's number in the round: {moved:.1e}", flush=True)
    apart: dict[str, float] = {}

    def compare(name: str, table: Array) -> None:
        found = float(np.abs(table - ours).max() / moved)
        apart[name] = found if np.isfinite(found) else float("inf")
        print(f"  {name:<26} largest difference {found * moved:.1e}, {found:.1e} of that change", flush=True)

    for name, round_ in setting.rounds.items():
        compare(name, round_())
    for name, worker in list(workers.items()):
        try:
            compare(name, worker.round()[0])
        except Failed as problem:
            print(f"{name} is left out: {problem}", flush=True)
            workers.pop(name).close()
    return max(apart.values()) <= tolerance


def timed(setting: Setting, workers: dict[str, Worker], repeats: int) -> dict[str, list[Seconds]]:
    """Seconds of each, in turns."""
    seconds: dict[str, list[Seconds]] = {name: [] for name in (*setting.rounds, *workers)}
    for _ in range(repeats):
        for name, round_ in setting.rounds.items():
            began, used = time.perf_counter(), time.process_time()
            round_()
            seconds[name].append(Seconds(time.perf_counter() - began, time.process_time() - used))
        for name, worker in list(workers.items()):
            try:
                seconds[name].append(worker.round()[1])
            except Failed as problem:
                print(f"{name} is left out: {problem}", flush=True)
                workers.pop(name).close()
                del seconds[name]
    return seconds


def table_of(seconds: dict[str, list[Seconds]]) -> list[str]:
    """Best and median of each, and how many times ours they are; the same for CPU seconds of all cores together."""
    ours = next(iter(seconds))
    clock = {name: [one.clock for one in of] for name, of in seconds.items()}
    cpu = {name: [one.cpu for one in of if one.cpu is not None] for name, of in seconds.items()}
    rows = [f"{'':<26} {'best s':>9} {'median s':>9} {'x best':>8} {'x median':>9} {'best cpu s':>11} {'x cpu':>8}"]
    for name, of in clock.items():
        best, middle = min(of), statistics.median(of)
        row = f"{name:<26} {best:9.3f} {middle:9.3f} {best / min(clock[ours]):8.1f} "
        row += f"{middle / statistics.median(clock[ours]):9.1f} "
        row += f"{min(cpu[name]):11.3f} {min(cpu[name]) / min(cpu[ours]):8.1f}" if cpu[name] else f"{'-':>11} {'-':>8}"
        rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="ml-100k", choices=("ml-100k", "ml-1m"))
    parser.add_argument("--clients", type=int, default=0, help="so many clients instead of all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--optimizer", choices=tuple(RATES), default="sgd")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=1e-3, help="in parts of the largest change of the round")
    parser.add_argument("--only", default="", help="peers whose names contain one of these words, with commas between")
    parser.add_argument("--envs", type=Path, default=user_cache_path("fedrec-peers"), help="where environments lie")
    given = parser.parse_args()
    if given.envs.resolve().is_relative_to(HERE.parent):
        parser.error("--envs must lie outside the repository")
    if given.repeats < 1 or given.clients < 0:
        parser.error("--repeats must be at least 1 and --clients at least 0")
    words = [word.strip().lower() for word in given.only.split(",") if word.strip()]
    peers = [p for p in PEERS if (not words or any(w in p.name.lower() for w in words)) and p.can(given.optimizer)]
    if not peers:
        parser.error(f"--only: no peer is called so; there are {', '.join(p.name for p in PEERS)}")

    setting = setting_of(given)
    print(setting.about, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        setting.work.write(str(folder / "work.npz"))
        workers = started(peers, given.envs, folder / "work.npz", folder)
        try:
            if not equal(setting, workers, given.tolerance):
                print(f"results differ by more than {given.tolerance:g} of the change: no times are printed")
                return 1
            print("\n".join(["", *table_of(timed(setting, workers, given.repeats)), "", CAVEATS]))
        finally:
            for worker in workers.values():
                worker.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

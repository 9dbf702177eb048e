"""Seconds, memory and bytes, side by side with a naive loop: the table in docs/reference/benchmarks.md.

    python benchmarks/bench.py [NAME ...]        (all by default; `--list` names them)

Ratios are taken within one run, because machines are noisy. Every row runs in a process of its own, so that its
memory peak is its own. Rows on MovieLens use the real data where it is at hand and a world of the same shape
otherwise, and say which.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "src"))

MOVIELENS = {
    "ml-100k": "scale:users=943,items=1682,interactions=100000",
    "ml-1m": "scale:users=6040,items=3706,interactions=1000209",
}


def block_of(name: str) -> tuple[Any, str]:
    """The training block of a data set under strict, and what it really is."""
    from fedrec.core.population import population
    from fedrec.data.load import load
    from fedrec.errors import BadInput
    from fedrec.evaluation.protocols import find

    try:
        data, kind = load(name), name
    except BadInput:
        data, kind = load(MOVIELENS[name], min_interactions=3), f"synthetic world of {name}'s shape"
    return population(find("strict").prepare(data, 0)).block, kind


def local_training() -> list[str]:
    """ML-100K: the naive loop, the fused kernel and batched torch, d=16, 10 epochs, batch 256, Adam 0.01."""
    from fedrec.core.settings import TrainingSettings
    from naive import compare

    block, kind = block_of("ml-100k")
    found = compare(block, TrainingSettings(), clients=60)
    return [
        f"{kind}, {block.n_clients} clients, d=16, 10 epochs, batch 256, Adam",
        f"naive loop (60 clients measured, scaled)   {found.naive:9.2f} s a round",
        f"fused kernel                               {found.kernel:9.3f} s, {found.speedup:.0f} times faster "
        "(target: 150)",
        f"batched torch                              {found.torch:9.3f} s, {found.torch / found.kernel:.1f} times "
        "the kernel (target: at most 12)",
        f"difference of results                      largest {found.difference:.1e}, mean {found.typical:.1e}",
    ]


def growth() -> list[str]:
    """ML-1M beside ML-100K, the same settings, kernel only."""
    seconds = {name: _kernel_seconds(name) for name in MOVIELENS}
    ratio = seconds["ml-1m"] / seconds["ml-100k"]
    rows = [f"kernel, {name:<8} {value:9.3f} s a round" for name, value in seconds.items()]
    return [*rows, f"ratio            {ratio:9.1f} (target: at most 12; interactions grow 10.0 times)"]


def _kernel_seconds(name: str, repeats: int = 3) -> float:
    import numpy as np

    from fedrec import keyed
    from fedrec.backbones.mf import MatrixFactorisation
    from fedrec.core.settings import TrainingSettings
    from fedrec.learn.samples import draw
    from fedrec.learn.train import train_block

    block, _ = block_of(name)
    rng = np.random.default_rng(0)
    users = rng.uniform(0, 0.3, (block.n_users, 16)).astype(np.float32)
    table = rng.uniform(0, 0.3, (block.n_items, 16)).astype(np.float32)
    keys = keyed.streams(1, block.client_keys)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        samples = draw(block, 4, keys)
        train_block(block, samples, users, table, TrainingSettings(), keys, MatrixFactorisation())
        times.append(time.perf_counter() - began)
    return min(times)


def many_clients() -> list[str]:
    """100,000 clients, 20,000 items, 720,000 interactions: a whole round of fedavg."""
    return _big_round("fedavg", 100_000, 720_000, asked="target: at most 20 s, 6 GiB")


def million_clients() -> list[str]:
    """A million clients, streamed: a whole round of fedavg."""
    return _big_round("fedavg", 1_000_000, 7_200_000, asked="target: at most 15 s, 4 GiB")


def million_spectral() -> list[str]:
    """A million clients, streamed: a whole round of fedspectral."""
    return _big_round("fedspectral", 1_000_000, 7_200_000, asked="target: at most 30 s, 4 GiB")


def _big_round(method: str, users: int, interactions: int, asked: str) -> list[str]:
    import numpy as np

    from fedrec.core.population import population
    from fedrec.data.load import load
    from fedrec.evaluation.protocols import find
    from fedrec.methods.registry import find as find_method
    from fedrec.simulate.runtime import Simulator

    kind: Any = find_method(method)

    began = time.perf_counter()
    data = load(f"scale:users={users},items=20000,interactions={interactions}", min_interactions=3)
    task = find("strict").prepare(data, 0)
    sim = Simulator(kind(), population(task), task, 0, evaluate_users=1000)
    prepared = time.perf_counter() - began
    everyone = np.arange(sim.people.world.n_clients)
    sim.round(1, everyone[:100], everyone[:100], False)  # compile
    began = time.perf_counter()
    used = time.process_time()
    cost, _ = sim.round(2, everyone, everyone, False)
    took, used = time.perf_counter() - began, time.process_time() - used
    return [
        f"{sim.people.world.n_clients} clients, {sim.people.world.n_items} items, {len(data)} interactions "
        f"(prepared in {prepared:.1f} s)",
        f"a {method} round {took:9.2f} s ({cost.train_seconds:.2f} training; {used:.2f} CPU seconds), "
        f"peak {_peak():.2f} GiB ({asked})",
    ]


def _peak() -> float:
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def twenty_million() -> list[str]:
    """A world of ML-20M's shape: a whole run of fedspectral, from the data to its metrics."""
    from fedrec.experiment.resolve import resolve
    from fedrec.experiment.run import execute

    began, used = time.perf_counter(), time.process_time()
    world = "scale:users=138000,items=27000,interactions=20000000"
    found = execute(resolve("fedspectral", {"data": world})).json
    took, used = time.perf_counter() - began, time.process_time() - used
    parts = ", ".join(f"{name} {value:.1f}" for name, value in found["seconds"].items() if name != "total")
    return [
        f"{world}, {found['rounds']} rounds with evaluation after each ({parts})",
        f"end to end {took:9.2f} s ({used:.0f} CPU seconds), peak {_peak():.2f} GiB (target: at most 600 s, 6 GiB)",
    ]


def cuda_round() -> list[str]:
    """ML-1M on a CUDA device, batched torch."""
    import torch

    if not torch.cuda.is_available():
        return ["skipped: no CUDA device here"]
    import cuda

    return cuda.rows()


ROWS = {
    "local-training": local_training,
    "growth": growth,
    "many-clients": many_clients,
    "million-clients": million_clients,
    "million-fedspectral": million_spectral,
    "ml-20m-shape": twenty_million,
    "cuda": cuda_round,
}
"""Rows of this file; those of single methods come from files of their own beside it."""

OTHERS = {
    "fedca-server": "fedca_server.py --clients 943 --items 1682",
    "fedca-server-1m": "fedca_server.py --clients 6040 --items 3706 --interactions 166",
    "fedca-server-cuda": "fedca_server.py --clients 6040 --items 3706 --interactions 166 --device cuda",
    "fedca-server-100k": "fedca_server.py --clients 100000 --items 19738 --interactions 7 --neighbours 32",
    "feddae": "feddae.py --users 943 --loop-clients 8",
    "fedcia": "fedcia.py",
    "two-views": "two_views.py",
    "secure": "secure.py",
}


def main(asked: list[str]) -> int:
    """Run rows in processes of their own and print what they say."""
    if "--list" in asked:
        print("\n".join([*ROWS, *OTHERS]))
        return 0
    if asked[:1] == ["--row"]:
        print("\n".join(ROWS[asked[1]]()))
        return 0
    failed = 0
    for name in asked or [*ROWS, *OTHERS]:
        about = (ROWS[name].__doc__ or "").splitlines()[0] if name in ROWS else OTHERS[name]
        print(f"\n{name}: {about}", flush=True)
        file, *options = f"bench.py --row {name}".split() if name in ROWS else OTHERS[name].split()
        done = subprocess.run([sys.executable, str(HERE / file), *options], capture_output=True, text=True, check=False)
        text = done.stdout.strip() or json.dumps({"failed": done.stderr.strip().splitlines()[-1:]})
        print("  " + text.replace("\n", "\n  "), flush=True)
        failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

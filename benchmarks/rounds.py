"""Seconds a round of methods (training, aggregation, evaluation), peak memory and bytes; two trees side by side.

    FEDREC_DATA=... python benchmarks/rounds.py gpfedrec pfedgraph --data filmtrust --data lastfm-2k
    python benchmarks/rounds.py fedca --data ml-100k --rounds 4 --set r=0.5
    python benchmarks/rounds.py gpfedrec --data filmtrust --before ../old/src --repeats 2

Each row runs in a process of its own, so that its memory peak is its own, with the settings that ``fedrec run`` would
take for that method and data. The first round compiles and is left out of the means where there are others. With
``--before`` every case runs with that tree's sources too, in turn with ours, and the last line of a case says how many
times faster and smaller it became and how far the metrics and losses of all rounds lie apart (relative, the largest);
both then run without a defence against hostile uploads, which version 0.1.0 did not have.
Processor seconds stand beside wall-clock seconds, because a busy machine stretches the latter. The last line of a data
set adds them up over the methods, as ``--board`` rounds of each would take (fewer of those that learn nothing more); as
a folder of the leaderboard, ``--board runs/leaderboard`` counts the rounds that each method's run there (seed 0) took.
The leaderboard has ``--min-interactions 10 --evaluate-every 3 --no-models``; with ``--evaluate-every`` the
sum counts a share of the evaluations, which are made in every round here.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OURS = Path(__file__).resolve().parent.parent / "src"
HEAD = "| method | data | sources | training s | aggregation s | evaluation s | processor s | peak MB | up B | down B |"


def _prepared(method: str, given: dict[str, Any]) -> Any:
    """A run that has not begun, in this version or in 0.1.0."""
    old: Any
    try:
        from fedrec.experiment.prepare import prepare
        from fedrec.experiment.resolve import resolve
    except ImportError:
        old = importlib.import_module("fedrec.running")
        given = {key: value for key, value in given.items() if key != "robust"}
        return old.prepare(old.resolve(method, given))
    return prepare(resolve(method, given))


def measure(method: str, data: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run some rounds in this process: means over all but the first, and the figures of every round."""
    from fedrec.core.loop import Progress, Record, run_rounds

    prepared = _prepared(method, {"data": data, **options})
    runtime, scoring = prepared.runtime, prepared.method.score
    spent = {"score": 0.0}
    rows: list[dict[str, float]] = []
    figures: list[dict[str, float]] = []
    last = [time.process_time()]

    def timed(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        found = scoring(*given, **named)
        spent["score"] += time.perf_counter() - began
        return found

    def after(record: Record, _: Progress) -> None:
        row = {**record.seconds, **record.bytes, "cpu": time.process_time() - last[0]}
        if getattr(prepared.plan, "evaluated", "") == "local" and hasattr(
            runtime, "evaluating"
        ):  # evaluated within the round
            row["evaluate"] += runtime.evaluating.seconds + spent["score"]
            row["aggregate"] -= spent["score"]
        rows.append(row)
        figures.append({"loss": record.loss, **{f"valid {name}": v for name, v in (record.valid or {}).items()}})
        figures[-1] |= {f"test {name}": v for name, v in (record.test or {}).items()}
        spent["score"], last[0] = 0.0, time.process_time()

    prepared.method.score = timed
    run_rounds(runtime, prepared.plan, Progress(), after)
    counted = rows[1:] or rows
    means = {name: sum(row[name] for row in counted) / len(counted) for name in counted[0]}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    enough = prepared.plan.settled_after or 0
    clients = prepared.people.world.n_clients
    return {**means, "peak": peak, "figures": figures, "clients": clients, "enough": enough}


def apart(one: list[dict[str, float]], other: list[dict[str, float]]) -> float:
    """The largest relative difference between the figures of two runs; infinite where they are not of one kind."""
    if [sorted(row) for row in one] != [sorted(row) for row in other]:
        return float("inf")
    pairs = [(row[name], there[name]) for row, there in zip(one, other, strict=True) for name in row]
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a == a and a != b), default=0.0)


def separately(sources: Path, method: str, data: str, options: dict[str, Any]) -> dict[str, Any]:
    """The same in a process of its own, with these sources."""
    given = json.dumps([method, data, options])
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--one", given],  # not our folder's cuda.py for CUDA's own
        env={**os.environ, "PYTHONPATH": str(sources)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{method} on {data} with {sources}: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(method: str, data: str, sources: str, found: dict[str, Any]) -> str:
    """One row of the table."""
    seconds = " | ".join(f"{found[name]:.2f}" for name in ("train", "aggregate", "evaluate", "cpu"))
    return (
        f"| {method} | {data} ({found['clients']} clients) | {sources} | {seconds} | {found['peak']:.0f} "
        f"| {found['upload']:.0f} | {found['download']:.0f} |"
    )


def rounds_on(board: str, method: str, data: str) -> int:
    """How many rounds of a method the board counts: as many as were asked for, or as its finished run took."""
    if board.isdigit():
        return int(board)
    found: dict[str, Any] = json.loads((Path(board) / data / f"{method}-seed0" / "result.json").read_text())
    return int(found["rounds"])


def compare(
    method: str, data: str, options: dict[str, Any], trees: dict[str, Path], repeats: int, board: str, every: int = 1
) -> dict[str, float]:
    """Print the rows of one case; the processor seconds of its rounds on a board, by tree."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    for _ in range(repeats):
        for name, sources in trees.items():
            runs[name].append(separately(sources, method, data, options))
            print(line(method, data, name, runs[name][-1]), flush=True)

    def least(name: str, what: tuple[str, ...]) -> float:
        return max(1e-9, min(sum(float(run[part]) for part in what) for run in runs[name]))

    def ratio(*what: str) -> str:
        return f"{least('before', what) / least('now', what):.2f}"

    if len(trees) > 1:
        print(
            f"  {method} on {data}: round {ratio('train', 'aggregate', 'evaluate')} times faster (training "
            f"{ratio('train')}, aggregation {ratio('aggregate')}, evaluation {ratio('evaluate')}, processor "
            f"{ratio('cpu')}), {ratio('peak')} times smaller, figures apart "
            f"{apart(runs['before'][0]['figures'], runs['now'][0]['figures']):.1e}",
            flush=True,
        )

    def counted(run: dict[str, Any]) -> float:
        """Processor seconds of a round in which every so many are evaluated."""
        return max(1e-9, float(run["cpu"]) - (1 - 1 / every) * float(run["evaluate"]))

    return {
        name: min(map(counted, runs[name])) * (runs[name][0]["enough"] or rounds_on(board, method, data))
        for name in trees
    }


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--data", action="append", help="data set; may repeat [ml-100k]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--evaluate-every", type=int, default=1, help="the board's: every so many rounds [1]")
    parser.add_argument("--no-models", action="store_true", help="do not keep the best round's state")
    parser.add_argument("--protocol", default="strict")
    parser.add_argument("--min-interactions", type=int, help="drop users with fewer [the data set's own filter]")
    parser.add_argument("--clients", type=int, help="spread users over this many clients")
    parser.add_argument("--memory-mb", type=int, help="working memory that blocks are sized for")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the method")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--before", type=Path, help="another tree's src, measured in turn with ours")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--board", default="100", help="rounds that the sum counts, or a leaderboard's folder [100]")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*json.loads(given.one))))
        return
    from_command_line: dict[str, Any] = {"rounds": given.rounds, "protocol": given.protocol, "device": given.device}
    if given.before is not None:
        from_command_line["robust"] = "none"  # version 0.1.0 had no defence
    if given.no_models:
        from_command_line["keep_selected"] = False
    for name in ("min_interactions", "clients", "memory_mb"):
        if getattr(given, name) is not None:
            from_command_line[name] = getattr(given, name)
    if given.set:
        from_command_line["settings"] = dict(pair.split("=", 1) for pair in given.set)
    trees = {"now": OURS} if given.before is None else {"before": given.before.resolve(), "now": OURS}
    print(HEAD)
    print(f"|{' --- |' * (HEAD.count('|') - 1)}")
    for data in given.data or ["ml-100k"]:
        spent = dict.fromkeys(trees, 0.0)
        for method in given.methods or ["fedavg"]:
            own = compare(method, data, from_command_line, trees, given.repeats, given.board, given.evaluate_every)
            spent = {name: spent[name] + own[name] for name in trees}
        hours = ", ".join(f"{name} {seconds / 3600:.2f}" for name, seconds in spent.items())
        print(f"  {data}, core hours of all methods (board {given.board}): {hours}", flush=True)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

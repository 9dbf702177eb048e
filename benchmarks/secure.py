"""Seconds and bytes of secure sums beside plain ones: one cohort in full, and many participants in cohorts.

    python benchmarks/secure.py [--clients 1000] [--numbers 55500] [--dropout 0.1] [--server active|curious]
                                [--population 100000] [--level protocol|masks|sums]
    python benchmarks/secure.py --rules

The first part runs every step of every participant and of the server (``--level masks`` leaves out signatures and
sharing). Those that drop out are spread over the steps: a quarter falls silent before each of sharing, sending the
vector, confirming and unmasking. Seconds are processor seconds of one core (all work in one process), because a busy
machine stretches the others. The second part sums a whole population, cohort by cohort: one with real masks, all as
sums of the same whole numbers with the bytes counted. Plain is: every vector sent in 32 bits and added up.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import numpy as np

from fedrec.secure.cohorts import assign, sum_of_sums
from fedrec.secure.course import STEPS, Dropouts
from fedrec.secure.layout import Field, Layout
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Integers
from fedrec.secure.rules import Server, neighbourhood
from fedrec.secure.simulate import Cohort, Level, Simulated

SILENT = (Kind.SHARE, Kind.INPUT, Kind.CONFIRM, Kind.UNMASK)


def names(n: int) -> list[str]:
    return [f"user-{number:06d}" for number in range(n)]


def who_drops_out(n: int, share: float, seed: int = 0) -> Dropouts:
    """A share of the members, spread over the steps."""
    gone = np.random.default_rng(seed).choice(n, int(share * n), replace=False)
    return {int(place): SILENT[turn % len(SILENT)] for turn, place in enumerate(gone)}


@lru_cache(maxsize=1)
def base(length: int) -> Integers:
    return np.arange(length, dtype=np.int64) * 7919 % 1_000_000


def vector(layout: Layout, place: int) -> Integers:
    """A vector that differs from member to member and costs next to nothing to make."""
    return base(layout.length) - place * 997


def one_sum(plan: Plan, dropouts: Dropouts, level: Level) -> Simulated:
    """A secure sum, checked against the plain one."""
    cohort = Cohort(plan, dropouts, level=level, clock=time.process_time)
    expected = np.zeros(plan.layout.length, np.int64)
    for place in cohort.contributors.tolist():
        values = vector(plan.layout, place)
        expected += values
        cohort.add(place, values)
    found = cohort.finish()
    assert np.array_equal(found.sum.total, expected), "the secure sum is not the plain one"
    return found


def plain_seconds(n: int, numbers: int) -> float:
    """The server's part of a plain sum: read each vector and fold it in 64 bits."""
    message = np.random.default_rng(0).normal(size=numbers).astype(np.float32).tobytes()
    total = np.zeros(numbers)
    start = time.process_time()
    for _ in range(n):
        total += np.frombuffer(message, np.float32)
    return time.process_time() - start


def cohort_row(n: int, numbers: int, dropout: float, server: Server, level: Level) -> None:
    """One cohort beside a plain sum."""
    layout = Layout((Field("items", (numbers,), 1.0),), n)
    hood = neighbourhood(n, dropout, 0.05, server)
    rules = hood.rules
    plan = Plan.of("bench", 1, names(n), layout, rules)
    dropouts = who_drops_out(n, dropout)
    found = one_sum(plan, dropouts, level)
    stayed = np.array([place not in dropouts for place in range(n)])
    up, down = (part[stayed].sum(axis=1).mean() for part in (found.traffic.upload, found.traffic.download))
    plain = 4 * numbers
    print(
        f"{n:,} clients, vectors of {plain / 1000:.0f} KB, {dropout:.0%} dropout, server {server}, level {level}\n"
        f"  {rules.neighbours} neighbours, threshold {rules.threshold}, window {rules.window}, quorum {rules.quorum} "
        f"of {rules.committee}; insecure at most {power(hood.insecure)}, failing at most {power(hood.failing)}\n"
        f"  per client     up {up / 1000:8.1f} KB, down {down / 1000:6.1f} KB; plain up {plain / 1000:.1f} KB: "
        f"{(up + down) / plain:.2f} times (target: at most 2)\n"
        f"  server         in {found.received / 1e6:8.1f} MB, out {found.sent / 1e6:6.1f} MB; plain in "
        f"{plain * int(stayed.sum()) / 1e6:.1f} MB\n"
        f"  server         {found.seconds['server']:8.2f} s of one core; {found.course.restored} secrets put together; "
        f"plain {plain_seconds(int(stayed.sum()), numbers):.2f} s (target: at most 15 s on 2 cores)\n"
        f"  per client     {1000 * found.seconds['clients'] / n:8.1f} ms of one core",
        flush=True,
    )
    sent, got = (part[stayed].mean(axis=0) for part in (found.traffic.upload, found.traffic.download))
    print("  step           " + "".join(f"{name:>11}" for name in STEPS))
    print("  bytes up       " + "".join(f"{number:11,.0f}" for number in sent))
    print("  bytes down     " + "".join(f"{number:11,.0f}" for number in got), flush=True)


def population_row(n: int, size: int, numbers: int, dropout: float, server: Server) -> None:
    """Many participants in cohorts, sums of sums above them."""
    start, wall = time.process_time(), time.perf_counter()
    cohorts = assign(names(n), 0, "bench", 1, size)
    layout = Layout((Field("items", (numbers,), 1.0),), cohorts.largest)
    sums, up, down, masked = [], 0, 0, 0.0
    for number, group in enumerate(cohorts.groups):
        rules = neighbourhood(len(group), dropout, 0.05, server).rules
        plan = Plan.of("bench", 1, list(group), layout, rules, cohort=number)
        dropouts = who_drops_out(len(group), dropout, number)
        if number == 0:
            before = time.process_time()
            one_sum(plan, dropouts, "masks")
            masked = time.process_time() - before
        found = one_sum(plan, dropouts, "sums")
        sums.append(found.sum)
        up, down = up + found.received, down + found.sent
    total = sum_of_sums(sums)
    seconds, each = time.process_time() - start - masked, (up + down) / n
    print(
        f"{n:,} clients in {len(cohorts.groups)} cohorts of {cohorts.smallest} to {cohorts.largest}, "
        f"vectors of {4 * numbers / 1000:.0f} KB, {dropout:.0%} dropout, server {server}\n"
        f"  {total.contributions:,} contributions in the sum, {total.smallest} in the smallest cohort\n"
        f"  bytes          {each / 1000:.1f} KB per client, {each / (4 * numbers):.2f} times plain\n"
        f"  as sums        {seconds:.1f} s of one core ({time.perf_counter() - wall:.0f} s in all on this machine)\n"
        f"  with masks     {masked:.1f} s of one core for one cohort, "
        f"about {masked * len(cohorts.groups) / 60:.0f} minutes for all (extrapolated)",
        flush=True,
    )


def rules_table(dropout: float, colluding: float) -> None:
    """Neighbours and thresholds for cohorts of several sizes."""
    print(f"{dropout:.0%} drop out, {colluding:.0%} collude; k neighbours, t shares, w in a row, q of s signatures")
    print("server     clients     k    t    w    q    s   insecure     failing")
    servers: tuple[Server, ...] = ("active", "curious")
    for server in servers:
        for n in (5, 10, 20, 50, 100, 300, 1000, 10_000, 100_000):
            hood = neighbourhood(n, dropout, colluding, server)
            r = hood.rules
            numbers = f"{r.neighbours:6}{r.threshold:5}{r.window:5}{r.quorum:5}{r.committee:5}"
            print(f"{server:8}{n:10,}{numbers}   {power(hood.insecure):>8}    {power(hood.failing):>8}")


def power(probability: float) -> str:
    return f"2^{np.ceil(np.log2(probability)):.0f}" if probability else "0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000, help="members of the first cohort; 0 leaves it out")
    parser.add_argument("--numbers", type=int, default=55_500)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--server", choices=["active", "curious"], default="active")
    parser.add_argument("--population", type=int, default=100_000, help="0 leaves it out")
    parser.add_argument("--cohort", type=int, default=1000, help="size of the population's cohorts")
    parser.add_argument("--rules", action="store_true", help="print the rules of cohorts of several sizes, and stop")
    parser.add_argument("--level", choices=["protocol", "masks", "sums"], default="protocol")
    chosen = parser.parse_args()
    if chosen.rules:
        rules_table(chosen.dropout, 0.05)
        return
    if chosen.clients:
        cohort_row(chosen.clients, chosen.numbers, chosen.dropout, chosen.server, chosen.level)
    if chosen.population:
        population_row(chosen.population, chosen.cohort, chosen.numbers, chosen.dropout, chosen.server)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

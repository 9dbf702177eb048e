"""The words of a comparison: what stands in a cell and below a table, the same on every surface."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from fedrec.evaluation.statistics import FLIPS, MIN_SEEDS
from fedrec.report.model.comparison import FLOOR, NOT_YET, Cell, Comparison, Failure, Group, Row
from fedrec.report.model.significance import shared_seeds

HEADINGS: dict[Group, str] = {"federated": "federated", "centralised": "centralised", "control": "controls"}


def title(comparison: Comparison) -> str:
    data = comparison.data
    return (
        f"{data['name']} ({data['users']} users, {data['items']} items, {data['clients']} clients), protocol "
        f"{comparison.protocol.name}, {seeds_text(comparison.seeds)}"
    )


def seeds_text(seeds: Sequence[int]) -> str:
    """``seed 0`` or ``seeds 0, 1``."""
    return f"seed{'s'[: len(seeds) > 1]} {', '.join(map(str, seeds))}"


def cell_text(cell: Cell | None) -> str:
    """``0.6458* ±0.0031``: mean, mark, and the spread where there are several seeds."""
    if cell is None or math.isnan(cell.summary.mean):
        return "-"
    spread = f" ±{cell.summary.spread:.4f}" if cell.summary.count > 1 else ""
    return f"{cell.summary.mean:.4f}{cell.mark}{spread}"


def name_text(row: Row, comparison: Comparison) -> str:
    """The method, and how many seeds there are where some are missing."""
    if row.runs and len(row.runs) < len(comparison.seeds):
        return f"{row.method} ({len(row.runs)} of {len(comparison.seeds)} seeds)"
    return row.method


def secure_text(found: Mapping[str, Any]) -> str:
    """What secure sums cost, in one line."""
    up, plain = sum(found["bytes"]["upload"].values()), found["plain_upload"]
    times = f", {up / plain:.2f} times plain" if plain else ""
    return (
        f"{found['cohorts']:g} cohorts a round, at least {found['smallest_cohort']} contributions in each sum, "
        f"{found['repeated']} repeated; {up / 1024:.2f} KiB up per client{times}; "
        f"{found['seconds']['clients']:.2f} s of all clients, {found['seconds']['server']:.2f} s of the server a round"
    )


def settings_text(own: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(own.items()))


def seconds_text(row: Row) -> str:
    return f"{row.seconds:.1f}" if row.runs else "-"


def upload_text(row: Row) -> str:
    """KiB per client and round; a centralised model collects histories instead."""
    if not row.runs or row.group == "centralised" or row.method in ("random", "popularity"):
        return "-"
    return f"{row.bytes('upload') / 1024:.2f}"


Written = TypeVar("Written")


def table_groups(
    comparison: Comparison,
    name: Callable[[str], str],
    cell: Callable[[Cell | None], Written],
    reason: Callable[[str], Written],
) -> list[tuple[Group, list[list[str | Written]]]]:
    """The rows of each group: method, metrics, seconds, bytes and, where runs of any method failed, why."""

    def line(row: Row) -> list[str | Written]:
        cells = [cell(row.cells.get(metric)) for metric in comparison.columns]
        failed = [reason(failure_text(row.failures))] if comparison.failures else []
        return [name(name_text(row, comparison)), *cells, seconds_text(row), upload_text(row), *failed]

    return [(group, [line(row) for row in rows]) for group, rows in comparison.grouped()]


def failure_text(failures: tuple[Failure, ...]) -> str:
    """Each reason once, with the seeds it struck."""
    seeds: dict[str, list[int]] = {}
    for failure in failures:
        seeds.setdefault(failure.reason, []).append(failure.seed)
    return "; ".join(f"{seeds_text(own)}: {reason}" for reason, own in seeds.items())


def lost_texts(failures: Iterable[Failure]) -> list[str]:
    """Runs without a result: each failure with its reason, those that nobody has run yet together."""
    found = list(failures)
    texts = [f"Failed: {one.method} (seed {one.seed}): {one.reason}" for one in found if one.reason != NOT_YET]
    seeds: dict[str, list[str]] = {}
    for one in found:
        if one.reason == NOT_YET:
            seeds.setdefault(one.method, []).append(str(one.seed))
    waiting = ", ".join(f"{method} (seed {', '.join(own)})" for method, own in seeds.items())
    return [*texts, *([f"Not run yet: {waiting}"] if waiting else [])]


def notes(comparison: Comparison) -> list[str]:
    """What must be known to read the table, one paragraph each."""
    found = [legend_text(legend(comparison)), tested(comparison), pairs_text(comparison)]
    if comparison.chance:
        known = [f"{name} {comparison.chance[name]:.4f}" for name in comparison.columns if name in comparison.chance]
        found.append("Chance (exact): " + ", ".join(known) + ".")
    found.append(rising(comparison))
    local = comparison.row("local")
    if local is None or not local.runs:
        found.append("There is no run of the control `local`: a leak of held-out items would go unnoticed.")
    if any(name.endswith("!") for name in comparison.columns):
        found.append("A metric with ! is computed as in a paper's public code.")
    if comparison.protocol.flaws:
        found.append(f"Protocol {comparison.protocol.name} repeats a paper's procedure, flaws included:")
        found += [f"({number}) {flaw}" for number, flaw in enumerate(comparison.protocol.flaws, 1)]
    return [note for note in found if note]


def rising(comparison: Comparison) -> str:
    """Who was still getting better when its rounds were over; empty where nobody was."""
    found = [row.method for row in comparison.rows if row.rising and not row.control]
    return f"Best in the last round, so more rounds might help: {', '.join(found)}." if found else ""


def legend_text(marks: Sequence[str]) -> str:
    """What the marks mean, as one sentence."""
    return "; ".join(marks) + "." if marks else ""


def legend(comparison: Comparison) -> list[str]:
    """The marks that occur, and no others."""
    cells = [row.cells[name] for row in comparison.rows for name in comparison.columns if name in row.cells]
    marks = {
        "bold: best of its group": [cell.best for cell in cells],
        "*: significantly better than every other method of its group": [cell.clear for cell in cells],
        "~: cannot be told apart from the best of its group": [cell.tied for cell in cells],
        f"°: not significantly better than {FLOOR}": [cell.below_floor for cell in cells],
    }
    return [mark for mark, seen in marks.items() if any(seen)]


def tested(comparison: Comparison) -> str:
    """How differences were tested."""
    cells = [cell for row in comparison.rows for name, cell in row.cells.items() if name in comparison.columns]
    verdicts = [verdict for cell in cells for verdict in (cell.against_best, cell.against_floor) if verdict]
    spread = "±: sample standard deviation over seeds. " if len(comparison.seeds) > 1 else ""
    if not any(verdict.p_adjusted is not None for verdict in verdicts):
        return spread + ("No test was possible (too few seeds, no per-user values)." if verdicts else "")
    tests = []
    if any(verdict.p_users is not None for verdict in verdicts):
        tests.append(f"paired permutation test over users ({FLIPS} sign flips, each user averaged over seeds)")
    if any(verdict.p_seeds is not None for verdict in verdicts):
        tests.append("paired t-test over seeds")
    text = spread + f"Tested by a {' and a '.join(tests)}, 5 %, Holm's correction over the methods of a column."
    if any(verdict.p_seeds is None for verdict in verdicts):
        text += f" There are fewer than {MIN_SEEDS} seeds; other seeds may give another order."
    return text


def pairs_text(comparison: Comparison) -> str:
    """One note; empty where every test is over all seeds: no mark must not be read as a test that was passed."""
    seeds = {(one.method, other.method): shared_seeds(one.runs, other.runs) for one, other in _pairs(comparison)}
    apart = [pair for pair, shared in seeds.items() if not shared]
    if apart and len(apart) == len(seeds):
        names = {name for pair in apart for name in pair}
        rows = [row for row in comparison.rows if row.method in names]
        own = ", ".join(f"{row.method} ({seeds_text([run.seed for run in row.runs])})" for row in rows)
        return f"Nothing was tested: no seed is common to {own}."
    found = []
    if apart:
        found.append("Not tested, because no seed is common: " + "; ".join(f"{a} against {b}" for a, b in apart) + ".")
    some = {shared for shared in seeds.values() if shared and shared != comparison.seeds}
    if len(some) == 1 and some == set(seeds.values()):
        found.append(f"Tested on {seeds_text(some.pop())} alone.")
        some = set()
    for shared in sorted(some):
        who = "; ".join(f"{a} against {b}" for (a, b), its in seeds.items() if its == shared)
        found.append(f"Tested on {seeds_text(shared)} alone: {who}.")
    return " ".join(found)


def _pairs(comparison: Comparison) -> Iterator[tuple[Row, Row]]:
    """Who is held against whom in the columns that are shown: the floor, and the best of the group."""
    floor = comparison.row(FLOOR)
    for group, rows in comparison.grouped():
        ran = [row for row in rows if row.runs]
        if group == "control" or not ran:
            continue
        if floor is not None and floor.runs:
            yield from ((row, floor) for row in ran)
        for name in comparison.columns:
            best = next((row for row in ran if name in row.cells and row.cells[name].best), None)
            if best is not None:
                yield from ((row, best) for row in ran if row is not best)

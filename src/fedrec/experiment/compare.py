"""Several methods under several seeds: plan the runs, carry them out, read them back as one comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fedrec.core.reference import Reference
from fedrec.errors import BadInput, unknown
from fedrec.evaluation.canary import chance
from fedrec.experiment import pool
from fedrec.experiment.jobs import Job, folder_state, open_jobs, reason_of
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import centralised, federated
from fedrec.methods.registry import find as find_method
from fedrec.report.model.columns import canary_metric, main_metric, shown
from fedrec.report.model.comparison import CONTROLS, NOT_YET, Comparison, Failure, compare_runs
from fedrec.report.model.runs import load_run
from fedrec.runs.atomic import replace_file, write_text


@dataclass(frozen=True)
class Jobs:
    """All runs of a comparison, checked before the first one starts."""

    jobs: tuple[Job, ...]
    failures: tuple[Failure, ...]
    """Methods that could not even be loaded."""
    out: Path


def plan_all(
    methods: Sequence[str],
    seeds: Sequence[int],
    data: Sequence[str],
    given: Mapping[str, Any],
    sets: Mapping[str, Any] | None = None,
    out: Path | None = None,
    recipes: Sequence[Mapping[str, Any]] = (),
) -> list[Jobs]:
    """The runs of a comparison on several data sets, each in a folder of its own below ``out``."""
    out = out or Path("runs") / "leaderboard"
    names = [default_folder(one, "").name.removeprefix("compare-").removesuffix("-") for one in data]
    return [
        plan(methods, seeds, {**given, "data": one}, sets, out / name, recipes)
        for one, name in zip(data, names, strict=True)
    ]


def plan(
    methods: Sequence[str],
    seeds: Sequence[int],
    given: Mapping[str, Any],
    sets: Mapping[str, Any] | None = None,
    out: Path | None = None,
    recipes: Sequence[Mapping[str, Any]] = (),
) -> Jobs:
    """The runs that a comparison needs, controls included.

    ``given``: run settings of all methods (``data``, ``protocol``, ``rounds``...). ``sets``: method settings;
    ``key`` goes to every method that has it, ``METHOD.key`` to one. ``recipes``: entries of a file of the user's own,
    over the papers'. Whatever is wrong is bad input now.
    """
    if not methods:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    if not seeds:
        raise BadInput("no seed is given; name at least one, for example --seeds 0,1,2")
    names = list(dict.fromkeys([*named(methods), *CONTROLS]))
    seeds = list(dict.fromkeys(seeds))
    folder = out or default_folder(str(given.get("data", "demo")), str(given.get("protocol", "strict")))
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; give --out a folder")
    kinds, failures = _kinds(names, seeds)
    own = share_settings(kinds, names, sets or {})
    jobs = []
    for seed in seeds:  # all methods under one seed first: an interrupted comparison is complete as far as it goes
        for name, kind in kinds.items():
            settings = resolve(name, {**_fitting(kind, given), "seed": seed, "settings": own[name]}, recipes)
            path = folder / f"{name}-seed{seed}"
            jobs.append(Job(settings, path, folder_state(path, settings)))
    return Jobs(tuple(jobs), tuple(failures), folder)


def named(words: Sequence[str]) -> list[str]:
    """Names of methods, with ``all``, ``federated`` and ``centralised`` spelled out."""
    groups: dict[str, Callable[[], list[str]]] = {
        "federated": federated,
        "centralised": centralised,
        "all": lambda: [*federated(), *centralised()],
    }
    return [name for word in words for name in (groups[word]() if word in groups else [word])]


def default_folder(data: str, protocol: str) -> Path:
    """``runs/compare-DATA-PROTOCOL``."""
    name = re.sub(r"[^\w.-]+", "-", Path(data).name)
    return Path("runs") / f"compare-{name}-{protocol}"


def _kinds(names: Sequence[str], seeds: Sequence[int]) -> tuple[dict[str, Any], list[Failure]]:
    kinds: dict[str, Any] = {}
    failures: list[Failure] = []
    for name in names:
        try:
            kinds[name] = find_method(name)
        except BadInput:
            raise
        except Exception as problem:  # a package that does not import loses its own runs, not the others
            failures += [Failure(name, seed, reason_of(problem)) for seed in seeds]
    return kinds, failures


def _fitting(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What of the run's settings applies to this kind of method."""
    fitting = dict(given)
    if issubclass(kind, Reference):
        fitting.pop("runtime", None)  # there is nothing to federate
        fitting.pop("secure", None)  # nor to hide
        fitting.pop("epsilon", None)
        if kind.one_shot:
            fitting.pop("rounds", None)
    if kind.name == "local":  # a table for every client: a second copy costs much, and nobody asks it for items
        fitting["keep_selected"] = False
    return fitting


def share_settings(
    kinds: Mapping[str, Any], names: Sequence[str], sets: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Which method gets which settings; a key that no method has is bad input."""
    own: dict[str, dict[str, Any]] = {name: {} for name in names}
    known = sorted({key for kind in kinds.values() for key in kind.Settings.model_fields})
    for key, value in sorted(sets.items(), key=lambda pair: "." in pair[0]):  # METHOD.key wins over key
        method, dot, inner = key.partition(".")
        if dot:
            if method not in own:
                raise BadInput(f"--set {key}: {method!r} is not compared here; it is one of {', '.join(names)}")
            own[method][inner] = value
            continue
        takers = [name for name, kind in kinds.items() if key in kind.Settings.model_fields]
        if not takers:
            raise unknown("setting", key, known)
        for name in takers:
            own[name][key] = value
    return own


def carry_out(
    plans: Sequence[Jobs],
    *,
    parallel: int = 1,
    memory_mb: int | None = None,
    watcher: pool.Watcher | None = None,
    start: bool = True,
) -> list[Comparison]:
    """The runs of several data sets as one heap of work: one seed of everything before the next.

    Without ``start`` nothing is run: what is finished is compared.
    """
    known = [exact_chance(jobs) for jobs in plans]  # first: missing data is bad input, not a failure of every method
    heap = sorted((job for jobs in plans for job in jobs.jobs), key=lambda job: job.settings.seed)
    if start:
        reasons = pool.carry_out(heap, parallel=parallel, memory_mb=memory_mb, watcher=watcher)
    else:
        reasons = open_jobs(heap)
    return [_compared(jobs, chances, reasons) for jobs, chances in zip(plans, known, strict=True)]


def _compared(jobs: Jobs, known: Mapping[str, float], reasons: Mapping[Path, str]) -> Comparison:
    lost = [
        Failure(job.settings.method, job.settings.seed, reasons[job.folder])
        for job in jobs.jobs
        if job.folder in reasons
    ]
    failures = [*jobs.failures, *lost]
    finished = [job.folder for job in jobs.jobs if job.folder not in reasons]
    if not finished and failures[0].reason == NOT_YET:
        raise BadInput(f"no run in {jobs.out} is finished; start them with the same command without --so-far")
    if not finished:
        raise RuntimeError(f"every run failed; the first because of {failures[0].reason}")
    return compare_runs(map(load_run, finished), failures=failures, chance=known)


def exact_chance(jobs: Jobs) -> dict[str, float]:
    """What a random scorer gets under the comparison's protocol on its data, by metric."""
    control = next(job for job in jobs.jobs if job.settings.method == "random")
    task = prepare(control.settings).task
    names = dict.fromkeys([*shown(task.protocol), main_metric(task.protocol), canary_metric(task.protocol)])
    return {name: chance(task, "test", name) for name in names if not name.endswith("!")}


def write_leaderboard(comparisons: Sequence[Comparison], out: Path, command: str = "") -> list[Path]:
    """Write ``leaderboard.md``, ``.csv`` and ``.html``, and the report of each data set into its folder."""
    from fedrec.report.model.leaderboard import Leaderboard
    from fedrec.report.page.leaderboard import leaderboard_page
    from fedrec.report.text.leaderboard import as_csv, markdown_page

    board = Leaderboard(tuple(comparisons))
    write_text(out / "leaderboard.md", markdown_page(board, command))
    write_text(out / "leaderboard.csv", as_csv(board))
    write_text(out / "leaderboard.html", leaderboard_page(board, command))
    return [out / f"leaderboard.{end}" for end in ("md", "csv", "html")]


def write_report(comparison: Comparison, out: Path, command: str = "") -> list[Path]:
    """Write ``compare.md``, ``.csv``, ``.html``, ``.png`` and, where there are rounds, ``curves.png``."""
    from fedrec.report.figures.canvas import save_png
    from fedrec.report.figures.comparison import curve_plot, dot_plot
    from fedrec.report.page.comparison import comparison_page
    from fedrec.report.text.markdown import markdown_page
    from fedrec.report.text.records import as_csv

    drawn = {
        "compare.png": (dot_plot(comparison), f"{comparison.main} of every method"),
        "curves.png": (curve_plot(comparison), f"{comparison.main} on validation over rounds"),
    }
    figures = []
    for file, (figure, text) in drawn.items():
        if figure is None:
            (out / file).unlink(missing_ok=True)  # of an earlier comparison in this folder
            continue
        replace_file(out / file, partial(save_png, figure))
        figures.append((file, text))
    write_text(out / "compare.csv", as_csv(comparison))
    write_text(out / "compare.md", markdown_page(comparison, command, figures))
    write_text(out / "compare.html", comparison_page(comparison, command))
    return [out / file for file in ("compare.md", "compare.csv", "compare.html", *(file for file, _ in figures))]

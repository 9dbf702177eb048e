"""Several methods under several seeds: plan the runs, carry them out, read them back as one comparison."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypedDict

from fedrec.errors import BadInput, unknown
from fedrec.evaluation.canary import chance, guesses
from fedrec.experiment import pool
from fedrec.experiment.alike import of_runs
from fedrec.experiment.entrants import Entrant, entrants, finished
from fedrec.experiment.fitting import fitting
from fedrec.experiment.jobs import Job, OtherSettings, reason_of
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.resolve import resolve
from fedrec.extras import installed
from fedrec.methods.registry import find as find_method
from fedrec.report.model.columns import canary_metric, main_metric, shown
from fedrec.report.model.comparison import CONTROLS, NOT_YET, Comparison, Failure, compare_runs
from fedrec.report.model.runs import load_run
from fedrec.runs.atomic import keep_text
from fedrec.runs.folder import RunFolder
from fedrec.runs.sealed import Damaged
from fedrec.runs.settings import RunSettings

USUAL_SEEDS = (0, 1, 2)
OF_THE_FILE = ("data", "protocol", "min_interactions", "columns", "min_rating")
"""Settings by which data is read: two runs with the same ones read the same."""


@dataclass(frozen=True)
class Jobs:
    """All runs of a comparison, checked before the first one starts."""

    jobs: tuple[Job, ...]
    failures: tuple[Failure, ...]
    """Methods that could not even be loaded, runs whose folders are damaged."""
    out: Path
    control: RunSettings
    """How `random` is run: its data is that of all."""


def plan_all(
    methods: Sequence[str],
    seeds: Sequence[int] | None,
    data: Sequence[str],
    given: Mapping[str, Any],
    sets: Mapping[str, Any] | None = None,
    out: Path | None = None,
    recipes: Sequence[Mapping[str, Any]] = (),
) -> list[Jobs]:
    """The runs of a comparison on several data sets, each in a folder of its own below ``out``."""
    out = out or Path("runs") / "leaderboard"
    each = distinct(data)
    return [plan(methods, seeds, {**given, "data": one}, sets, out / folder_of(one), recipes) for one in each]


def plan(
    methods: Sequence[str],
    seeds: Sequence[int] | None,
    given: Mapping[str, Any],
    sets: Mapping[str, Any] | None = None,
    out: Path | None = None,
    recipes: Sequence[Mapping[str, Any]] = (),
) -> Jobs:
    """The runs that a comparison needs, controls included.

    ``methods``: names, variants (``fedavg:lr=0.1``), methods of a file (``my.py:Mine``), folders of finished runs.
    ``seeds``: 0, 1 and 2 where None, or those of the folders where there is nothing else.

    ``given``: run settings of all methods (``data``, ``protocol``, ``rounds``...). ``sets``: method settings;
    ``key`` goes to every method that has it, ``METHOD.key`` to one. ``recipes``: entries of a file of the user's own,
    over the papers'. Whatever is wrong is bad input now.
    """
    if not methods:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    if given.get("test") is False:
        raise BadInput("a comparison is one of test figures; leave --no-test out (fedrec tune chooses on validation)")
    found = entrants(methods)
    given = of_runs(finished(found), given)
    if seeds is None:
        ready = all(one.done for one in found)
        seeds = [run.seed for one in found for _, run in one.done] if ready else USUAL_SEEDS
    if not seeds:
        raise BadInput("no seed is given; name at least one, for example --seeds 0,1,2")
    found += [Entrant(name, name) for name in CONTROLS if name not in {one.name for one in found}]
    seeds = list(dict.fromkeys(seeds))
    base = default_folder(str(given.get("data", "demo")), str(given.get("protocol", "strict")))
    folder = out or base
    for number in count(2):  # a comparison with other settings stands next to the first
        try:
            return _planned(found, seeds, given, sets or {}, folder, recipes)
        except OtherSettings:
            if out is not None:
                raise
            folder = base.with_name(f"{base.name}-{number}")
    raise AssertionError("there is always a free folder")


def _planned(
    found: Sequence[Entrant],
    seeds: Sequence[int],
    given: Mapping[str, Any],
    sets: Mapping[str, Any],
    folder: Path,
    recipes: Sequence[Mapping[str, Any]],
) -> Jobs:
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; give --out a folder")
    kinds, failures = _kinds([one for one in found if not one.done], seeds)
    own = share_settings(kinds, [one.method for one in found], sets)
    jobs = [Job(settings, path, "finished", one.name) for one in found for path, settings in one.done]
    control = next((settings for one in found if one.name == "random" for _, settings in one.done), None)
    for seed in seeds:  # all methods under one seed first: an interrupted comparison is complete as far as it goes
        for one in found:
            if one.done or one.method not in kinds:
                continue
            chosen = {**own[one.method], **one.settings}
            suits = fitting(kinds[one.method], given)
            settings = resolve(one.method, {**suits, "seed": seed, "settings": chosen}, recipes)
            control = settings if one.name == "random" and control is None else control
            path = folder / f"{re.sub(r'[^-+.=,0-9A-Za-z_]+', '-', one.name)}-seed{seed}"
            try:
                jobs.append(Job.at(path, settings, one.name))
            except Damaged as problem:  # its run is named, the others go on
                failures.append(Failure(one.name, seed, reason_of(problem)))
    assert control is not None
    return Jobs(tuple(jobs), tuple(failures), folder, control)


def default_folder(data: str, protocol: str) -> Path:
    """``runs/compare-DATA-PROTOCOL``."""
    return Path("runs") / f"compare-{folder_of(data)}-{protocol}"


def folder_of(data: str) -> str:
    """What a data set or a file is called among folders."""
    return re.sub(r"[^\w.-]+", "-", Path(data).name)


def distinct(data: Sequence[str]) -> list[str]:
    """Each data set once, however often it is named; two of one name would share a folder."""
    found: dict[str, tuple[str, str]] = {}
    for one in data:
        place = os.path.realpath(one) if Path(one).exists() else one
        before = found.setdefault(folder_of(one), (place, one))
        if before[0] != place:
            raise BadInput(f"{before[1]} and {one} have one name, and so one folder of runs; rename one of them")
    return [one for _, one in found.values()]


def _kinds(found: Sequence[Entrant], seeds: Sequence[int]) -> tuple[dict[str, Any], list[Failure]]:
    kinds: dict[str, Any] = {}
    failures: list[Failure] = []
    for one in found:
        try:
            kinds[one.method] = find_method(one.method)
        except BadInput:
            raise
        except Exception as problem:  # a package that does not import loses its own runs, not the others
            failures += [Failure(one.name, seed, reason_of(problem)) for seed in seeds]
    return kinds, failures


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
    known = [_known(jobs) for jobs in plans]  # first: missing data is bad input, not a failure of every method
    heap = sorted((job for jobs in plans for job in jobs.jobs), key=lambda job: job.settings.seed)
    reasons = pool.carry_out(heap, parallel=parallel, memory_mb=memory_mb, watcher=watcher, start=start)
    return [_compared(jobs, by_chance, reasons) for jobs, by_chance in zip(plans, known, strict=True)]


def _compared(jobs: Jobs, known: ByChance, reasons: Mapping[Path, str]) -> Comparison:
    reasons, loaded = dict(reasons), []
    for job in jobs.jobs:
        if job.folder in reasons:
            continue
        try:
            loaded.append(load_run(job.folder, job.name))
        except BadInput as problem:  # damaged since it was made: it is named, the others are shown
            reasons[job.folder] = reason_of(problem)
    lost = [Failure(job.name, job.settings.seed, reasons[job.folder]) for job in jobs.jobs if job.folder in reasons]
    failures = [*jobs.failures, *lost]
    if not loaded and failures[0].reason == NOT_YET:
        raise BadInput(f"no run in {jobs.out} is finished; start the runs with the same command without --so-far")
    if not loaded:
        raise RuntimeError(f"every run failed; the first one: {failures[0].reason}")
    return compare_runs(loaded, failures=failures, **known)


class ByChance(TypedDict):
    """What :func:`compare_runs` is told of guessing under a protocol on some data."""

    chance: dict[str, float]
    """What a random scorer gets, by metric."""
    guesses: float
    """How many guesses are independent where all clients rank alike."""


def exact_chance(prepared: Prepared) -> ByChance:
    """What guessing gets under a run's protocol on its data."""
    task = prepared.task
    names = dict.fromkeys([*shown(task.protocol), main_metric(task.protocol), canary_metric(task.protocol)])
    values = {name: chance(task, "test", name) for name in names if not name.endswith("!")}
    return {"chance": values, "guesses": guesses(task, "test")}


def _known(jobs: Jobs) -> ByChance:
    """The same for a comparison; its runs that are there already must have been made from the data as it is now."""
    prepared = prepare(jobs.control)
    for job in jobs.jobs:
        same = all(getattr(job.settings, key) == getattr(jobs.control, key) for key in OF_THE_FILE)
        if job.state == "new" or not same:
            continue
        before = RunFolder(job.folder).fingerprint()[0]
        changed = None if before is None else before.change_to(prepared.fingerprint)
        if changed is not None:
            raise BadInput(
                f"{job.folder} was made from other data: {changed}; restore the data, or choose another --out"
            )
    return exact_chance(prepared)


def write_leaderboard(comparisons: Sequence[Comparison], out: Path, command: str = "") -> list[Path]:
    """Write ``leaderboard.md``, ``.csv``, ``.tex`` and ``.html``, and the ranks as a picture."""
    from fedrec.report.figures.files import save_all
    from fedrec.report.figures.mean_ranks import rank_plot
    from fedrec.report.model.leaderboard import Leaderboard
    from fedrec.report.model.mean_ranks import mean_ranks
    from fedrec.report.page.leaderboard import leaderboard_page
    from fedrec.report.text.latex import board_latex
    from fedrec.report.text.leaderboard import as_csv, markdown_page

    board = Leaderboard(tuple(comparisons))
    ranks = mean_ranks(board, comparisons[0].main)
    drawn = save_all(rank_plot(ranks) if ranks is not None and installed("matplotlib") else None, out / "ranks")
    keep_text(out / "leaderboard.md", markdown_page(board, command, drawn[0].name if drawn else ""))
    keep_text(out / "leaderboard.csv", as_csv(board))
    keep_text(out / "leaderboard.tex", board_latex(board, command))
    keep_text(out / "leaderboard.html", leaderboard_page(board, command))
    return [*(out / f"leaderboard.{end}" for end in ("md", "csv", "tex", "html")), *drawn]


def write_report(comparison: Comparison, out: Path, command: str = "") -> list[Path]:
    """Write ``compare.md``, ``.csv``, ``.tex``, ``.html``, the figure and, where there are rounds, ``curves``."""
    from fedrec.report.figures.comparison import curve_plot, dot_plot
    from fedrec.report.figures.files import save_all
    from fedrec.report.page.comparison import comparison_page
    from fedrec.report.text.latex import comparison_latex
    from fedrec.report.text.markdown import markdown_page
    from fedrec.report.text.records import as_csv

    out.mkdir(parents=True, exist_ok=True)  # where all runs lie elsewhere nobody has made it
    figures, files = [], []
    drawn = ("compare", dot_plot, "of every method"), ("curves", curve_plot, "on validation over rounds")
    for name, draw, what in drawn:
        own = save_all(draw(comparison) if installed("matplotlib") else None, out / name)
        files += own
        figures += [(path.name, f"{comparison.main} {what}") for path in own[:1]]
    keep_text(out / "compare.csv", as_csv(comparison))
    keep_text(out / "compare.tex", comparison_latex(comparison, command))
    keep_text(out / "compare.md", markdown_page(comparison, command, figures))
    keep_text(out / "compare.html", comparison_page(comparison, command))
    return [*(out / f"compare.{end}" for end in ("md", "csv", "tex", "html")), *files]

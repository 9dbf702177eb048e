"""Several methods under several seeds: plan the runs, carry them out, read them back as one comparison."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from fedrec import running
from fedrec.core.reference import Reference
from fedrec.errors import BadInput, unknown
from fedrec.evaluation.canary import chance
from fedrec.methods.registry import find as find_method
from fedrec.report.columns import canary_metric, main_metric, shown
from fedrec.report.comparison import CONTROLS, Comparison, Failure, compare_runs
from fedrec.report.runs import load_run
from fedrec.runs.atomic import replace_file, write_text
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings

HOW_ONLY = ("data_dir", "memory_mb", "checkpoint_seconds")
"""Settings that say how a run is carried out and do not change its result."""

State = Literal["new", "unfinished", "finished"]


@dataclass(frozen=True)
class Job:
    """One run of a comparison."""

    settings: RunSettings
    folder: Path
    state: State

    @property
    def label(self) -> str:
        return f"{self.settings.method} seed {self.settings.seed}"


@dataclass(frozen=True)
class Jobs:
    """All runs of a comparison, checked before the first one starts."""

    jobs: tuple[Job, ...]
    failures: tuple[Failure, ...]
    """Methods that could not even be loaded."""
    out: Path


OnJob = Callable[[Job, int, int], Any]
"""Called before each run with its number and how many there are; gives what ``cli.progress.Watch`` is."""


def plan(
    methods: Sequence[str],
    seeds: Sequence[int],
    given: Mapping[str, Any],
    sets: Mapping[str, Any] | None = None,
    out: Path | None = None,
) -> Jobs:
    """The runs that a comparison needs, controls included.

    ``given``: run settings of all methods (``data``, ``protocol``, ``rounds``...). ``sets``: method settings;
    ``key`` goes to every method that has it, ``METHOD.key`` to one. Whatever is wrong is bad input now.
    """
    if not methods:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    if not seeds:
        raise BadInput("no seed is given; name at least one, for example --seeds 0,1,2")
    names = list(dict.fromkeys([*methods, *CONTROLS]))
    seeds = list(dict.fromkeys(seeds))
    folder = out or default_folder(str(given.get("data", "demo")), str(given.get("protocol", "strict")))
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; give --out a folder")
    kinds, failures = _kinds(names, seeds)
    own = share_settings(kinds, names, sets or {})
    jobs = []
    for seed in seeds:  # all methods under one seed first: an interrupted comparison is complete as far as it goes
        for name, kind in kinds.items():
            settings = running.resolve(name, {**_fitting(kind, given), "seed": seed, "settings": own[name]})
            path = folder / f"{name}-seed{seed}"
            jobs.append(Job(settings, path, folder_state(path, settings)))
    return Jobs(tuple(jobs), tuple(failures), folder)


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


def folder_state(path: Path, settings: RunSettings) -> State:
    """Whether the folder is free, or holds this very run; anything else in it is bad input."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return "new"
    advice = "choose another --out, or remove it"
    try:
        folder = RunFolder.open(path)
        there = folder.settings()
    except Exception:
        raise BadInput(f"{path} is used for something else than a run; {advice}") from None
    before, now = (s.model_dump(mode="json", exclude=set(HOW_ONLY)) for s in (there, settings))
    flat = [{**{k: v for k, v in one.items() if k != "settings"}, **one["settings"]} for one in (before, now)]
    changed = [key for key in {**flat[0], **flat[1]} if flat[0].get(key) != flat[1].get(key)]
    if changed:
        first = f"{changed[0]} is {flat[0].get(changed[0])!r} there, {flat[1].get(changed[0])!r} now"
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise BadInput(f"{path} holds a run with other settings ({first}{more}); {advice}")
    return "finished" if folder.finished else "unfinished"


def carry_out(jobs: Jobs, on_job: OnJob | None = None) -> Comparison:
    """Run what is not there yet, resume what was cut off, read the rest. A failure costs one run only."""
    known = exact_chance(jobs)  # first: data that cannot be had is bad input, not a failure of every method
    failures = list(jobs.failures)
    for number, job in enumerate(jobs.jobs, 1):
        watch = on_job(job, number, len(jobs.jobs)) if on_job else None
        if job.state == "finished":
            continue
        watching = (watch.round, watch.start) if watch is not None else (None, None)
        try:
            if job.state == "new":
                running.execute(job.settings, job.folder, *watching)
            else:
                running.resume(job.folder, *watching)
        except Exception as problem:
            if os.environ.get("FEDREC_DEBUG"):
                raise
            failures.append(Failure(job.settings.method, job.settings.seed, reason_of(problem)))
        finally:
            if watch is not None:
                watch.stop()
    lost = {(failure.method, failure.seed) for failure in failures}
    finished = [job.folder for job in jobs.jobs if (job.settings.method, job.settings.seed) not in lost]
    if not finished:
        raise RuntimeError(f"every run failed; the first because of {failures[0].reason}")
    return compare_runs(map(load_run, finished), failures=failures, chance=known)


def exact_chance(jobs: Jobs) -> dict[str, float]:
    """What a random scorer gets under the comparison's protocol on its data, by metric."""
    control = next(job for job in jobs.jobs if job.settings.method == "random")
    task = running.prepare(control.settings).task
    names = dict.fromkeys([*shown(task.protocol), main_metric(task.protocol), canary_metric(task.protocol)])
    return {name: chance(task, "test", name) for name in names if not name.endswith("!")}


def reason_of(problem: BaseException) -> str:
    """One line on why a run failed."""
    text = " ".join(str(problem).split())
    if isinstance(problem, BadInput):
        return text
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__


def write_report(comparison: Comparison, out: Path, command: str = "") -> list[Path]:
    """Write ``compare.md``, ``.csv``, ``.html``, ``.png`` and, where there are rounds, ``curves.png``."""
    from fedrec.report.canvas import save_png
    from fedrec.report.figures import curve_plot, dot_plot
    from fedrec.report.markdown import markdown_page
    from fedrec.report.page_comparison import comparison_page
    from fedrec.report.records import as_csv

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

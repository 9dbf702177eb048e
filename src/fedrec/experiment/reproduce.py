"""A published table, made again: plan its cells, carry them out, put the published value, ours and strict side by side.

A cell is a method with the row's settings on a column's data under one seed, once under the paper's protocol and once
under `strict`. Every cell is a run folder; those that several tables share (FedCA's main row, the controls) run once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedrec.core.reference import Reference
from fedrec.data.fetch import by_hand
from fedrec.data.load import default_data_dir
from fedrec.data.sources import SOURCES
from fedrec.data.synthetic import WORLDS
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.experiment import pool
from fedrec.experiment.compare import exact_chance
from fedrec.experiment.jobs import Job, once, reason_of
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.extras import installed
from fedrec.methods.registry import find as find_method
from fedrec.methods.registry import names as method_names
from fedrec.recipes.published import Column, PublishedTable, TableRow
from fedrec.report.model.comparison import CONTROLS, NOT_YET, compare_runs
from fedrec.report.model.reproduction import Line, Panel, Reproduction, line_of
from fedrec.report.model.runs import FinishedRun, load_run
from fedrec.runs.recipes import recipe
from fedrec.runs.settings import RunSettings

QUICK_ROUNDS = 3
CHECKPOINT_SECONDS = 60.0
"""Tables of all clients are large: a checkpoint every ten seconds would cost more than it saves."""


@dataclass(frozen=True)
class Spot:
    """One row on one data set: its runs under both protocols, or why there are none."""

    row: TableRow
    column: Column
    control: bool
    ours: tuple[Job, ...] = ()
    strict: tuple[Job, ...] = ()
    absent: str = ""


@dataclass(frozen=True)
class Work:
    """All that a table needs, checked before the first run."""

    table: PublishedTable
    seeds: tuple[int, ...]
    out: Path
    quick: bool
    spots: tuple[Spot, ...]
    missing: Mapping[str, str]
    """By column: which file is missing."""
    recipes: tuple[Mapping[str, Any], ...] = ()
    """Entries of a file of the user's own (tuned settings, say), over the papers'."""
    strict: bool = True
    """Whether every row runs under `strict` too; where not, runs that are finished are shown all the same."""

    @property
    def rounds(self) -> int | None:
        return min(QUICK_ROUNDS, self.table.rounds or QUICK_ROUNDS) if self.quick else self.table.rounds

    @property
    def jobs(self) -> list[Job]:
        """Every run once: all rows under one seed first, so that an interrupted table is complete as far as it goes."""
        spots = sorted(self.spots, key=lambda spot: not spot.control)  # controls first: they say what the rest is worth
        pairs = ((spot, slice(place, place + 1)) for place in range(len(self.seeds)) for spot in spots)
        return once(job for spot, some in pairs for job in (*spot.ours[some], *spot.strict[some]))


def plan(
    table: PublishedTable,
    seeds: Sequence[int],
    out: Path,
    *,
    quick: bool = False,
    given: Mapping[str, Any] | None = None,
    recipes: Sequence[Mapping[str, Any]] = (),
    strict: bool = True,
) -> Work:
    """The runs that a table needs. ``given``: run settings of all of them (``data_dir``, ``device``, ``memory_mb``)."""
    if not seeds:
        raise BadInput("no seed is given; name at least one, for example --seeds 0,1,2")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; give --out a folder")
    seeds = tuple(dict.fromkeys(seeds))
    work = Work(table, seeds, out, quick, (), {}, tuple(recipes), strict)
    given = {"checkpoint_seconds": CHECKPOINT_SECONDS, "keep_selected": False, **(given or {})}
    missing = {column.key: lacking(column, given.get("data_dir")) for column in table.columns}
    spots = []
    for column in table.columns:
        rows = [(row, False) for row in table.rows if column.key in row.published]
        runnable = not missing[column.key] and any(not absent(row) for row, _ in rows)
        rows += [(TableRow(name, name, {}), True) for name in CONTROLS if runnable]
        for row, control in rows:
            why = missing[column.key] or absent(row)
            spots.append(Spot(row, column, control, absent=why) if why else _spot(work, row, column, control, given))
    return replace(work, spots=tuple(spots), missing={key: why for key, why in missing.items() if why})


def lacking(column: Column, data_dir: Path | None) -> str:
    """Which file of a column's data is missing and where to put it; empty where it is there."""
    if not column.data:
        return column.missing
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    source = SOURCES.get(column.data)
    if source is not None:
        if source.find(folder / source.name) is not None:
            return ""
        how = by_hand(source, folder / source.name)
        return f"{source.name} is not in {folder}; run 'fedrec data get {source.name}'. {how}"
    if column.data.partition(":")[0] in WORLDS or Path(column.data).exists() or (folder / column.data).exists():
        return ""
    return (
        f"the paper's own partition {column.data} is not in {folder}; place train, valid and test (.tsv or .tsv.gz, "
        f"columns client, user, item) in {folder / column.data}"
    )


def absent(row: TableRow) -> str:
    """Why a row cannot be run by this version; empty where it can."""
    if row.blocked:
        return f"not in this version: needs {row.blocked}"
    return "" if row.method in method_names() else f"not in this version: the method {row.method}"


def _spot(work: Work, row: TableRow, column: Column, control: bool, given: Mapping[str, Any]) -> Spot:
    ours: list[Job] = []
    strict: list[Job] = []
    for seed in work.seeds:
        try:
            pair = settings_of(row, column, seed, work, given)
        except (BadInput, ImportError) as problem:  # a setting or a package that this version lacks
            return Spot(row, column, control, absent=f"not in this version: {reason_of(problem)}")
        name = folder_name(pair[0])
        for settings, jobs in zip(pair, (ours, strict), strict=True):
            path = work.out / "runs" / column.key / settings.protocol / name
            job = Job.at(path, settings)
            if jobs is ours or work.strict or job.state == "finished":
                jobs.append(job)
    return Spot(row, column, control, tuple(ours), tuple(strict))


def settings_of(
    row: TableRow, column: Column, seed: int, work: Work, given: Mapping[str, Any]
) -> tuple[RunSettings, RunSettings]:
    """Settings of one cell under the paper's protocol and under `strict`: the same method, evaluated in two ways.

    The row's settings over the paper's recipe over the method's own; under `strict`, the user's recipes over all.
    """
    kind = find_method(row.method)
    chosen: dict[str, Any] = {**given, **column.run, **row.run, "data": column.data, "seed": seed}
    if issubclass(kind, Reference):
        rounds = min(QUICK_ROUNDS, kind.rounds) if work.quick and not kind.one_shot else None
    else:
        rounds = row.rounds or work.rounds
    chosen |= {} if rounds is None else {"rounds": rounds}
    ours = resolve(
        row.method, {**chosen, "protocol": work.table.protocol, "settings": dict(row.settings)}, work.recipes
    )
    chosen |= same_users(ours)
    chosen |= {"settle": ours.settle}
    chosen |= {} if issubclass(kind, Reference) else {"rounds": ours.rounds, "participation": ours.participation}
    tuned = recipe(row.method, column.data, "strict", ours.settings, work.recipes, papers=False)
    chosen |= {} if work.quick else tuned.run
    own = {**ours.settings, **tuned.settings}
    strict = resolve(row.method, {**chosen, "protocol": "strict", "settings": own})
    return ours, strict


def same_users(ours: RunSettings) -> dict[str, int]:
    """The filter that gives `strict` the users of the paper's protocol, where it would have others of itself."""
    source, paper = SOURCES.get(ours.data), find_protocol(ours.protocol).paper
    if source is None or ours.min_interactions is not None or source.filter_for(paper) == source.filter_for(None):
        return {}
    return {"min_interactions": max(1, source.filter_for(paper))}


def folder_name(settings: RunSettings) -> str:
    """``fedca-alpha0.3-seed0``: what differs from the recipe; rows that mean the same run have the same name."""
    usual = resolve(settings.method, {"data": settings.data, "protocol": settings.protocol}).settings
    own = {key: value for key, value in settings.settings.items() if usual.get(key) != value}
    own |= {"share": settings.train_share} if settings.train_share != 1 else {}
    words = "-".join(f"{key}{value}" for key, value in sorted(own.items()))
    words = re.sub(r"[^\w.=-]+", "_", words)
    if len(words) > 60:
        words = hashlib.sha256(words.encode()).hexdigest()[:12]
    return "-".join(part for part in (settings.method, words, f"seed{settings.seed}") if part)


def carry_out(
    work: Work,
    *,
    parallel: int = 1,
    memory_mb: int | None = None,
    watcher: pool.Watcher | None = None,
    start: bool = True,
) -> Reproduction:
    """Run what is not there yet, then read it all back as one table; without ``start``, read what is finished.

    What failed or is missing is named.
    """
    failures = pool.carry_out(work.jobs, parallel=parallel, memory_mb=memory_mb, watcher=watcher, start=start)
    loaded = {job.folder: load_run(job.folder) for job in work.jobs if job.folder not in failures}
    panels = []
    for column in work.table.columns:
        spots = [spot for spot in work.spots if spot.column is column]
        lines = tuple(_line(work, spot, loaded, failures) for spot in spots)
        panel = Panel(column, lines, work.missing.get(column.key, ""))
        panels.append(_with_controls(panel, spots, loaded))
    waiting = sum(reason == NOT_YET for reason in failures.values())
    return Reproduction(work.table, tuple(panels), work.seeds, work.rounds, work.quick, waiting)


def _line(work: Work, spot: Spot, loaded: Mapping[Path, FinishedRun], failures: Mapping[Path, str]) -> Line:
    lost = [
        f"{spot.row.name} on {spot.column.key}, {job.settings.protocol}, seed {job.settings.seed}: "
        f"{failures[job.folder]}"
        for job in (*spot.ours, *spot.strict)
        if failures.get(job.folder, NOT_YET) != NOT_YET
    ]
    ours, strict = ([loaded[job.folder] for job in jobs if job.folder in loaded] for jobs in (spot.ours, spot.strict))
    return line_of(
        spot.row, work.table, spot.column, ours, strict, absent=spot.absent, failures=lost, control=spot.control
    )


def _with_controls(panel: Panel, spots: Sequence[Spot], loaded: Mapping[Path, FinishedRun]) -> Panel:
    """Chance and the leak banner, from the controls under each protocol."""
    controls = [spot for spot in spots if spot.control]
    for which in ("ours", "strict"):
        jobs = [job for spot in controls for job in getattr(spot, which)]
        runs = [loaded[job.folder] for job in jobs if job.folder in loaded]
        if not runs:
            continue
        by_chance = exact_chance(prepare(next(job for job in jobs if job.settings.method == "random").settings))
        banner = compare_runs(runs, **by_chance).banner
        if which == "ours":
            panel = replace(panel, banner=banner, chance=by_chance["chance"])
        else:
            panel = replace(panel, strict_banner=banner)
    return panel


def write_report(done: Reproduction, out: Path, command: str = "") -> list[Path]:
    """Write ``tableN.md``, ``.csv``, ``.tex``, ``.html`` and a figure for every data set."""
    from fedrec.report.figures.files import save_all
    from fedrec.report.figures.reproduction import dot_plot
    from fedrec.report.page.reproduction import reproduction_page
    from fedrec.report.text.latex import reproduction_latex
    from fedrec.report.text.reproduction import as_csv, markdown_page
    from fedrec.runs.atomic import keep_text

    out.mkdir(parents=True, exist_ok=True)
    figures, files = [], []
    for panel in done.panels:
        figure = dot_plot(done, panel) if done.table.kind == "quality" and installed("matplotlib") else None
        own = save_all(figure, out / f"{done.file}-{panel.column.key}")
        if own:
            files += own
            figures.append((own[0].name, f"{done.table.metrics[0]} on {panel.column.label}: published, ours, strict"))
    keep_text(out / f"{done.file}.csv", as_csv(done))
    keep_text(out / f"{done.file}.md", markdown_page(done, command, figures))
    keep_text(out / f"{done.file}.tex", reproduction_latex(done, command))
    keep_text(out / f"{done.file}.html", reproduction_page(done, command))
    return [out / f"{done.file}{end}" for end in (".md", ".csv", ".tex", ".html")] + files

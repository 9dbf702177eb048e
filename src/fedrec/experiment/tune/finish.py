"""What a search leaves behind: a recipe that runs can be given, the importance of each setting, and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedrec.core.reference import Reference
from fedrec.experiment.tune.launch import State
from fedrec.experiment.tune.study import STUDY, Study
from fedrec.extras import installed
from fedrec.methods.registry import find as find_method
from fedrec.report.model.search import Search
from fedrec.report.text.search import markdown_page
from fedrec.runs.atomic import keep_text
from fedrec.runs.recipes import read_recipes
from fedrec.runs.settings import HERE
from fedrec.runs.yaml_file import dump_yaml

RECIPE = "recipe.yaml"
OF_THE_SEARCH = ("data", "protocol", "seed", "settings", *HERE)
"""What was given to the search and is no part of what it found."""


def write_reports(state: State, out: Path, command: str = "") -> tuple[list[Search], list[Path]]:
    """Page and pictures of all searches that have a result; their recipe, with that of the folder's other searches."""
    searches, entries, written = [], [], []
    for study in state.studies:
        search = study.search(state.known)
        if study.space.ranges:
            from fedrec.experiment.tune.suggest import importance

            search = replace(search, importance=importance(study.space, search.trials))
        searches.append(search)
        if search.best is None:
            continue
        entries.append(entry(study, search))
        keep_text(study.folder / RECIPE, dump_yaml({"defaults": entries[-1:]}))
        if len(search.trials) > 1 and installed("matplotlib"):  # without it, --so-far draws on another machine
            from fedrec.report.figures.files import save
            from fedrec.report.figures.search import search_plot

            written.append(study.folder / "search.png")
            save(search_plot(search), written[-1])
    if entries:
        keep_text(out / RECIPE, dump_yaml({"defaults": entries + of_earlier_calls(state, out)}))
        pictures = [(path.relative_to(out).as_posix(), path.parent.name) for path in written]
        keep_text(out / "tune.md", markdown_page(searches, command, pictures))
        written = [out / RECIPE, out / "tune.md", *written]
    return searches, written


def of_earlier_calls(state: State, out: Path) -> list[dict[str, Any]]:
    """What other methods' searches in the same folder found: a second call must not lose what the first has found."""
    others = {path.parent for path in out.rglob(STUDY)} - {study.folder for study in state.studies}
    recipes = [folder / RECIPE for folder in sorted(others) if (folder / RECIPE).is_file()]
    return [found for path in recipes for found in read_recipes(path)]


def entry(study: Study, search: Search) -> dict[str, Any]:
    """The best trial as an entry of a recipe file."""
    best = search.best
    assert best is not None
    inside = study.space.point(best.own) if study.space.ranges else None
    own = {} if inside is None else {**study.space.fixed, **inside}
    run = {key: value for key, value in study.given.items() if key not in OF_THE_SEARCH}
    kind = find_method(study.method)
    if not (issubclass(kind, Reference) and kind.one_shot):
        run |= {"rounds": best.rounds, "evaluate_every": int(best.settings["evaluate_every"])}
    counts = search.counts()
    ended = counts["complete"] + counts["pruned"] + counts["failed"]
    which = "the recipe as it stood" if best.number == 0 else f"trial {best.number}"
    source = f"fedrec tune: {which}, best of {ended} trials ({search.metric} {best.value:.4f} on validation)"
    found = {"methods": [study.method], "data": [study.data], "protocols": [study.base.protocol], "source": source}
    return {**found, "run": run, "settings": {**own, **study.given.get("settings", {})}}


def unfinished(state: State) -> Sequence[Study]:
    """Searches that have trials left."""
    return [study for study in state.studies if len(state.over(study)) < study.limit]

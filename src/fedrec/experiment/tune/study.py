"""A search for one method's settings on one data set: what defines it, and its folder.

study.yaml        what is searched, with its checksum; all who work in the folder must mean the same
claims/           who works on which trial
trials/0007/      a run folder for every trial; the truth about it
recipe.yaml       the best settings, once the search is over
../data.npz       the data, as it was read
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedrec.core.population import Population
from fedrec.core.reference import Reference
from fedrec.core.settings import build
from fedrec.errors import BadInput, quoted
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.experiment.compare import distinct, folder_of, share_settings
from fedrec.experiment.entrants import named
from fedrec.experiment.resolve import resolve
from fedrec.experiment.tune.steps import rounds_within, steps_a_round
from fedrec.methods.registry import find as find_method
from fedrec.recipes.search_spaces import Space, space
from fedrec.report.model.search import Search, Trial, read_trials
from fedrec.runs.atomic import keep_text, writing_to
from fedrec.runs.sealed import read_sealed_yaml, sealed_yaml
from fedrec.runs.settings import HERE, RunSettings
from fedrec.runs.yaml_file import dump_yaml, parse_yaml

RUNGS = 8
"""How often in its life a trial is held against the others; it is evaluated twice as often."""
STEPS = 1000
"""Optimiser steps of the mean client in a trial, unless said otherwise."""
STUDY = "study.yaml"


@dataclass(frozen=True)
class Budget:
    """How much a search may cost."""

    trials: int = 15
    """Trials of each search."""
    steps: int = STEPS
    """Optimiser steps of the mean client in one trial."""
    rounds: int | None = None
    """Most rounds of a trial; the space's where None."""
    total_steps: float | None = None
    """Optimiser steps of the mean client in all trials of a search."""
    hours: float | None = None
    """Of this call."""

    def __post_init__(self) -> None:
        check_limits(asdict(self))


def check_limits(limits: Mapping[str, float | None], mark: str = "") -> None:
    """Refuse what is no limit; ``mark`` stands before the names, as they were given."""
    for name, value in limits.items():
        if value is not None and (value < 0 or (value == 0 and name != "hours")):
            raise BadInput(f"{mark}{name} {value:g} is out of range; give a number above 0")


@dataclass(frozen=True)
class Study:
    """One method on one data set."""

    folder: Path
    method: str
    given: Mapping[str, Any]
    """Run settings that the user gave, ``data`` among them, and method settings under ``settings``."""
    space: Space
    budget: Budget

    @property
    def data(self) -> str:
        return str(self.given.get("data", "demo"))

    @property
    def label(self) -> str:
        return f"{self.method} on {self.data}"

    @property
    def claims(self) -> Path:
        return self.folder / "claims"

    @property
    def packed(self) -> Path:
        """The data, as it was read: the same for all methods."""
        return self.folder.parent / "data.npz"

    def trial(self, number: int) -> Path:
        return self.folder / "trials" / f"{number:04d}"

    @property
    def limit(self) -> int:
        """Trials there will be: no more than there are different ones."""
        return int(min(self.budget.trials, self.space.size))

    @property
    def unsearched(self) -> bool:
        """Whether it has settings, but nobody says which of them to search."""
        return not space(self.method).ranges and bool(find_method(self.method).Settings.model_fields)

    @cached_property
    def base(self) -> RunSettings:
        """The first trial's settings but for its length: the recipe as it stands."""
        return self._settings({}, None)

    @cached_property
    def metric(self) -> str:
        return find_protocol(self.base.protocol).selection.metric

    @property
    def seed(self) -> int:
        return self.base.seed

    def check_space(self) -> None:
        """Refuse settings that do not exist, and ranges that go beyond what a setting may be."""
        kind = find_method(self.method)
        usual = {**self.base.settings, **self.space.fixed}
        for key, one in self.space.ranges.items():
            for value in one.ends:
                build(kind.Settings, {**usual, key: value}, f"{self.method}'s search")

    def settings(self, point: Mapping[str, Any] | None, people: Population) -> RunSettings:
        """A trial's settings at a point of the space (None: the recipe), as long as the cap on steps allows."""
        own = {} if point is None else {**self.space.fixed, **point}
        kind = find_method(self.method)
        usual = 1
        if issubclass(kind, Reference):
            usual = kind.rounds
            if kind.one_shot:
                return self._settings(own, 1)
        chosen = self._settings(own, None)
        steps = steps_a_round(self.method, build(kind.Settings, dict(chosen.settings), self.method), people)
        most = self.budget.rounds or self.space.rounds
        # a pass over all data makes many steps: a centralised model gets at least its usual passes
        return self._settings(own, rounds_within(self.budget.steps, steps, most, min(most, usual)))

    def steps_of(self, trial: Trial, people: Population) -> float:
        """Optimiser steps of the mean client that a trial has made."""
        made = build(find_method(self.method).Settings, dict(trial.own), self.method)
        return steps_a_round(self.method, made, people) * max((done for done, _ in trial.curve), default=0)

    def _settings(self, own: Mapping[str, Any], rounds: int | None) -> RunSettings:
        given = {**self.given, "settings": {**own, **self.given.get("settings", {})}}
        given |= {"test": False, "keep_selected": False, "checkpoint_seconds": 60.0, "settle": 0.0}
        if rounds is not None:
            given |= {"rounds": rounds, "evaluate_every": max(1, rounds // (2 * RUNGS))}
        return resolve(self.method, given)

    def trials(self, known: dict[Path, Trial] | None = None) -> list[Trial]:
        """Those that have been started, read from their folders."""
        return read_trials(self.folder / "trials", self.metric, known)

    def search(self, known: dict[Path, Trial] | None = None) -> Search:
        return Search(self.method, self.data, self.metric, self.space, tuple(self.trials(known)))

    def open(self) -> None:
        """Make the folder, or see that it holds this very search; anything else in it is bad input."""
        path = self.folder / STUDY
        about = self._about()
        if path.is_file():
            there = parse_yaml(path, read_sealed_yaml(path)[0])
            changed = [key for key in {**there, **about} if there.get(key) != about.get(key)]
            if changed:
                before, now = quoted(there.get(changed[0])), quoted(about.get(changed[0]))
                raise BadInput(
                    f"{self.folder} holds a search with other settings ({changed[0]} is {before} there, {now} now); "
                    "choose another --out, or remove it"
                )
        elif self.folder.exists() and any(self.folder.iterdir()) and not self.claims.is_dir():
            raise BadInput(f"{self.folder} is used for something else; choose another --out")
        with writing_to(self.folder, "--out"):
            self.claims.mkdir(parents=True, exist_ok=True)
            (self.folder / "trials").mkdir(exist_ok=True)
            if not path.is_file():
                keep_text(path, sealed_yaml(dump_yaml(about)))

    def _about(self) -> dict[str, Any]:
        run = {key: value for key, value in sorted(self.given.items()) if key not in (*HERE, "settings")}
        return {
            "method": self.method,
            "run": run,
            "settings": dict(self.given.get("settings", {})),
            "steps": self.budget.steps,
            "rounds": self.budget.rounds,
            "fixed": dict(self.space.fixed),
            "space": {key: str(one) for key, one in self.space.ranges.items()},
        }


def plan(
    methods: Sequence[str],
    data: Sequence[str],
    given: Mapping[str, Any],
    sets: Mapping[str, Any],
    budget: Budget,
    out: Path,
) -> list[Study]:
    """The searches of some methods on some data sets; whatever is wrong with them is bad input now."""
    names = list(dict.fromkeys(named(methods)))
    if not names:
        raise BadInput("which methods? name at least one (see `fedrec methods`)")
    protocol = find_protocol(str(given.get("protocol", "strict")))
    if protocol.selection.part != "valid":
        raise BadInput(f"{protocol.name} chooses on the test part, and tuning looks at validation only; take strict")
    if given.get("runtime") == "flower":
        raise BadInput("trials run in process; leave --runtime flower out")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; give --out a folder")
    own = share_settings({name: find_method(name) for name in names}, names, sets)
    studies = []
    for one in distinct(data):
        for name in names:
            free = without(space(name), own[name])
            run = {**given, "data": one, "settings": own[name]}
            if free.device == "cuda" and "device" not in given and gpu_there():
                run["device"] = "cuda"
            study = Study(out / folder_of(one) / name, name, run, free, budget)
            study.check_space()  # what no trial could take is found before any work
            studies.append(study)
    return studies


@cache
def gpu_there() -> bool:
    """Whether torch finds a GPU on this machine."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def without(whole: Space, chosen: Mapping[str, Any]) -> Space:
    """The space without settings that the user has chosen."""
    ranges = {key: one for key, one in whole.ranges.items() if key not in chosen}
    fixed = {key: value for key, value in whole.fixed.items() if key not in chosen}
    return replace(whole, ranges=ranges, fixed=fixed)

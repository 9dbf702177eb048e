"""fedrec: personalised federated recommendation that people can trust, run and ship.

>>> import fedrec
>>> result = fedrec.run("popularity", data="demo")
>>> [r.item for r in result.recommend("u001", k=3)]      # doctest: +SKIP

Who writes a method of their own finds all they need here, too (CONTRIBUTING.md has a whole one):

>>> from fedrec import Card, Method, register, train_block
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from pydantic import Field

    from fedrec.backbones.mf import MatrixFactorisation
    from fedrec.core.fold import add_rows
    from fedrec.core.messages import Download, Model, Private, Rows, Upload, per_client, per_user, shared
    from fedrec.core.method import Card, Method, Update
    from fedrec.core.settings import PrivacySettings, TrainingSettings
    from fedrec.core.sums import SumField, Summand
    from fedrec.data.interactions import Interactions
    from fedrec.experiment.compared import Compared
    from fedrec.experiment.open import Result
    from fedrec.learn.samples import draw
    from fedrec.learn.train import train_block
    from fedrec.methods.registry import register
    from fedrec.report.model.search import Search
    from fedrec.runs.keywords import RunOptions, SharedOptions

__version__ = "0.1.0"
__all__ = [
    "Card", "Download", "Field", "MatrixFactorisation", "Method", "Model", "PrivacySettings", "Private", "Rows",
    "SumField", "Summand", "TrainingSettings", "Update", "Upload", "__version__", "add_rows", "compare", "draw", "load",
    "methods", "open_run", "per_client", "per_user", "register", "run", "shared", "train_block", "tune", "update",
]  # fmt: skip

_HOMES = {
    "pydantic": ("Field",),
    "fedrec.backbones.mf": ("MatrixFactorisation",),
    "fedrec.core.fold": ("add_rows",),
    "fedrec.core.messages": ("Download", "Model", "Private", "Rows", "Upload", "per_client", "per_user", "shared"),
    "fedrec.core.method": ("Card", "Method", "Update"),
    "fedrec.core.settings": ("PrivacySettings", "TrainingSettings"),
    "fedrec.core.sums": ("SumField", "Summand"),
    "fedrec.learn.samples": ("draw",),
    "fedrec.learn.train": ("train_block",),
    "fedrec.methods.registry": ("register",),
}
"""Where the names for authors of methods come from, when they are asked for: importing fedrec takes no time."""


def run(
    method: str,
    data: str | Path | Interactions | Any = "demo",
    *,
    out: str | Path | None = None,
    progress: bool | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Train and evaluate a method; the same options as ``fedrec run``, with ``settings={...}`` for ``--set`` and
    ``columns={...}`` for ``--columns``.

    ``data``: a name, a file, a DataFrame (pandas, polars, pyarrow), or what :func:`load` gave. A run on a table in
    memory recommends like any other, but cannot be resumed or updated: its data is gone with the program.
    ``progress``: a bar in a notebook, plain lines elsewhere; by default in notebooks only.

    >>> fedrec.run("fedavg", data="ml-100k", rounds=50, settings={"dim": 16})      # doctest: +SKIP
    """
    from fedrec.data.load import IN_MEMORY
    from fedrec.experiment import asked
    from fedrec.experiment.notebook import bar
    from fedrec.experiment.prepare import load_data
    from fedrec.experiment.resolve import refuse_federation, resolve
    from fedrec.experiment.run import execute

    method, named = asked.one_method(method), data is None or isinstance(data, str | Path)
    given = {"data": asked.named_data(data) if named else IN_MEMORY, **asked.options(options, "run")}
    refuse_federation(method, given)
    shown, settings = bar(progress, method), resolve(method, given)
    on_round, on_start = (None, None) if shown is None else (shown.round, shown.start)
    loaded = None if named else load_data(settings, data)
    return execute(settings, None if out is None else Path(out), on_round, on_start, loaded)


def compare(
    methods: Sequence[str],
    data: str | Path | None = None,
    *,
    seeds: Sequence[int] | int | None = None,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: bool | None = None,
    **options: Unpack[SharedOptions],
) -> Compared:
    """Several methods under several seeds, with the controls, as ``fedrec compare``; runs lie in ``out``.

    A method may be a variant (``"fedavg:lr=0.1"``) or the folder of a finished run, whose data is then compared on.

    >>> fedrec.compare(["fedavg", "fedca"], data="ml-100k", rounds=50).rows      # doctest: +SKIP
    """
    from fedrec.experiment import asked
    from fedrec.experiment.compare import carry_out, plan
    from fedrec.experiment.compared import Compared
    from fedrec.experiment.notebook import Bars, bar

    given = asked.options(options, "compare", refused=("seed", "method"))
    given |= {} if data is None else {"data": asked.named_data(data)}
    own, parallel, names = given.pop("settings", {}), asked.jobs(jobs), asked.several_methods(methods)
    planned = plan(names, asked.seeds(seeds), given, own, None if out is None else Path(out))
    shown = bar(progress, "runs")
    return Compared.of(carry_out([planned], parallel=parallel, watcher=None if shown is None else Bars(shown))[0])


def tune(
    methods: Sequence[str] | str,
    data: str | Path | Sequence[str] = "demo",
    *,
    out: str | Path,
    trials: int = 15,
    steps: int = 1000,
    rounds: int | None = None,
    hours: float | None = None,
    jobs: int = 1,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> list[Search]:
    """Search for settings on validation data, as ``fedrec tune``; ``out/recipe.yaml`` holds what was found.

    >>> fedrec.tune("fedavg", data="ml-100k", trials=15, out="runs/tune")[0].best      # doctest: +SKIP
    """
    from fedrec.extras import needs

    needs("optuna", "fedrec.tune")
    from fedrec.experiment import asked
    from fedrec.experiment.tune import finish, launch
    from fedrec.experiment.tune.own import OWN
    from fedrec.experiment.tune.study import Budget

    names, parallel = tuple(asked.several_methods(methods)), asked.jobs(jobs)
    sets = tuple(map(asked.named_data, data if isinstance(data, (list, tuple)) else [data]))
    given = asked.options(options, "tune", refused=("method", *(name for name in OWN if name != "runtime")))
    budget = Budget(trials, steps, rounds, hours=hours)
    state = launch.carry_out(
        launch.Order(names, sets, given, asked.settings_of(settings), budget, Path(out)), jobs=parallel
    )
    return finish.write_reports(state, Path(out))[0]


def update(
    run: str | Path | Result,
    data: str | Path | None = None,
    *,
    rounds: int | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
) -> Result:
    """Go on with a finished run whose data has grown, as ``fedrec update``; its folder is only read.

    ``data`` has all that the run learnt from and more; without it the run's own file is read again.

    >>> fedrec.update("runs/a", out="runs/b").metrics      # doctest: +SKIP
    """
    from fedrec.errors import BadInput
    from fedrec.experiment import asked
    from fedrec.experiment.notebook import bar
    from fedrec.experiment.update import update as go_on

    path = Path(run) if isinstance(run, str | Path) else getattr(run.folder, "path", None)
    if path is None:
        raise BadInput("this run was not kept; an update needs its folder: give out=... to fedrec.run")
    shown = bar(progress, "update")
    watch = (None, None) if shown is None else (shown.round, shown.start)
    return go_on(
        path, None if data is None else asked.named_data(data), rounds, None if out is None else Path(out), *watch
    )


def open_run(path: str | Path) -> Result:
    """A finished run, with its metrics and its model."""
    from fedrec.experiment.open import opened

    return opened(Path(path))


def load(
    data: str | Path | Any,
    data_dir: str | Path | None = None,
    *,
    min_interactions: int | None = None,
    columns: Mapping[str, str] | str | None = None,
    min_rating: float | None = None,
) -> Interactions:
    """A data set, file, or folder with a ready split, as ``--data`` reads it; or a DataFrame (pandas, polars, pyarrow).

    ``columns``: which column means what (``{"user": "CustomerID"}``), where its name does not say so.
    """
    from fedrec.data.load import load as read

    folder = None if data_dir is None else Path(data_dir)
    return read(data, folder, min_interactions=min_interactions, columns=columns, min_rating=min_rating)


def methods() -> list[str]:
    """Names of all methods. (Once a method is loaded the package of that name stands here; it answers the same.)"""
    from fedrec.methods.registry import names

    return names()


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module 'fedrec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

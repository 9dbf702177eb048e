"""An option of a run is declared once: the command line, recipes and Python's keywords follow from it."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
import pytest
from typer.main import get_command

import fedrec
from fedrec.cli.main import app
from fedrec.cli.options import RunCommand, plain_type
from fedrec.experiment.resolve import resolve
from fedrec.recipes import contents
from fedrec.runs import recipes
from fedrec.runs.keywords import RunOptions, SharedOptions
from fedrec.runs.settings import RunSettings, said, spelling

FIELDS = RunSettings.model_fields
OTHERS: dict[str, Any] = {
    "data": "planted", "data_dir": "/somewhere", "protocol": "paper-fedca", "rounds": 7, "seed": 3,
    "participation": 0.5, "rest": True, "dropout": 0.1, "robust": "krum", "robust_factor": 3.0, "robust_share": 0.2,
    "settings": {"dim": 3}, "device": "cuda", "runtime": "flower",
    "nodes": 3, "node_sums": True, "secure": True, "secure_by": "nodes", "secure_least": 4, "secure_dropout": 0.2,
    "secure_colluding": 0.01, "secure_cohort": 50, "secure_work": "sums", "epsilon": 2.0, "delta": 1e-7,
    "min_interactions": 4, "columns": "user=u,item=i", "min_rating": 3.0,
    "train_share": 0.5, "clients": 5, "spread": "blocks", "copies": 2, "evaluate_every": 2, "patience": 6,
    "settle": 0.1, "evaluate_users": 9, "test": False, "memory_mb": 64, "checkpoint_seconds": 1.0,
    "keep_selected": False, "histories": "hashed",
}  # fmt: skip
"""A value of every option that is not its default."""


def parts(annotation: Any) -> set[Any]:
    """``int | None`` as its parts; choices of words as the words."""
    found = get_args(annotation) if get_origin(annotation) not in (Literal, dict) else ()
    return set().union(*(parts(part) for part in found)) if found else {get_args(annotation) or annotation}


def command(*words: str) -> RunCommand:
    found: click.Command = get_command(app)
    for word in words:
        assert isinstance(found, click.Group)
        found = found.commands[word]
    assert isinstance(found, RunCommand)
    return found


def test_python_has_a_typed_keyword_for_every_option() -> None:
    keywords, own = get_type_hints(RunOptions), get_type_hints(RunSettings)
    assert set(keywords) == set(FIELDS) - {"method", "data"}
    for name, kind in keywords.items():
        assert parts(own[name]) <= parts(kind), name
    assert set(get_type_hints(SharedOptions)) == set(keywords) - {"seed"}
    for function, names in ((fedrec.run, {"method", "data"}), (fedrec.compare, {"methods", "data", "seeds"})):
        assert names <= set(inspect.signature(function).parameters)


def test_the_command_line_has_every_option_with_its_help_and_its_default() -> None:
    run = command("run")
    shown = {parameter.name: parameter for parameter in run.get_params(click.Context(run))}
    for name, field in FIELDS.items():
        if name == "method":
            continue
        option = shown[name]
        assert isinstance(option, click.Option)
        assert option.opts[0] in str(spelling(name).flags)
        assert field.description
        assert (option.help or "").lower() == f"{field.description}.".lower()
        assert option.default in (field.default, None)
    assert set(OTHERS) == set(FIELDS) - {"method"}


def test_options_have_one_name_everywhere() -> None:
    for words in (("run",), ("compare",), ("reproduce",), ("deploy", "run"), ("analyse", "skew"), ("analyse", "leak")):
        found = command(*words)
        found.get_params(click.Context(found))
        assert found.made
        assert set(found.made) <= set(FIELDS), words


@pytest.mark.parametrize("name", OTHERS)
def test_a_recipe_can_set_every_option_and_the_command_line_can_take_it_back(
    name: str, fedrec_given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "settings":
        pytest.skip("a recipe's settings of the method are a section of their own")
    entry = {"run": {"participation": 0.5, name: OTHERS[name]}}
    monkeypatch.setattr(recipes, "contents", lambda: [{"defaults": [entry]}])
    assert fedrec_given(name, "fedavg") == OTHERS[name]
    default = FIELDS[name].default
    if default is not None:
        assert fedrec_given(name, "fedavg", *said(name, default)) == default


@pytest.fixture
def fedrec_given() -> Any:
    """What a run's settings are after the words of a command line."""

    def value(name: str, method: str, *words: str) -> Any:
        from fedrec.cli import options

        run = command("run")
        context = run.make_context("run", [method, *words])
        settings = resolve(method, options.given(context))  # type: ignore[arg-type]
        return settings.model_dump(mode="json")[name]

    return value


def test_types_on_the_command_line_are_plain() -> None:
    assert plain_type(int | None) is int
    assert plain_type(Literal["cpu", "cuda"]) is str
    assert plain_type(dict[str, Any]) == list[str]


def test_every_recipe_gives_options_that_exist() -> None:
    for entry in (entry for content in contents() for entry in content.get("defaults", ())):
        assert set(entry.get("run", {})) <= set(FIELDS) - {"method", "settings"}, entry


def test_an_unknown_keyword_is_one_line() -> None:
    with pytest.raises(fedrec.errors.BadInput, match="run has no setting 'roundz'; did you mean 'rounds'"):
        fedrec.run("popularity", roundz=3)  # type: ignore[call-arg]

"""Reference pages made from the code: methods with their cards and settings, commands, the Python side."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from types import FunctionType
from typing import Any

import click
from typer.main import get_command

import fedrec
from fedrec.cli.main import app
from fedrec.core.method import Method
from fedrec.experiment.open import Result
from fedrec.methods.registry import BUILT_IN, find
from fedrec.recipes.measured import measured
from fedrec.recipes.search_spaces import space
from fedrec.report.model.comparison import Comparison
from fedrec.report.text.audit import card_lines
from fedrec.runs.settings import RunSettings, spelling


def reference_pages() -> dict[str, str]:
    """By place in the site: the page."""
    return {**dict(method_pages()), **dict(command_pages()), "reference/python.md": python_page()}


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell(one) for one in line) + " |" for line in lines)


def cell(value: object) -> str:
    """One line, in which bars outside code do not end the cell."""
    pieces = re.split(r"(`[^`]*`)", " ".join(str(value).split()))
    return "".join(piece if piece.startswith("`") else piece.replace("|", "\\|") for piece in pieces)


def code(value: object) -> str:
    return f"`{value}`" if str(value) else ""


def prose(text: str | None) -> str:
    """A docstring as Markdown: names in code, examples as code blocks."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", inspect.cleandoc(text or "")).replace("``", "`")
    text = re.sub(r" *# doctest:.*", "", text)
    return re.sub(r"((?:^>>> .*\n?(?:^(?!>>>|\n).+\n?)*)+)", r"```python\n\1\n```\n", text, flags=re.MULTILINE)


def method_pages() -> Iterator[tuple[str, str]]:
    """A page for each method, and one that lists them."""
    kinds = {name: find(name) for name in BUILT_IN}
    parts = ["# Methods", "What stays private, what is uploaded, settings: as `fedrec methods NAME` prints it."]
    for heading, federated in (("Federated", True), ("Centralised references and controls", False)):
        rows = (
            (f"[{name}]({name}.md)", kind.card.title, "yes" if kind.card.sum_suffices else "no")
            for name, kind in kinds.items()
            if issubclass(kind, Method) == federated
        )
        parts += [f"## {heading}", table(("method", "what", "a sum suffices"), rows)]
    yield "reference/methods/index.md", "\n\n".join(parts) + "\n"
    for name, kind in kinds.items():
        yield f"reference/methods/{name}.md", method_page(name, kind)


def method_page(name: str, kind: Any) -> str:
    card = kind.card
    enough = "yes: secure aggregation is possible" if card.sum_suffices else "no: the server sees each upload"
    lines = [("paper", card.paper), ("stays private", card.private), ("is uploaded", card.upload)]
    lines += [("a sum suffices", enough), ("defence", card.robust)]
    lines += [("measured", line) for line in card_lines(measured(name))]
    parts = [f"# {name}", f"{card.title}.", table(("card", ""), lines), prose(inspect.getmodule(kind).__doc__)]
    if card.departures:
        parts += ["## Departures", "\n".join(f"- {cell(one)}" for one in card.departures)]
    settings = (
        (code(key), code(field.default), field.description or "") for key, field in kind.Settings.model_fields.items()
    )
    parts += ["## Settings", "`--set NAME=VALUE` on the command line, `settings={...}` in Python."]
    parts.append(table(("setting", "default", "what"), settings))
    searched = space(name)
    if searched.ranges:
        ranges = ((code(key), cell(one), one.why) for key, one in searched.ranges.items())
        parts += ["## What `fedrec tune` searches", table(("setting", "range", "why"), ranges)]
    return "\n\n".join(part for part in parts if part) + "\n"


def command_pages() -> Iterator[tuple[str, str]]:
    """A page for each command of the command line, with the commands below it, and one that lists them."""
    whole = get_command(app)
    assert isinstance(whole, click.Group)
    rows = []
    for name, command in whole.commands.items():
        rows.append((f"[fedrec {name}]({name}.md)", prose(command.get_short_help_str(300))))
        yield f"reference/commands/{name}.md", "\n\n".join(command_parts(command, f"fedrec {name}", 1)) + "\n"
    intro = "Every command and option. [How they work together](../command-line.md) is a page of its own."
    yield "reference/commands/index.md", f"# Commands\n\n{intro}\n\n{table(('command', 'what'), rows)}\n"


def command_parts(command: click.Command, path: str, depth: int) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    yield f"{'#' * depth} {path}"
    yield prose(command.help)
    yield f"```\n{' '.join([path, *command.collect_usage_pieces(context)])}\n```"
    rows = [option_row(one, context) for one in command.get_params(context) if one.name != "help"]
    if rows:
        yield table(("argument or option", "value", "default", "what"), rows)
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from command_parts(part, f"{path} {name}", depth + 1)


def option_row(parameter: click.Parameter, context: click.Context) -> tuple[str, str, str, str]:
    told: Any = getattr(parameter, "show_default", None)
    default: Any = parameter.get_default(context, call=False)
    known = told if isinstance(told, str) else "" if default is None or default is False or default == [] else default
    names = (
        [parameter.make_metavar(context)]
        if parameter.param_type_name == "argument"
        else [*parameter.opts, *parameter.secondary_opts]
    )
    flag = getattr(parameter, "is_flag", False) or parameter.param_type_name == "argument"
    value = "" if flag else parameter.make_metavar(context)
    return ", ".join(map(code, names)), code(value), code(known), getattr(parameter, "help", None) or ""


def python_page() -> str:
    """What ``import fedrec`` gives, and what it returns."""
    functions = ["run", "compare", "tune", "load", "methods", "open_run"]
    parts = ["# Python", prose(fedrec.__doc__)]
    for name in functions:
        parts += described(f"fedrec.{name}", getattr(fedrec, name))
    options = (
        (code(name), code(spelling(name).shown or spelling(name).default), spelling(name).help)
        for name in RunSettings.model_fields
        if name != "method"
    )
    parts += ["## Options of a run", "Keywords of `fedrec.run`, and of `fedrec.compare` except `seed`."]
    parts.append(table(("keyword", "default", "what"), options))
    for kind in (Result, Comparison):
        parts += [f"## {kind.__name__}", prose(kind.__doc__), table(("", "what"), members(kind))]
    parts += [
        "## For methods of your own",
        "[Contributing](../project/contributing.md) has a whole method in one file.",
    ]
    own = (
        (code(name), summary(getattr(fedrec, name)))
        for name in fedrec.__all__
        if name not in (*functions, "__version__")
    )
    return "\n\n".join([*parts, table(("name", "what"), own)]) + "\n"


def described(name: str, function: Any) -> list[str]:
    signature = re.sub(r"(?<!= )'([^']*)'", r"\1", str(inspect.signature(function)))
    return [f"## {name}", f"```python\n{name}{signature}\n```", prose(function.__doc__)]


def members(kind: Any) -> Iterator[tuple[str, str]]:
    """Fields of a dataclass, then its properties and methods."""
    for field in dataclasses.fields(kind):
        yield code(field.name), code(field.type)
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and isinstance(member, property | cached_property | FunctionType):
            yield code(f"{name}(...)" if isinstance(member, FunctionType) else name), summary(member)


def summary(value: Any) -> str:
    """The first paragraph of a docstring; of what comes from elsewhere, its origin."""
    home = str(value.__module__) if inspect.isclass(value) or inspect.isfunction(value) else "fedrec"
    if home.partition(".")[0] != "fedrec":
        return f"from {code(home.partition('.')[0])}"
    return prose((inspect.getdoc(value) or "").partition("\n\n")[0])

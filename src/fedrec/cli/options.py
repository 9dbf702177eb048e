"""Options that several verbs share: those of a run, made out of its settings, and the parsing of ``--set``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

import click
import typer
from typer.core import TyperCommand

from fedrec.errors import BadInput


def a_file(option: str) -> Callable[[Path | None], Path | None]:
    """A result that cannot be written must be known before hours of training, not after."""

    def checked(path: Path | None) -> Path | None:
        if path is None:
            return None
        if str(path) == "-":
            raise BadInput(f"{option} - would make a file called '-'; give a file's name, such as result.json")
        from fedrec.runs.atomic import why_no_file

        why = why_no_file(path)
        if why is not None:
            raise BadInput(f"cannot write {path}: {why and why + '; '}give {option} a file in a folder that exists")
        return path

    return checked


def a_folder(path: Path | None) -> Path | None:
    """The same of a folder for results, which need not be there yet."""
    if path is not None:
        from fedrec.runs.atomic import why_unwritable

        if path.exists() and not path.is_dir():
            raise BadInput(f"{path} is a file; give --out a folder")
        why = why_unwritable(path)
        if why is not None:
            raise BadInput(f"cannot write to {path}: {why}; choose another --out")
    return path


def at_least_one(option: str) -> Callable[[int | None], int | None]:
    """A number of runs at once or the like, where one is given."""

    def checked(number: int | None) -> int | None:
        if number is not None and number < 1:
            raise BadInput(f"{option} {number} is out of range; give 1 or more")
        return number

    return checked


Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Jobs = Annotated[
    int, typer.Option("--jobs", help="How many runs at once, each in its own process.", callback=at_least_one("--jobs"))
]
Seeds = Annotated[str, typer.Option("--seeds", help="Seeds, separated by commas.", metavar="N,N,...")]
Method = Annotated[str | None, typer.Argument(help="The method (see `fedrec methods`).")]
SoFar = Annotated[bool, typer.Option("--so-far", help="Show the runs that are finished; start none.")]
Recipe = Annotated[
    Path | None,
    typer.Option(
        "--recipe", help="Settings that replace those of the papers' recipes: a file that `fedrec tune` wrote."
    ),
]
Resume = Annotated[Path | None, typer.Option("--resume", help="Continue the run in this folder.")]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Write the result as one JSON object to this file.", callback=a_file("--json")),
]


class RunCommand(TyperCommand):
    """A command with options of a run, made out of :class:`fedrec.runs.settings.RunSettings` when they are needed.

    Not before: `fedrec --help` need not wait for pydantic.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """Which options; all where empty."""
    left_out: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[str] = ""
    """The command's own option that they stand before; behind all of them where empty."""
    changed: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    made: dict[str, Any] | None = None
    """By field: what turns the words of the command line into a value."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if self.made is None:
            from fedrec.runs.settings import RunSettings

            names = self.fields or tuple(RunSettings.model_fields)
            chosen = [name for name in names if name not in ("method", *self.left_out)]
            options = {name: _option(name, self.changed.get(name, {})) for name in chosen}
            place = [*(parameter.name for parameter in self.params), ""].index(self.before)
            self.params[place:place] = [option for option, _ in options.values()]
            self.made = {name: convertor for name, (_, convertor) in options.items()}
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        assert self.callback is not None
        own = {name: value for name, value in ctx.params.items() if name not in (self.made or {})}
        return ctx.invoke(self.callback, **own)


def takes(
    *fields: str, before: str = "", left_out: tuple[str, ...] = (), **changed: Mapping[str, Any]
) -> type[RunCommand]:
    """The kind of a command that takes these options of a run, or all that are not left out, ``before`` one of its own.

    ``changed``: what a command says otherwise (``help``, ``metavar``, ``default``).
    """
    own = {"fields": fields, "left_out": left_out, "before": before, "changed": changed}
    return type("RunCommand", (RunCommand,), own)


def _option(name: str, changed: Mapping[str, Any]) -> tuple[click.Parameter, Any]:
    """A field of the run's settings as an option of the command line, and what converts its value."""
    from typer.main import get_click_param
    from typer.models import ParamMeta

    from fedrec.runs.settings import RunSettings, spelling

    said = replace(spelling(name), **changed)
    kind = plain_type(RunSettings.model_fields[name].annotation)
    default = None if said.shown or kind == list[str] else said.default
    shown: Any = said.shown or True
    info: Any = typer.Option(default, str(said.flags), help=said.help, metavar=said.metavar, show_default=shown)
    return get_click_param(ParamMeta(name=name, default=info, annotation=kind))


def plain_type(annotation: Any) -> Any:
    """What the command line reads for a field: a word where there is a choice of words, pairs for a mapping.

    >>> plain_type(int | None), plain_type(Literal["cpu", "cuda"]), plain_type(dict[str, Any])
    (<class 'int'>, <class 'str'>, list[str])
    """
    parts = [part for part in get_args(annotation) if part is not NoneType]
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return plain_type(parts[0])
    return {Literal: str, dict: list[str]}.get(origin, annotation)


def given(context: typer.Context) -> dict[str, Any]:
    """Options of the run that the user really gave; the others are the recipe's, the method's and the defaults'."""
    command = context.command
    assert isinstance(command, RunCommand)
    found: dict[str, Any] = {}
    for name, convertor in (command.made or {}).items():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            value = context.params[name]
            found[name] = convertor(value) if convertor else value
    if "settings" in found:
        found["settings"] = parse_sets(found["settings"])
    return found


def of_this_machine(context: typer.Context) -> dict[str, Any]:
    """What may be said of a run that is resumed: how it is carried out here. What defines it is bad input."""
    from fedrec.core.settings import build
    from fedrec.runs.settings import HOW_ONLY, RunSettings, spelling

    found = given(context)
    for name in found:
        if name not in HOW_ONLY:
            raise BadInput(f"--resume continues a run as it was; leave {spelling(name).flags} out")
    checked = build(RunSettings, {"method": "", **found}, "run")
    return {name: getattr(checked, name) for name in found}


def refuse_beside_resume(context: typer.Context, *names: str) -> None:
    """A command's own options that define a run are bad input beside --resume."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name != "DEFAULT":
            what = "the method" if parameter.name == "method" else parameter.opts[0]
            raise BadInput(f"--resume continues a run as it was; leave {what} out")


def words(text: str | None) -> list[str]:
    """``"a,b"`` as a list."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def numbers(text: str, option: str, kind: type[Any]) -> tuple[Any, ...]:
    """``"16,32"`` as numbers."""
    try:
        return tuple(kind(part) for part in words(text))
    except ValueError:
        raise BadInput(f"{option} {text!r} is not a list of numbers; write it with commas, e.g. 16,32") from None


def parse_sets(pairs: list[str] | None) -> dict[str, Any]:
    """``["dim=16", "lr=0.1"]`` as a dictionary; values are read as YAML (numbers, true, [32, 16])."""
    from fedrec.core.settings import plain_value

    chosen: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, text = pair.partition("=")
        if not sign or not key:
            raise BadInput(f"--set {pair!r} is not a setting; write it as key=value, for example --set dim=16")
        if key in chosen:
            raise BadInput(f"--set {key} is given twice; give it once")
        chosen[key] = plain_value(text)
    return chosen

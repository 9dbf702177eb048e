"""Help texts as a person reads them: every argument and option is explained, and no word of it is lost on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from typer.main import get_command

from command_line import Cli
from fedrec.cli.main import app


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from commands(part, (*words, name))


ALL = dict(commands(get_command(app)))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_parameter_is_explained(words: tuple[str, ...], fedrec: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    shown = " ".join(fedrec(*words, "--help").out.split())
    for parameter in ALL[words].get_params(click.Context(ALL[words])):
        explained = getattr(parameter, "help", None)
        assert explained, f"{parameter.name} has no help"
        assert " ".join(explained.split()) in shown
        told = getattr(parameter, "show_default", None)
        if isinstance(told, str):
            assert told in shown


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
OPTION = r"(?<![\w-])--?[a-z][a-z-]*"
IN_SHORT = ("analyse", "deploy")
"""Named on the page without their options."""


def on_the_page() -> dict[str, str]:
    """What stands behind each command at the head of the page about them; ``a|b`` is two commands."""
    block = PAGE.read_text(encoding="utf-8").split("```\n")[1]
    found: dict[str, str] = {}
    for entry in re.sub(r"\n +", " ", block).splitlines():
        assert entry.startswith("fedrec ")
        first, *rest = entry.removeprefix("fedrec ").split(" ", 1)
        if isinstance(ALL[first,], click.Group):
            parts, *rest = rest[0].split(" ", 1)
            found |= {f"{first} {part}": " ".join(rest) for part in parts.split("|")}
        else:
            found[first] = " ".join(rest)
    return found


def spellings(words: tuple[str, ...]) -> list[set[str]]:
    """The ways to write each option of a command."""
    parameters = ALL[words].get_params(click.Context(ALL[words]))
    options = (one for one in parameters if one.param_type_name == "option" and one.name != "help")
    return [{*one.opts, *one.secondary_opts} for one in options]


def test_the_page_about_commands_names_all_of_them() -> None:
    there = {" ".join(words) for words, command in ALL.items() if words and not isinstance(command, click.Group)}
    assert set(on_the_page()) == there


@pytest.mark.parametrize("command", on_the_page())
def test_the_page_about_commands_has_their_options(command: str) -> None:
    """Each that it names is there, and where it names any of a command's it names all."""
    words = tuple(command.split())
    text, but, left_out = on_the_page()[command].partition("the options of run but ")
    named, wanted = set(re.findall(OPTION, text)), spellings(words)
    if but:
        without = set(re.findall(OPTION, left_out))
        assert all(any(name in one for one in spellings(("run",))) for name in without)
        named |= {min(one) for one in spellings(("run",)) if not one & without}
    assert {name for name in named if not any(name in one for one in wanted)} == set()
    if words[0] not in IN_SHORT:
        assert [one for one in wanted if not one & named] == []


def test_the_page_about_commands_says_what_each_analysis_is() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| `fedrec analyse` |")[1].partition("##")[0]
    told = re.findall(r"^\| `(\w+)", table, re.MULTILINE)
    assert sorted(told) == sorted(words[1] for words in ALL if words[:1] == ("analyse",) and len(words) > 1)


@pytest.mark.parametrize(("option", "word"), [("--protocol", "strict-new-users"), ("--nodes", "--secure-by nodes")])
def test_what_an_option_also_does_is_said(option: str, word: str, fedrec: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    (line,) = (line for line in fedrec("run", "--help").out.splitlines() if f" {option} " in line.split("  ")[0] + " ")
    assert word in line

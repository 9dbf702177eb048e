"""Help texts as a person reads them: every argument and option is explained, and no word of it is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator

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

"""What is wrong with the words of a command line, in one line: the word, the nearest right one, where to look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import click

from fedrec.report.text.shown import shown


def said(problem: click.ClickException, command: click.Command, words: Sequence[str]) -> str:
    """The line for a problem that click found with the words after ``fedrec``."""
    context: click.Context | None = getattr(problem, "ctx", None)
    text = shown(_text(problem, context)).strip().rstrip(".")
    path = _path(command, words) if context is None else context.command_path
    return f"{text[:1].lower()}{text[1:]} (see {path} --help)"


def _path(command: click.Command, words: Sequence[str]) -> str:
    """The command that the words are for; click does not say it where an option's value is missing."""
    path = "fedrec"
    for word in words:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        command, path = command.commands[word], f"{path} {word}"
    return path


def _text(problem: click.ClickException, context: click.Context | None) -> str:
    """Hints are our own: versions of click and typer differ in theirs, and some give two."""
    if context is not None and isinstance(problem, click.NoSuchOption):
        names = [name for one in context.command.get_params(context) for name in one.opts]
        return f"no such option {problem.option_name}{_hint(problem.option_name, names)}"
    command = re.match(r"No such command '(.*?)'", problem.message)
    if command and context is not None and isinstance(context.command, click.Group):
        return f"no such command {command[1]!r}{_hint(command[1], context.command.list_commands(context))}"
    return problem.format_message()


def _hint(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""

"""What is wrong with the words of a command line, in one line: the word, the nearest right one, where to look."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

import click

from fedrec.report.text.shown import shown


def said(problem: click.ClickException) -> str:
    """The line for a problem that click found."""
    context: click.Context | None = getattr(problem, "ctx", None)
    text = shown(_text(problem, context)).strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:]} (see {'fedrec' if context is None else context.command_path} --help)"


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

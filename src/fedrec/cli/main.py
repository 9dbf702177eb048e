"""The command line: parsing and printing only. One file per verb."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Annotated, Any

import typer
from click import Abort, ClickException, Command
from click.exceptions import NoArgsIsHelpError
from typer.main import get_command

from fedrec import __version__
from fedrec.cli import (
    analyse,
    audit,
    check,
    compare,
    data,
    deploy,
    doctor,
    export,
    methods,
    recommend,
    reproduce,
    run,
    serve,
    tune,
    update,
    watch,
)
from fedrec.cli.stopping import Stopped, Verbs
from fedrec.cli.usage import said
from fedrec.errors import BadInput
from fedrec.extras import missing
from fedrec.interrupts import terminable
from fedrec.report.text.shown import shown

app = typer.Typer(
    name="fedrec",
    cls=Verbs,
    help="Personalised federated recommendation: every method, one honest protocol, fast, deployable.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for verb in (run, compare, reproduce, tune, update, recommend, serve, watch, export, audit, methods, check, doctor):
    name = verb.__name__.rpartition(".")[2]  # as its file and its function; OPTIONS where it takes those of a run
    app.command(name, cls=getattr(verb, "OPTIONS", None))(getattr(verb, name))
app.add_typer(analyse.app, name="analyse")
app.add_typer(data.app, name="data")
app.add_typer(deploy.app, name="deploy")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"fedrec {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Exit status: 0 done, 2 bad input (one line says what is wrong and what would be right), 1 failure."""


@cache
def command() -> Command:
    """What the command line calls, made of the functions' signatures once in a process."""
    return get_command(app)


def _fails_on_a_letter(stream: Any) -> bool:
    """In a C locale a stream takes bytes of file names that are no letters, and of the letters ASCII alone."""
    errors, encoding = getattr(stream, "errors", ""), str(getattr(stream, "encoding", "")).lower().replace("-", "")
    return errors == "strict" or (errors == "surrogateescape" and not encoding.startswith("utf"))


def main() -> None:
    """Entry point: bad input is one line and status 2, an interrupt one line and status 130 (143 where it was a
    termination signal), never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if _fails_on_a_letter(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a letter that cannot be shown here is no failure of what was done
    try:
        # also as `python -m fedrec`: help and shell completion name the command
        with terminable():
            status = command()(prog_name="fedrec", standalone_mode=False)
        if isinstance(status, int):  # of an Exit
            sys.exit(status)
    except NoArgsIsHelpError as problem:
        if problem.message:  # else it is printed already
            typer.echo(problem.message)
        sys.exit(2)
    except ClickException as problem:
        typer.echo(f"fedrec: {said(problem, command(), sys.argv[1:])}", err=True)
        sys.exit(2)
    except Abort:
        typer.echo("fedrec: stopped", err=True)
        sys.exit(1)
    except BadInput as problem:
        typer.echo(f"fedrec: {shown(problem)}", err=True)
        sys.exit(2)
    except (Stopped, KeyboardInterrupt) as problem:
        stopped = problem if isinstance(problem, Stopped) else Stopped(problem)
        typer.echo(f"fedrec: {stopped}", err=True)
        sys.exit(stopped.status)
    except BrokenPipeError:  # `fedrec ... | head` closes our output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as problem:
        if isinstance(problem, ModuleNotFoundError) and (lack := missing(problem)) is not None:
            typer.echo(f"fedrec: {lack}", err=True)
            sys.exit(2)
        if os.environ.get("FEDREC_DEBUG"):
            raise
        typer.echo(f"fedrec: failed: {type(problem).__name__}: {shown(problem)} (FEDREC_DEBUG=1 shows where)", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

"""``fedrec recommend``: items for a user, for many, or for somebody new, out of a finished run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedrec.cli import options as o
from fedrec.cli.result import print_items
from fedrec.errors import BadInput
from fedrec.report.text.shown import shown

if TYPE_CHECKING:
    from fedrec.experiment.recommend import Top


def recommend(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run; its data is not needed.")],
    user: Annotated[str | None, typer.Option("--user", help="The user's id, as in the data.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="All users of the run.")] = False,
    users: Annotated[Path | None, typer.Option("--users", help="A file of user ids, one per line.")] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history", help="A file of item ids, one per line: the history of somebody who was not in training."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many items.")] = 10,
    exclude: Annotated[Path | None, typer.Option("--exclude", help="A file of item ids that are never listed.")] = None,
    only: Annotated[Path | None, typer.Option("--only", help="A file of item ids; only these are listed.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a table: FILE.parquet, FILE.csv or FILE.jsonl.")
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Print the best items for a user, with titles where the data has them; never one the user has."""
    from fedrec.experiment.open import opened
    from fedrec.experiment.recommend_table import check_out, write

    if sum((user is not None, everyone, users is not None, history is not None)) != 1:
        raise BadInput("recommend for whom? give one of --user ID, --users FILE, --all, --history FILE")
    if out is not None:
        if history is not None:
            raise BadInput("--history prints one list; leave --out out")
        check_out(out)
    elif everyone or users is not None:
        raise BadInput("lists of many users go into a table; give --out FILE.parquet, FILE.csv or FILE.jsonl")
    filters: Any = {"exclude": _ids(exclude) if exclude else (), "only": _ids(only) if only else None}
    left = " that --only and --exclude leave" if only or exclude else ""
    result = opened(run)
    if out is None:
        if history is None:
            who, found = f"user {shown(user)}", result.recommend(str(user), k, **filters)
        else:
            who, found = "who has this history", result.recommend_history(_ids(history), k, **filters)
        print_items(found)
        if not found:
            typer.echo(f"fedrec: nothing is left to recommend: {who} has every item{left}", err=True)
        return
    wanted = None if everyone else [str(user)] if user is not None else _ids(users)
    model = result.recommender
    tops = model.stream(wanted, k, **filters)
    total = len(model.user_ids) if wanted is None else len(wanted)
    without = 0

    def counted() -> Iterator[Top]:
        nonlocal without
        for top in tops:
            without += int((top.items < 0).all(axis=1).sum())
            yield top

    with _bar(total, quiet) as show:
        done = write(model, counted(), out, show)
    typer.echo(f"{out}: the best {k} items of {done} users")
    if without:
        who = f"{without} of {done} users have" if done > 1 else "the user has"
        typer.echo(f"fedrec: nothing is left to recommend where {who} every item{left}: no rows", err=True)


def _ids(path: Path | None) -> list[str]:
    """Ids in a file, one a line; blank lines do not count."""
    assert path is not None
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # an id may hold what else ends a line
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise BadInput(f"cannot read {path}: {why}; give a text file with one id per line") from None
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise BadInput(f"{path} has no ids; write one per line")
    return found


@contextmanager
def _bar(total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield lambda done: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("users", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: typer.echo(f"  {done} of {total} users", err=True)

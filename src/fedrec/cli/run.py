"""``fedrec run``: train and evaluate one method."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.export import Mlflow, TensorBoard
from fedrec.cli.progress import Watch
from fedrec.cli.result import print_result, write_json
from fedrec.errors import BadInput
from fedrec.interrupts import saying

OPTIONS = o.takes(before="out")


def run(
    context: typer.Context,
    method: o.Method = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/METHOD-DATA-...")
    ] = None,
    recipe: o.Recipe = None,
    json_file: o.JsonFile = None,
    resume: o.Resume = None,
    quiet: o.Quiet = False,
    live: Annotated[
        bool, typer.Option("--live", help="Show the run as it goes, on a web page of this machine.")
    ] = False,
    tensorboard: TensorBoard = None,
    mlflow: Mlflow = None,
) -> None:
    """Train a method and evaluate it; the result is printed, and kept in a run folder."""
    from fedrec.experiment import run as running
    from fedrec.experiment.resolve import refuse_federation, resolve
    from fedrec.report.export.exporting import exported, sinks
    from fedrec.runs.claim import claimed
    from fedrec.runs.recipes import read_recipes

    taking = sinks(tensorboard, mlflow)
    if resume is not None:
        o.refuse_beside_resume(context, "method", "recipe", "out")
        watch = Watch(f"resuming {resume}", quiet)
        place: AbstractContextManager[Path] = nullcontext(resume)
        work = partial(running.resume, here=o.of_this_machine(context))
    else:
        if method is None:
            raise BadInput("which method? give its name (see `fedrec methods`), or --resume FOLDER")
        refuse_federation(method, given := o.given(context))
        settings = resolve(method, given, read_recipes(recipe))
        label = f"{settings.method}-{Path(settings.data).name}-{settings.protocol}-seed{settings.seed}"
        watch = Watch(settings.method, quiet)
        place = claimed(Path("runs"), label) if out is None else nullcontext(out)
        work = partial(running.execute, settings)
    with place as folder, followed(folder, live), exported(folder, taking, warn), resumable(folder, watch):
        result = work(folder, watch.round, watch.start)
    if json_file is not None:
        write_json(json_file, result.json)
    print_result(result)


def warn(line: str) -> None:
    typer.echo(f"fedrec: {line}", err=True)


@contextmanager
def resumable(folder: Path, watch: Watch) -> Iterator[None]:
    """Progress ends with the run; after an interrupt, say how it goes on where its folder was made."""
    try:
        yield
    except KeyboardInterrupt as why:
        from fedrec.runs.files import SETTINGS

        if not (folder / SETTINGS).is_file():
            raise
        raise saying(why, f"stopped; `fedrec run --resume {shlex.quote(str(folder))}` goes on") from None
    finally:
        watch.stop()


@contextmanager
def followed(folder: Path, live: bool) -> Iterator[None]:
    """A page of this machine beside the run, where it is asked for."""
    if not live:
        yield
        return
    from fedrec.serve.live import watched

    with watched(folder) as address:
        typer.echo(f"{address} follows the run", err=True)
        yield

"""``fedrec run``: train and evaluate one method."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.errors import BadInput

OPTIONS = o.takes(before="out")


def run(
    context: typer.Context,
    method: Annotated[str | None, typer.Argument(help="The method (see `fedrec methods`).")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/METHOD-DATA-...")
    ] = None,
    recipe: o.Recipe = None,
    json_file: o.JsonFile = None,
    resume: o.Resume = None,
    quiet: o.Quiet = False,
) -> None:
    """Train a method and evaluate it; the result is printed, and kept in a run folder."""
    from fedrec.cli.progress import Watch
    from fedrec.cli.result import print_result, write_json
    from fedrec.experiment import run as running
    from fedrec.experiment.resolve import resolve
    from fedrec.runs.folder import free_folder
    from fedrec.runs.recipes import read_recipes

    check_json(json_file)
    if resume is not None:
        if method is not None:
            raise BadInput("--resume continues a run as it was; leave the method out")
        if recipe is not None:
            raise BadInput("--resume continues a run as it was; leave --recipe out")
        watch = Watch(f"resuming {resume}", quiet)
        try:
            result = running.resume(resume, watch.round, watch.start)
        finally:
            watch.stop()
    else:
        if method is None:
            raise BadInput("which method? give its name (see `fedrec methods`), or --resume FOLDER")
        settings = resolve(method, o.given(context), read_recipes(recipe))
        label = f"{settings.method}-{Path(settings.data).name}-{settings.protocol}-seed{settings.seed}"
        watch = Watch(settings.method, quiet)
        try:
            result = running.execute(settings, out or free_folder(Path("runs"), label), watch.round, watch.start)
        finally:
            watch.stop()
    print_result(result)
    if json_file is not None:
        write_json(json_file, result.json)


def check_json(path: Path | None) -> None:
    """A result that cannot be written must be known before hours of training, not after."""
    if path is not None and (path.is_dir() or not path.resolve().parent.is_dir()):
        raise BadInput(f"cannot write {path}: give --json a file in a folder that exists")

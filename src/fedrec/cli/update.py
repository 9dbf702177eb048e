"""``fedrec update``: go on with a run whose data has grown."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrec.cli import options as o
from fedrec.cli.progress import Watch
from fedrec.cli.result import print_result, write_json
from fedrec.cli.run import resumable
from fedrec.evaluation.headline import headline

if TYPE_CHECKING:
    from fedrec.core.loop import Progress
    from fedrec.experiment.prepare import Prepared


def update(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run; it is not changed.")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="The data, with the new interactions.",
            metavar="NAME|FILE",
            show_default="the run's own, as it is",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            help="How many more rounds to run.",
            show_default="a fifth of the run's; all of them for closed-form methods",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the new run.", show_default="RUN-updated, beside it")
    ] = None,
    json_file: o.JsonFile = None,
    quiet: o.Quiet = False,
) -> None:
    """Continue training when interactions, users or items were added; a new run folder says what it came from."""
    from fedrec.experiment.update import update as go_on
    from fedrec.runs.claim import claimed

    path = Path(str(run).rstrip("/"))
    watch = Watch(f"updating {path}", quiet)

    def begin(prepared: Prepared, progress: Progress) -> None:
        origin = prepared.origin
        if origin is not None and not quiet:
            typer.echo(f"{origin.line} since {path}", err=True)
            if origin.starts_over:
                typer.echo("the method computes its answer from all data: it starts over", err=True)
            if origin.seen:
                typer.echo(
                    f"note: {origin.seen} of the items held out now were learnt from before (they came again later, or "
                    "the split was drawn anew); figures are that much too good",
                    err=True,
                )
            if progress.records:
                typer.echo(f"before: valid {headline(progress.records[0].valid)}", err=True)
        watch.start(prepared, progress)

    name = f"{path.resolve().name}-updated"
    with claimed(path.resolve().parent, name) if out is None else nullcontext(out) as folder, resumable(folder, watch):
        result = go_on(path, data, rounds, folder, watch.round, begin)
    if json_file is not None:
        write_json(json_file, result.json)
    print_result(result)

"""``fedrec run``: train and judge one method."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrec.cli import options as o
from fedrec.errors import BadInput


def run(
    method: Annotated[str | None, typer.Argument(help="The method (see `fedrec methods`).")] = None,
    data: o.Data = "demo",
    data_dir: o.DataDir = None,
    protocol: o.Protocol = "strict",
    rounds: o.Rounds = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything that is drawn.")] = 0,
    participation: o.Share = None,
    rest: o.Rest = False,
    dropout: o.Dropout = 0.0,
    sets: o.Sets = None,
    device: o.Device = "cpu",
    runtime: Annotated[str, typer.Option("--runtime", help="simulate or flower.")] = "simulate",
    nodes: Annotated[int, typer.Option("--nodes", help="SuperNodes to start with --runtime flower.")] = 2,
    min_interactions: o.MinInteractions = None,
    columns: o.Columns = None,
    min_rating: o.MinRating = None,
    train_share: o.TrainShare = 1.0,
    clients: o.Clients = None,
    evaluate_every: o.EvaluateEvery = 1,
    patience: o.Patience = None,
    settle: Annotated[
        float | None,
        typer.Option(
            "--settle",
            help="Stop when the loss changes by less than this share.",
            show_default="the recipe's, else 0: never",
        ),
    ] = None,
    evaluate_users: o.EvaluateUsers = None,
    memory_mb: o.MemoryMb = 1024,
    checkpoint_seconds: Annotated[
        float, typer.Option("--checkpoint-seconds", help="Least time between two checkpoints.")
    ] = 10.0,
    models: o.Models = True,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/METHOD-DATA-...")
    ] = None,
    json_file: o.JsonFile = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Continue the run in this folder.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train a method and judge it; the result is printed, and kept in a run folder."""
    from fedrec import running
    from fedrec.cli.progress import Watch
    from fedrec.cli.result import print_result, write_json
    from fedrec.runs.folder import free_folder

    check_json(json_file)
    if resume is not None:
        if method is not None:
            raise BadInput("--resume continues a run as it was; leave the method out")
        watch = Watch(f"resuming {resume}", quiet)
        try:
            result = running.resume(resume, watch.round, watch.start)
        finally:
            watch.stop()
    else:
        if method is None:
            raise BadInput("which method? give its name (see `fedrec methods`), or --resume FOLDER")
        settings = running.resolve(
            method,
            o.present(
                data=data,
                data_dir=data_dir,
                protocol=protocol,
                rounds=rounds,
                seed=seed,
                participation=participation,
                rest=rest or None,
                dropout=dropout,
                device=device,
                runtime=runtime,
                nodes=nodes,
                min_interactions=min_interactions,
                columns=columns,
                min_rating=min_rating,
                train_share=train_share,
                clients=clients,
                evaluate_every=evaluate_every,
                patience=patience,
                settle=settle,
                evaluate_users=evaluate_users,
                memory_mb=memory_mb,
                checkpoint_seconds=checkpoint_seconds,
                keep_selected=None if models else False,
                settings=o.parse_sets(sets),
            ),
        )
        label = f"{method}-{Path(settings.data).name}-{settings.protocol}-seed{settings.seed}"
        watch = Watch(method, quiet)
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

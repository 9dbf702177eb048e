"""Options that several verbs share, with one help text each, and the parsing of ``--set``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrec.errors import BadInput


def _a_file(path: Path | None) -> Path | None:
    if path is not None and str(path) == "-":
        raise BadInput("--json - would make a file called '-'; give a file's name, such as result.json")
    return path


Data = Annotated[str, typer.Option("--data", help="Data set, file, or folder with a ready split.", metavar="NAME|FILE")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where data sets lie.", show_default="$FEDREC_DATA, then the cache folder"),
]
Protocol = Annotated[str, typer.Option("--protocol", help="How models are judged: strict or paper-NAME.")]
Rounds = Annotated[int | None, typer.Option("--rounds", help="Rounds.", show_default="the recipe's, else 100")]
Share = Annotated[
    float | None, typer.Option("--participation", help="Share of clients in a round.", show_default="1.0")
]
Rest = Annotated[bool, typer.Option("--rest", help="No client takes part twice in a row.")]
Dropout = Annotated[float, typer.Option("--dropout", help="Probability that a client does not answer.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, e.g. dim=16; may repeat.", metavar="KEY=VALUE"),
]
Device = Annotated[str, typer.Option("--device", help="cpu or cuda.")]
MinInteractions = Annotated[
    int | None,
    typer.Option("--min-interactions", help="Drop users with fewer.", show_default="the data set's own filter"),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Which column of an own file means what; user, item, time, rating, client, title.",
        metavar="user=NAME,item=NAME,...",
        show_default="known names",
    ),
]
MinRating = Annotated[
    float | None,
    typer.Option(
        "--min-rating", help="Rows with a lower rating are no interactions.", show_default="those of 0 or less are none"
    ),
]
TrainShare = Annotated[
    float, typer.Option("--train-share", help="Learn from a random share of each user's training interactions.")
]
Clients = Annotated[
    int | None, typer.Option("--clients", help="Spread users over this many clients.", show_default="one client a user")
]
EvaluateEvery = Annotated[int, typer.Option("--evaluate-every", help="Judge every so many rounds.")]
SoFar = Annotated[bool, typer.Option("--so-far", help="Show the runs that are finished, and start none.")]
Models = Annotated[
    bool,
    typer.Option(
        "--models/--no-models",
        help="Keep the selected model, for `fedrec recommend` (private state of all clients: may be large).",
    ),
]
Patience = Annotated[
    int | None,
    typer.Option(
        "--patience",
        help="Stop after so many judged rounds without a better value.",
        show_default="the protocol's rule",
    ),
]
EvaluateUsers = Annotated[int | None, typer.Option("--evaluate-users", help="Judge a keyed sample of users.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write the result as one JSON object to this file.", callback=_a_file)
]
MemoryMb = Annotated[int, typer.Option("--memory-mb", help="Working memory that blocks are sized for.")]


def check_jobs(jobs: int | None) -> None:
    """A number of runs at once, where one is given."""
    if jobs is not None and jobs < 1:
        raise BadInput(f"--jobs {jobs} is out of range; give 1 or more")


def words(text: str | None) -> list[str]:
    """``"a,b"`` as a list."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def numbers(text: str, option: str, kind: type[Any]) -> tuple[Any, ...]:
    """``"16,32"`` as numbers."""
    try:
        return tuple(kind(part) for part in words(text))
    except ValueError:
        raise BadInput(f"{option} {text!r} is not a list of numbers; write it with commas, e.g. 16,32") from None


def parse_sets(pairs: list[str] | None) -> dict[str, Any]:
    """``["dim=16", "lr=0.1"]`` as a dictionary; values are read as YAML (numbers, true, [32, 16])."""
    import yaml

    chosen: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, text = pair.partition("=")
        if not sign or not key:
            raise BadInput(f"--set {pair!r} is not a setting; write it as key=value, for example --set dim=16")
        if key in chosen:
            raise BadInput(f"--set {key} is given twice; give it once")
        try:
            chosen[key] = yaml.safe_load(text)
        except yaml.YAMLError:
            chosen[key] = text
        if isinstance(chosen[key], str):  # YAML 1.1 reads 1e-3 as text
            with contextlib.suppress(ValueError):
                chosen[key] = float(text)
    return chosen


def present(**options: Any) -> dict[str, Any]:
    """Only the options that were given, so that a recipe can fill the others."""
    return {name: value for name, value in options.items() if value is not None}

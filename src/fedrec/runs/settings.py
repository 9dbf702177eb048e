"""All that defines a run, as one typed value that is written beside its results.

An option of a run is declared here and nowhere else: its name, its default, its range, the sentence that explains it
and, where that is not ``--its-name``, how the command line spells it (``cli/options.py`` makes the options out of it;
:mod:`fedrec.runs.keywords` has the same names for Python, and a test keeps the two in step).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from fedrec.core.settings import Settings

HERE = ("data_dir", "device", "memory_mb")
"""Settings that belong to the machine that a run is on."""
HOW_ONLY = (*HERE, "checkpoint_seconds")
"""Settings that say how a run is carried out; a run made with others is still the same run."""


@dataclass(frozen=True)
class Spelling:
    """How the command line spells an option; what is None is as the field says."""

    flags: str | None = None
    """``--models/--no-models``; the field's name otherwise."""
    metavar: str | None = None
    shown: str | None = None
    """What the help says of the default, where it is not one value."""
    help: str | None = None
    default: Any = None


class RunSettings(Settings):
    """One training: method, data, protocol and how it is carried out."""

    method: str = Field(description="the method (see `fedrec methods`)")
    data: Annotated[str, Spelling(metavar="NAME|FILE")] = Field(
        "demo", description="data set, file, or folder with a ready split"
    )
    data_dir: Annotated[Path | None, Spelling(shown="$FEDREC_DATA, then the cache folder")] = Field(
        None, description="where data sets lie"
    )
    protocol: str = Field("strict", description="how models are evaluated: strict, strict-new-users or paper-NAME")
    rounds: Annotated[int, Spelling(shown="the recipe's, else 100")] = Field(
        100, ge=1, lt=1 << 31, description="rounds"
    )
    seed: int = Field(0, ge=0, lt=1 << 64, description="seed of everything that is drawn")
    participation: float = Field(1.0, description="share of clients that take part in a round")
    rest: Annotated[bool, Spelling("--rest/--no-rest")] = Field(
        False, description="no client takes part twice in a row"
    )
    dropout: float = Field(0.0, description="probability that a client does not answer")
    robust: Annotated[str, Spelling(metavar="PIECES", shown="the method's own; none under paper-NAME")] = Field(
        "none",
        description="defence against dishonest clients: none, bound, rows, median, trimmed, krum; join several with +",
    )
    robust_factor: float = Field(2.0, gt=0, description="bound and rows allow this many times the round's median norm")
    robust_share: float = Field(
        0.1, ge=0, lt=0.5, description="share of clients that may be dishonest, for trimmed and krum"
    )
    settings: Annotated[dict[str, Any], Spelling("--set", "KEY=VALUE")] = Field(
        default_factory=dict, description="a setting of the method, e.g. dim=16; may be repeated"
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description="where torch computes: cpu or cuda")
    runtime: Literal["simulate", "flower"] = Field(
        "simulate", description="in process or over Flower: simulate or flower"
    )
    nodes: int = Field(
        2, ge=1, description="SuperNodes to start with --runtime flower; nodes that take part with --secure-by nodes"
    )
    node_sums: Annotated[bool, Spelling("--node-sums/--no-node-sums")] = Field(
        False,
        description="nodes send the sum over their clients instead of each client's upload (for methods whose card "
        "says that a sum suffices; over a network)",
    )
    secure: Annotated[bool, Spelling("--secure/--no-secure")] = Field(
        False, description="the server sees sums only (for methods whose card says that a sum suffices)"
    )
    secure_by: Literal["clients", "nodes"] = Field(
        "clients", description="who takes part in secure sums: clients, or nodes, which first add up their clients"
    )
    secure_least: int = Field(3, ge=3, description="smallest cohort of a secure sum")
    secure_dropout: float = Field(
        0.1, ge=0, lt=1, description="share of a cohort that may drop out before its sum is repeated"
    )
    secure_colluding: float = Field(0.05, ge=0, lt=1, description="share of a cohort that may help the server")
    secure_cohort: int = Field(1000, ge=3, description="participants in a cohort; more make several")
    secure_work: Literal["masks", "protocol", "sums"] = Field(
        "masks", description="what a simulation carries out: the masks, the whole protocol, or only the sums"
    )
    epsilon: Annotated[float | None, Spelling(shown="no guarantee")] = Field(
        None, gt=0, description="privacy budget of the whole run, for each user; chooses clip and noise"
    )
    delta: float = Field(1e-6, gt=0, lt=1, description="delta of --epsilon")
    min_interactions: Annotated[int | None, Spelling(shown="the data set's own filter")] = Field(
        None, ge=1, description="drop users with fewer"
    )
    columns: Annotated[str | None, Spelling(metavar="user=A,...", shown="known names")] = Field(
        None, description="what the columns of your own file mean: user, item, time, rating, client, title"
    )
    min_rating: Annotated[float | None, Spelling(shown="ratings of 0 or less do not count")] = Field(
        None, description="ignore rows with a lower rating"
    )
    train_share: float = Field(
        1.0, gt=0, le=1, description="learn from a random share of each user's training interactions"
    )
    clients: Annotated[int | None, Spelling(shown="one client a user")] = Field(
        None, ge=1, description="spread users over this many clients"
    )
    spread: Literal["random", "blocks"] = Field(
        "random", description="how --clients spreads users: at random, or neighbours in the order of ids together"
    )
    copies: int = Field(
        1, ge=1, le=1000, description="repeat every user this many times: a larger population of the same kind"
    )
    evaluate_every: int = Field(1, ge=1, description="evaluate every N rounds")
    patience: Annotated[int | None, Spelling(shown="the protocol's rule")] = Field(
        None, ge=1, description="stop after this many evaluated rounds without a better value"
    )
    settle: Annotated[float, Spelling(shown="the recipe's, else 0: never")] = Field(
        0.0, ge=0, lt=1, description="stop when the loss changes by less than this share"
    )
    evaluate_users: int | None = Field(None, ge=1, description="evaluate a keyed sample of users")
    test: Annotated[bool, Spelling("--test/--no-test")] = Field(
        True, description="evaluate on the test part; without it, only on validation, as tuning does"
    )
    memory_mb: int = Field(1024, ge=16, description="working memory that blocks are sized for")
    checkpoint_seconds: float = Field(10.0, ge=0, description="fewest seconds between two checkpoints")
    keep_selected: Annotated[bool, Spelling("--models/--no-models")] = Field(
        True,
        description="keep the selected model, for `fedrec recommend` (private state of all clients: may be large)",
    )
    histories: Literal["stored", "hashed"] = Field(
        "stored",
        description="what the model's folder keeps of users' histories, so that it recommends without the data: their "
        "items, or hashes that say nothing without the key in $FEDREC_HISTORY_KEY",
    )


def spelling(name: str) -> Spelling:
    """How the command line spells a field, with everything filled in."""
    field = RunSettings.model_fields[name]
    found = next((part for part in field.metadata if isinstance(part, Spelling)), Spelling())
    text = field.description or name
    return Spelling(
        found.flags or f"--{name.replace('_', '-')}",
        found.metavar,
        found.shown,
        f"{text[0].upper()}{text[1:]}.",
        field.get_default(),
    )


def said(name: str, value: Any) -> list[str]:
    """The words of the command line that give an option this value.

    >>> said("rounds", 5), said("keep_selected", False)
    (['--rounds', '5'], ['--no-models'])
    """
    flags = str(spelling(name).flags)
    if isinstance(value, bool):
        return [flags.split("/")[0 if value else 1]]
    return [flags, str(value)]

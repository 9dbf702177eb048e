"""A node's data: its clients, what they learn from and what they are evaluated on. None of it leaves.

A node either has its own file, whose items are looked up in the run's public catalogue, or hosts a share of
a named data set (``fedrec run --runtime flower`` on one machine). Splits and candidates are keyed by the
users' own ids, so both ways give what the in-process run gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedrec.core.block import Block, World
from fedrec.core.reference import Reference
from fedrec.data.ragged import Ragged, placed, segments
from fedrec.errors import BadInput
from fedrec.evaluation.collecting import evaluated_users
from fedrec.evaluation.held import Held
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.registry import find as find_method
from fedrec.privacy.ledger import OwnerPolicy
from fedrec.runs.settings import RunSettings

if TYPE_CHECKING:
    from fedrec.data.interactions import Interactions


HOSTED = ("demo", "planted")
"""Synthetic worlds of which a share is hosted without further ado; they are small."""


@dataclass(frozen=True)
class NodeOptions:
    """What a node was started with; known to the node alone."""

    name: str
    folder: Path
    """Where its private files lie."""
    data: str | None = None
    """Its own data file; None where it hosts a share of the run's named data set."""
    hosted: str | None = None
    """The data of which it hosts a share; where it is not said, the run may name a known data set, and no file."""
    part: int = 0
    parts: int = 1
    data_dir: Path | None = None
    device: str = "cpu"
    """``cuda`` where runs that ask for it may have it."""
    memory_mb: int = 1024
    """Working memory that blocks of clients are sized for, at most."""
    private_mb: int = 8192
    """Memory for private state, at most; beyond it, private state lies in the node's folder."""
    most_mb: int = 65_536
    """A run of which one client needs more is refused."""
    repeatable: bool = False
    """Whether what clients draw (starts, negatives, noise) is keyed by the run's seed alone, as in a simulation,
    instead of secret."""
    members: Path | None = None
    """Whom it takes part in secure sums with (``members.json``, from its operator); with it, in no other runs."""
    sums_key: Path | None = None
    """Its long-term key for secure sums."""
    secure_least: int = 3
    """Smallest cohort that it takes part in."""
    secure_colluding: float = 0.05
    """The share of a cohort that it takes to collude with the server."""
    key: Path | None = None
    """The private key that proves the node's name; None on one machine, where nobody asks for it."""
    policy: OwnerPolicy = OwnerPolicy()
    """What the node's owner allows, whatever a server asks."""


@dataclass(frozen=True)
class Share:
    """What a node works with, prepared once a run and kept in the node's own folder."""

    block: Block
    valid: Held
    test: Held
    wanted: NDArray[np.bool_]  # [users] whether a user is evaluated
    owned: Ragged
    """All items each user has, held-out ones included: never recommended."""

    @property
    def world(self) -> World:
        """The world as far as this node sees it."""
        return World("", self.block.n_items, self.block.n_users, self.block.n_clients)

    @property
    def most_users(self) -> int:
        """Of one client."""
        return int(np.diff(self.block.user_start).max(initial=1))


@dataclass(frozen=True)
class Names:
    """Ids of a node's users, and of all items, with titles where there are any."""

    users: list[str]
    items: list[str]
    titles: list[str] | None


Prepare = Callable[[NodeOptions, RunSettings, tuple[str, ...]], tuple[Share, Names]]


def prepare(options: NodeOptions, settings: RunSettings, catalogue: tuple[str, ...]) -> tuple[Share, Names]:
    """Read the node's data and put it under the run's protocol."""
    from fedrec.core.population import population
    from fedrec.data.load import load
    from fedrec.data.partition import partition

    protocol = find_protocol(settings.protocol)
    own = options.data is not None
    data = load(
        options.data or options.hosted or _named(settings.data),
        options.data_dir,
        min_interactions=settings.min_interactions,
        paper=protocol.paper,
        columns=None if own else settings.columns,
        min_rating=settings.min_rating,
    )
    if own:
        refuse_global(settings)
        data = into_catalogue(data, catalogue)
    elif settings.clients is not None:
        data = partition(data, settings.clients, spread=settings.spread)
    task = protocol.prepare(data, settings.seed, settings.train_share)
    people = population(task)
    clients = np.arange(people.world.n_clients)
    if not own:
        clients = np.array_split(clients, options.parts)[options.part]
    block = people.block.take(clients)
    rows = segments(people.block.user_start, clients)
    users = people.users[rows]
    share = Share(
        block=block,
        valid=task.held("valid", users),
        test=task.held("test", users),
        wanted=evaluated_users(settings.seed, people.block.user_keys, settings.evaluate_users)[rows],
        owned=task.known.take(users),
    )
    titles = None if data.titles is None else [str(title) for title in data.titles]
    return share, Names([str(u) for u in data.user_ids[users]], [str(i) for i in data.item_ids], titles)


def _named(data: str) -> str:
    """A data set that a server may name: a known one, not a file on the node's machine."""
    from fedrec.data.sources import SOURCES

    if data not in SOURCES and data not in HOSTED:
        raise BadInput(
            f"a run may not name {data[:80]!r} as the data of this node; it takes data sets it knows by name"
        )
    return data


def refuse_whole_users(settings: RunSettings) -> None:
    """A node serves its own users, who all take part."""
    if find_protocol(settings.protocol).whole_users:
        raise BadInput(f"protocol {settings.protocol} needs users that no node has; use it with --runtime simulate")


def refuse_global(settings: RunSettings) -> None:
    """Settings that would need facts about everybody's data cannot be had where data stays with its owners."""
    if issubclass(find_method(settings.method), Reference):
        raise BadInput(f"{settings.method} is centralised: there is nothing to federate; take a federated method")
    if find_protocol(settings.protocol).drop_unseen_targets:
        raise BadInput(
            f"protocol {settings.protocol} leaves out items that nobody trained on, which no node can know; use strict"
        )
    refuse_whole_users(settings)
    if settings.evaluate_users is not None:
        raise BadInput("a sample of all users cannot be drawn where users stay on their nodes; leave it out")
    if settings.copies != 1:
        raise BadInput("each node holds a user only once; leave --copies out")
    if settings.clients is not None:
        raise BadInput("each node says who its clients are (a client column); leave --clients out")


def into_catalogue(data: Interactions, catalogue: tuple[str, ...]) -> Interactions:
    """The same interactions with items numbered as in the public catalogue."""
    number = {item: index for index, item in enumerate(catalogue)}
    unknown = [str(item) for item in data.item_ids if str(item) not in number]
    if unknown:
        raise BadInput(
            f"{len(unknown)} items of {data.name} are not in the run's catalogue of {len(catalogue)} items, "
            f"the first is {unknown[0]!r}; the catalogue must list every item of every node"
        )
    place = np.array([number[str(item)] for item in data.item_ids], np.int32)
    titles = None
    if data.titles is not None:
        titles = np.array(catalogue, dtype=object)
        titles[place] = data.titles
    ids = np.array(catalogue, dtype=np.str_)
    low = None if data.rated_low is None else placed(data.rated_low, place)
    return replace(data, items=place[data.items], item_ids=ids, titles=titles, rated_low=low)

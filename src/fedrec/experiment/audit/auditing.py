"""The audit of a method or a run: every asked attack, over seeds, into a book that can be continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from fedrec.attacks.contract import Asking, Poison, Reader
from fedrec.attacks.registry import find as find_attack
from fedrec.attacks.registry import names as attack_names
from fedrec.attacks.registry import readers
from fedrec.core.method import Method
from fedrec.errors import BadInput
from fedrec.experiment.audit.poisoning import NotFor, poisoned_figures
from fedrec.experiment.audit.reading import read_along, reader_figures
from fedrec.experiment.audit.reading_sums import View, read_sums
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.methods.registry import find as find_method
from fedrec.runs.atomic import keep_text
from fedrec.runs.plan import defence_of
from fedrec.runs.settings import RunSettings

SCHEMA = "fedrec.audit/1"
BOOK = "audit.json"
DEFENCE = "bound+rows"
"""What dishonest clients meet where neither the run nor the method's card has a defence."""
READ_ROUNDS = 3
"""Rounds that are read along."""


@dataclass(frozen=True)
class Asked:
    """Which attacks, how long, against how many dishonest clients."""

    attacks: tuple[str, ...] = ()
    """Empty: all that only read; and boost, where single uploads are seen."""
    rounds: int = 15
    """Rounds before the effect of dishonest clients is measured."""
    shares: tuple[float, ...] = (0.01,)
    secure: bool = False
    """Whether the server sees only sums."""

    def names(self) -> tuple[str, ...]:
        chosen = self.attacks or (tuple(readers()) if self.secure else (*readers(), "boost"))
        return tuple(attack_names()) if chosen == ("all",) else chosen


@dataclass(frozen=True)
class Row:
    """What one attack got in one run."""

    method: str
    data: str
    seed: int
    attack: str
    """Empty: nobody attacks, to compare with."""
    defence: str = "none"
    share: float = 0.0
    adaptive: bool = False
    rounds: int = 1
    """The round that was looked at, or rounds before the effect was measured."""
    secure: bool = False
    view: str = ""
    """With secure sums, what was read: the client's own masked ``message``, or the ``sum``."""
    run: str = ""
    """A digest of all other settings of the run: rows of other runs in the same book are not taken for these."""
    figures: dict[str, float] = field(default_factory=dict)
    """Empty where the method's messages have nothing for this attack."""

    @property
    def key(self) -> tuple[Any, ...]:
        return tuple(value for name, value in asdict(self).items() if name != "figures")


class Book:
    """Rows so far, in a file where one is given; an audit that was cut off goes on where it stopped."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = None if folder is None else folder / BOOK
        self.rows: list[Row] = []
        if self.path is not None and self.path.is_file():
            self.rows = read_rows(self.path)

    def known(self, row: Row) -> bool:
        return any(other.key == row.key for other in self.rows)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            keep_text(self.path, as_text(self.rows))


def as_text(rows: Sequence[Row]) -> str:
    """The book as JSON, one row a line."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    return f'{{"schema": "{SCHEMA}", "rows": [\n{lines}\n]}}\n'


def read_rows(path: Path) -> list[Row]:
    """The rows of a book; anything else is bad input."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["schema"] != SCHEMA:
            raise ValueError("another schema")
        return [Row(**row) for row in found["rows"]]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BadInput(
            f"{path} is not an audit ({type(problem).__name__}); give a folder that `fedrec audit` made"
        ) from None


def audit(settings: RunSettings, asked: Asked, book: Book, on_row: Callable[[Row], None] = lambda row: None) -> None:
    """Carry out what is asked and not in the book yet."""
    kind = find_method(settings.method, settings.settings)
    if not issubclass(kind, Method):
        raise BadInput(f"{settings.method} is centralised: it has all histories in one place, and no messages to audit")
    if asked.secure and not kind.card.sum_suffices:
        raise BadInput(f"{settings.method} needs each upload, not only a sum; leave --secure out")
    asked = replace(asked, secure=asked.secure or settings.secure)
    kinds = {name: find_attack(name) for name in asked.names()}
    prepared: Prepared | None = None
    for row, work in (*_reading(settings, asked, kinds), *_poisoning(settings, asked, kinds)):
        if not book.known(row):
            prepared = prepared or prepare(settings)
            done = Row(**{**asdict(row), "figures": work(prepared)})
            book.add(done)
            on_row(done)


Work = tuple[Row, Callable[[Prepared], dict[str, float]]]


def _reading(settings: RunSettings, asked: Asked, kinds: dict[str, Any]) -> Iterator[Work]:
    """Rows of those who read: of the first round, and of the last where it is another."""
    chosen = [kind() for kind in kinds.values() if issubclass(kind, Reader)]
    made: dict[str, Any] = {}

    def figures(reader: Reader, number: int, view: View | Literal[""]) -> Callable[[Prepared], dict[str, float]]:
        def work(prepared: Prepared) -> dict[str, float]:
            asking = reader if isinstance(reader, Asking) else None
            if asking is not None and not asking.suits(prepared.method):
                return {}
            run = "" if asking is None else asking.name  # those who keep to the protocol read the same run
            if run not in made:
                made[run] = (read_sums if asked.secure else read_along)(prepared, READ_ROUNDS, asking)
            seen, sim = made[run]
            whole = seen[view] if view else seen
            return reader_figures(reader, [_cut(one, reader.rounds, number) for one in whole], sim)

        return work

    for reader in chosen:
        for number in (READ_ROUNDS,) if reader.rounds > 1 else (1, READ_ROUNDS):
            for view in get_args(View) if asked.secure else ("",):
                guard = "none" if asked.secure else settings.robust  # nobody can bound what nobody sees
                row = _row(settings, attack=reader.name, rounds=number, secure=asked.secure, view=view, defence=guard)
                yield row, figures(reader, number, view)


def _cut(seen: Any, wanted: int, number: int) -> Any:
    """Rounds up to one: all of them for an attack over several, else that one and the one before (for its start)."""
    rounds = tuple(one for one in seen.rounds if one.number <= number)
    return replace(seen, rounds=rounds if wanted > 1 else rounds[-2:])


def _poisoning(settings: RunSettings, asked: Asked, kinds: dict[str, Any]) -> Iterator[Work]:
    """Rows of dishonest clients: undefended, defended, adaptive against the defence; and nobody, beside each."""
    chosen = [kind for kind in kinds.values() if issubclass(kind, Poison)]
    own = find_method(settings.method).card.robust
    usual = next(name for name in (settings.robust, own, DEFENCE) if name != "none")

    def figures(kind: type[Poison] | None, row: Row) -> Callable[[Prepared], dict[str, float]]:
        def work(prepared: Prepared) -> dict[str, float]:
            guard = defence_of(settings, row.defence)
            try:
                return poisoned_figures(prepared, kind, row.share, row.rounds, guard, row.adaptive)
            except NotFor:
                return {}

        return work

    guards = dict.fromkeys(("none",) if settings.secure else ("none", usual))
    for share in asked.shares if chosen else ():
        common = {"share": share, "rounds": asked.rounds}
        for guard in guards:
            row = _row(settings, attack="", defence=guard, **common)
            yield row, figures(None, row)
        for kind in chosen:
            ways = [(guard, False) for guard in guards] + [(usual, True)] * (usual in guards)
            for guard, adaptive in ways:
                row = _row(settings, attack=kind.name, defence=guard, adaptive=adaptive, **common)
                yield row, figures(kind, row)


def _row(settings: RunSettings, **given: Any) -> Row:
    beside = {"method", "data", "data_dir", "seed", "rounds", "robust", "memory_mb", "device"}
    others = settings.model_dump(mode="json", exclude=beside)
    digest = hashlib.blake2b(json.dumps(others, sort_keys=True).encode(), digest_size=4).hexdigest()
    return Row(method=settings.method, data=settings.data, seed=settings.seed, run=digest, **given)

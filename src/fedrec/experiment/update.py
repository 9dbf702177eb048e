"""Go on with a finished run when its data has grown: new interactions, new items, new users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrec.core.growing import CannotGrow, Growth, grown
from fedrec.core.loop import Progress, Record
from fedrec.core.method import Method
from fedrec.core.reference import Central, Reference
from fedrec.core.state import BadState
from fedrec.data.fingerprint import Fingerprint
from fedrec.data.ragged import Int64, Ragged
from fedrec.errors import BadInput
from fedrec.experiment.open import Result, settings_here
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.recommend import keeper
from fedrec.experiment.run import OnRound, OnStart, begin
from fedrec.runs.files import RESULT
from fedrec.runs.folder import RunFolder
from fedrec.runs.history_key import read_key
from fedrec.runs.known import Known
from fedrec.runs.known import opened as histories_opened
from fedrec.runs.origin import Origin
from fedrec.runs.sealed import digest_of
from fedrec.runs.settings import RunSettings

SHARE = 5
"""Rounds where none are given: a fifth of those that the run had."""


def update(
    path: Path,
    data: str | None = None,
    rounds: int | None = None,
    out: Path | None = None,
    on_round: OnRound | None = None,
    on_start: OnStart | None = None,
) -> Result:
    """A new run that goes on from a finished one, with its data as it is now or with ``data``, which must have all
    that the run learnt from and more. The old folder is only read."""
    if rounds is not None and rounds < 1:
        raise BadInput("an update needs at least one round; give --rounds 1 or more")
    folder = RunFolder.open(path)
    done = int(folder.result()["rounds"])
    settings = settings_here(folder)
    _check(settings, path)
    if data is not None:
        settings = settings.model_copy(update={"data": data})
    prepared = prepare(settings)
    known, before = _known(folder)
    if before.change_to(prepared.fingerprint) is None:
        if _rated_lower(known, prepared):
            raise BadInput(
                f"nothing to learn: {settings.data} has new ratings, but they are too low to count; they are left out "
                "of lists with the next update that has added interactions"
            )
        raise BadInput(f"nothing new: {settings.data} is what {path} learnt from; add interactions, or give --data")
    over = starts_over(prepared.method)
    total = (rounds or settings.rounds) if over else done + (rounds or -(-settings.rounds // SHARE))
    earlier = folder.origin()
    growth = _growth(known, prepared, path)
    now = prepared.fingerprint.counts
    added = {name: now[name] - before.counts[name] for name in ("users", "items", "interactions")}
    if not added["interactions"]:
        raise BadInput(
            f"nothing new: {settings.data} has the interactions that {path} learnt from, only times, parts or clients "
            "differ; an update needs added interactions"
        )
    origin = Origin(
        str(path.resolve()),
        digest_of(path / RESULT),
        done + (earlier.rounds if earlier is not None and earlier.starts_over else 0),
        over,
        _seen(known, prepared, growth),
        added,
    )
    prepared = replace(prepared, settings=settings.model_copy(update={"rounds": total}), origin=origin)
    progress = Progress() if over else _start(folder, known, prepared, growth, done)
    return begin(prepared, out, progress, on_round, on_start)


def starts_over(method: Method[Any, Any, Any, Any] | Reference[Any]) -> bool:
    """Whether the method's answer is computed from all data at once."""
    if isinstance(method, Reference):
        return method.one_shot
    return method.starts_over or method.contributes_once or method.settled_after() is not None


def _check(settings: RunSettings, path: Path) -> None:
    if settings.runtime == "flower":
        raise BadInput(f"{path} ran on nodes, which keep what is private; nodes take new data in with the next run")
    if settings.epsilon is not None:
        raise BadInput(
            f"{path} has spent its privacy budget (epsilon {settings.epsilon:g}) on its users; an update would "
            "spend it a second time: start a new run, whose guarantee adds to this one"
        )


def _known(folder: RunFolder) -> tuple[Known, Fingerprint]:
    known, before = folder.known(), folder.fingerprint()[0]
    if known is None or before is None:
        raise BadInput(
            f"{folder.path} does not say what its users had (it was made by an older version or without models), so "
            "what was added cannot be known; start a new run"
        )
    if known.hashed is not None:
        try:
            histories_opened(known, np.arange(len(known.user_ids)), read_key())
        except BadState as problem:
            raise BadInput(f"{folder.path}: {problem}; bring the key that it was made with") from None
    return known, before


def _growth(known: Known, prepared: Prepared, path: Path) -> Growth:
    """Where everything stands in the new data; what has gone is bad input."""
    data, people = prepared.task.data, prepared.people
    items, lost_items = _places(known.item_ids, data.item_ids)
    users, lost_users = _places(known.user_ids, data.user_ids[people.users])
    lost = {"users": lost_users, "items": lost_items}
    if not lost_users:
        lost["clients"] = len(set(known.people.client_ids) - set(people.client_ids))
        wide, owned = np.int64(data.n_items), known.owned
        learnt = known.people.block.train
        counts, there = (one.owners * wide + one.values for one in (prepared.task.observed, prepared.task.known))

        def missing(lists: Ragged, among: Int64) -> Int64:
            pairs = people.users[users[lists.owners]] * wide + items[lists.values]
            return pairs[(items[lists.values] < 0) | ~np.isin(pairs, among)]

        lost["interactions"] = len(missing(owned, there))
        lower = len(missing(learnt, counts)) - len(missing(learnt, there))
        if lower and not any(lost.values()):
            which = "1 interaction that is" if lower == 1 else f"{lower} interactions that are"
            raise BadInput(
                f"{path} learnt from {which} rated too low to count now; what was learnt cannot be taken back: start a "
                "new run"
            )
    said = [f"{count} {name[:-1] if count == 1 else name}" for name, count in lost.items() if count]
    if said:
        raise BadInput(
            f"{path} learnt from {' and '.join(said)} that {prepared.settings.data} no longer has; what was learnt "
            "cannot be taken back: start a new run"
        )
    before, now = (np.array(one.client_ids)[one.block.client_of_user] for one in (known.people, people))
    moved = int((before != now[users]).sum())
    if moved:
        raise BadInput(
            f"{moved} users of {path} belong to other clients now (--clients spreads users anew when there are more); "
            "give data with a client column, or start a new run"
        )
    return Growth.of(known.people, people, items, users)


def _rated_lower(known: Known, prepared: Prepared) -> bool:
    """Whether somebody has rated something too low to count since."""
    wide, now = np.int64(prepared.task.data.n_items), prepared.task.known.take(prepared.people.users)
    return not np.isin(now.owners * wide + now.values, known.owned.owners * wide + known.owned.values).all()


def _places(before: NDArray[np.str_], now: NDArray[np.str_]) -> tuple[Int64, int]:
    """The place now of each id, and how many are gone."""
    place = {name: number for number, name in enumerate(now.tolist())}
    found = [place.get(name, -1) for name in before.tolist()]
    return np.array(found, np.int64), found.count(-1)


def _seen(known: Known, prepared: Prepared, growth: Growth) -> int:
    """Items that are held out now and were learnt from before."""
    wide = np.int64(growth.worlds[1].n_items)
    train = known.people.block.train
    learnt = growth.users.now[train.owners] * wide + growth.items.now[train.values]

    def placed(lists: Ragged) -> Int64:
        part = lists.take(prepared.people.users)
        return part.owners * wide + part.values

    held_out = np.concatenate([placed(prepared.task.valid), placed(prepared.task.test)])
    return int(np.isin(held_out, learnt).sum())


def _start(folder: RunFolder, known: Known, prepared: Prepared, growth: Growth, done: int) -> Progress:
    """What was learnt, in the larger world, as the state that training goes on from."""
    method, settings, runtime = prepared.method, prepared.settings, prepared.runtime
    small = keeper(method, known.people, settings)
    block = known.people.block
    central = Central(known.world, block.train, block.exclude, block.ordered)
    learnt = folder.model(small.expected())
    try:
        state = grown(method, learnt, (small.snapshot(), runtime.snapshot()), growth, central, settings.seed)
    except CannotGrow as problem:
        raise BadInput(
            f"{method.name} keeps something ({problem}) that new items or users cannot be added to; start a new run"
        ) from None
    runtime.restore(state)
    progress = Progress(round=done, state=state)
    if prepared.plan.evaluated == "download":  # what the run before is worth on the new split: it may be selected
        _evaluate_start(folder, prepared, progress)
    return progress


def _evaluate_start(folder: RunFolder, prepared: Prepared, progress: Progress) -> None:
    plan = prepared.plan
    evaluated = prepared.runtime.evaluate(progress.round)
    valid, test = evaluated.valid.means(), evaluated.test.means() or None
    value = ((valid if plan.select_part == "valid" else test) or {}).get(plan.select_metric, float("nan"))
    if value != value:
        return
    records = folder.records()
    none = dict.fromkeys(("train", "aggregate", "evaluate"), 0.0)
    loss = records[-1]["loss"] if records else 0.0
    record = Record(progress.round, loss, 0, valid, test, none, {"upload": 0.0, "download": 0.0})
    progress.records.append(record)
    progress.best_round, progress.best_value = progress.round, value
    progress.best_state = prepared.runtime.snapshot() if plan.keep_selected else None
    progress.best_per_user = evaluated.per_user

"""The server's side: a Runtime whose clients live on nodes.

A round costs one exchange of messages. Where the protocol evaluates the next download, the evaluation of round
r and the training of round r + 1 need the same download, so they travel together: :meth:`evaluate` already
brings back the uploads that the next :meth:`round` folds. What is evaluated, trained and folded is what the
in-process runtime evaluates, trains and folds.

The server holds no private state. It remembers for each node the last round it took (``taken``); every
message names it, and the node starts from its own state of that round. So an answer that came too late, or
was never taken because the server died, leaves no trace: that round has not happened on that node.

Whatever a node sends, it can only lose its own part in the round: its answer is decoded, inspected and folded inside
one guard, and one that cannot be taken, or that leaves a state nobody could work with, is left out and named. The
state before is kept until the next one is known to be good.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedrec import keyed
from fedrec.core import wire
from fedrec.core.block import World
from fedrec.core.disclosed import Disclosed
from fedrec.core.loop import Cost, Evaluated
from fedrec.core.method import Keys, Method, Reply
from fedrec.core.misfit import Misfit
from fedrec.core.state import Expected, expect, shapes
from fedrec.core.wire import download_bytes
from fedrec.data.ragged import Int64, offsets
from fedrec.deploy.messages.envelope import one_line
from fedrec.deploy.messages.inspection import Template
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Hello
from fedrec.deploy.server.exchange import Exchange, Exchanged, Part, Taken
from fedrec.deploy.server.folding import Fold
from fedrec.deploy.server.room import refuse_too_many, state_of
from fedrec.deploy.server.roster import Place, Roster
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.settling import typical_change
from fedrec.errors import BadInput
from fedrec.evaluation.metrics import MetricSet
from fedrec.evaluation.sums import MetricSums
from fedrec.privacy.chain import outgoing
from fedrec.privacy.compressed import FORMS
from fedrec.robust.defence import Defence

log = logging.getLogger("fedrec.deploy")

Upcoming = Callable[[int, keyed.U64], Int64 | None]
"""Who of these clients answers in a round, or None where there is no such round."""


MOST_LOSS = 1e9
"""Of one client; a larger one is no loss."""
TRIALS = 8
"""Clients of different nodes in whose place a new state is tried."""


class TooFewNodes(RuntimeError):
    """A round that too few nodes answered, however often it was tried. The run can be resumed."""


def snapshot_of(server: Any) -> Expected:
    """What a federation's snapshot must be, by the server's first state; older ones have no losses."""
    return expect(server=server, taken=dict[str, int]).may(losses=dict[str, float])


@dataclass(eq=False)
class Federation:
    """Runs a federated method over nodes; see :class:`fedrec.core.loop.Runtime`."""

    method: Method[Any, Any, Any, Any]
    world: World
    roster: Roster
    exchange: Exchange
    rules: Rules
    run: str
    seed: int
    upcoming: Upcoming
    metrics: MetricSet
    selected: Callable[[], int] = lambda: 0
    robust: Defence = Defence()
    answers_get_lost: ClassVar[bool] = True
    """Whether a client may have sent what did not arrive: it counts as sent."""
    hosts_apart: ClassVar[bool] = True
    """Whether a user may be on several nodes, none of which knows."""

    def __post_init__(self) -> None:
        self.form = wire.Form.of(self.method.settings)
        self.chain = outgoing(self.method.settings)
        refuse_too_many(self.method, self.roster, self.world)
        self.server: Any = self.method.start_server(self.world, Keys(self.seed, 0))
        self.taken: dict[str, int] = {place.name: 0 for place in self.roster.places}
        self.template = Template.of(self.method, self.server, self.world, self.seed)
        self.losses: dict[str, float] = {}
        """What each node said last."""
        self.evaluated: dict[str, tuple[int, int]] = {}
        """Users of each node that have something to be evaluated on; the same in every round."""
        self.arrivals: Callable[[], list[Hello]] = list
        """Nodes that are connected and not in the roster."""
        self.joined: Callable[[Roster], None] = lambda roster: None
        """Called with the new roster before newcomers are asked for anything."""
        self._turned_away: set[str] = set()
        self._ahead: tuple[int, Exchanged] | None = None

    def client_keys(self) -> keyed.U64:
        return self.roster.client_keys

    @property
    def exposure(self) -> tuple[int, tuple[str, ...]]:
        """The most protected numbers in one client's upload, and fields that leave as they are."""
        return self.template.exposure(int(self.roster.users.max(initial=1)))

    def round(self, number: int, chosen: Int64, answering: Int64, evaluate: bool) -> tuple[Cost, Evaluated | None]:
        """Fold the uploads of this round; they may have come with the last evaluation."""
        found, self._ahead = self._ahead, None
        if found is None or found[0] != number or not np.array_equal(found[1].answering, answering):
            found = (number, self._exchange(answering, train=number, local=evaluate))
        done = found[1]
        down = download_bytes(self.method.download(self.server, chosen), self.form, len(chosen)) if len(chosen) else 0
        download = down / max(1, len(chosen))
        if done.secure:
            download += sum(done.secure["bytes"]["download"].values()) * done.clients / max(1, len(chosen))
        self.server = done.state
        self.taken |= dict.fromkeys(done.nodes, number)
        dropped = len(chosen) - len(answering)
        missing = (f"{dropped} of {len(chosen)} clients dropped out",) if dropped else ()
        change = typical_change(self.losses, done.losses) if done.losses else None
        self.losses |= done.losses
        cost = Cost(
            loss=done.loss / max(1, done.clients),
            participants=done.clients,
            upload=done.upload,
            download=download,
            train_seconds=done.seconds,
            aggregate_seconds=done.aggregate_seconds,
            missing=missing + done.missing,
            secure=done.secure,
            unsent=done.unsent,
            change=change,
        )
        self._take_in_newcomers()
        return cost, done.metrics if evaluate else None

    def _take_in_newcomers(self) -> None:
        """Between two rounds: who has come since takes part from the next one on."""
        for hello in sorted(self.arrivals(), key=lambda hello: hello.name):
            if hello.name not in self._turned_away:
                self._take_in(hello)

    def _take_in(self, newcomer: Hello) -> None:
        """One by one: who cannot join keeps nobody else out."""
        name = newcomer.name
        self._turned_away.add(name)  # unless all goes well below
        try:
            if self._keeps_state_per_client():
                raise BadInput(f"{self.method.name} keeps state per client, so they must wait for the next run")
            roster = self.roster.with_newcomers([newcomer])
            world = roster.world(self.world.name, self.world.n_items)
            template = Template.of(self.method, self.server, world, self.seed)
            self.joined(roster)
        except Exception as problem:  # whatever they say of themselves, the run goes on without them
            log.warning("%s cannot join: %s", name, one_line(problem))
            return
        self._turned_away.discard(name)
        self.roster, self.world, self.template = roster, world, template
        self.taken[name] = 0
        log.info("%s joins with %d clients", name, len(newcomer.client_keys))

    def _keeps_state_per_client(self) -> bool:
        """Whether the server's state grows with the clients; tried small, because newcomers may claim any number."""
        two, three = (shapes(state_of(self.method, self.world, n)) for n in (2, 3))
        return two != three

    def evaluate(self, number: int) -> Evaluated:
        """Evaluate round ``number`` on the nodes, and let them train the next round with the same download.

        Not where clients send once: whether there is a next round is not known yet, and a node is charged for it.
        """
        following = self.upcoming(number + 1, self.client_keys())
        if following is None or self.method.contributes_once:
            return self._exchange(np.zeros(0, np.int64), evaluate=number).metrics
        done = self._exchange(following, evaluate=number, train=number + 1)
        self._ahead = (number + 1, replace(done, seconds=0.0))  # the loop counts this exchange as evaluation
        return done.metrics

    def snapshot(self) -> Any:
        """The server's state and what it has taken; private state is on the nodes."""
        return {"server": copy.deepcopy(self.server), "taken": dict(self.taken), "losses": dict(self.losses)}

    def restore(self, state: Any) -> None:
        self.server = copy.deepcopy(state["server"])
        self.taken = {place.name: int(state["taken"].get(place.name, 0)) for place in self.roster.places}
        self.losses = dict(state.get("losses", {}))
        self._ahead = None

    def disclosed(self) -> Disclosed | None:
        return None  # an upload's form is known from a trial client, whoever ran the rounds

    def recall(self, shown: Disclosed | None, rounds: int) -> None: ...

    def _replies(self, taken: Mapping[str, Taken]) -> Iterator[Reply[Any]]:
        for place in self.roster.places:  # always in the roster's order, whoever was first
            found = taken.get(place.name)
            for part in found.parts if found else ():
                yield Reply(part.clients, part.upload)

    def _exchange(self, answering: Int64, evaluate: int = 0, train: int = 0, local: bool = False) -> Exchanged:
        """Ask every node that has something to do, until enough of them have answered well; fold what they sent."""
        began, folding = time.perf_counter(), 0.0
        whole = bool(evaluate) or local
        asks = self._asks(answering, evaluate, train, local, whole)
        taken: dict[str, Taken] = {}
        faults: dict[str, str] = {}
        state: Any = None
        for attempt in range(1, self.rules.attempts + 1):
            found, faults = self._attempt({name: ask for name, ask in asks.items() if name not in taken})
            taken |= found
            if train and self._enough(taken, asks):
                before = time.perf_counter()
                state, culprits = self._folded(taken, train, len(asks))
                folding += time.perf_counter() - before
                taken = {name: one for name, one in taken.items() if name not in culprits}
                faults |= culprits
            if self._enough(taken, asks):
                break
            said = "; ".join(f"{name}: {reason}" for name, reason in sorted(faults.items()))
            log.warning("round %s, attempt %d: too few nodes (%s)", train or evaluate, attempt, said)
            if attempt == self.rules.attempts:
                raise TooFewNodes(f"only {len(taken)} of {len(asks)} nodes answered (least={self.rules.least}): {said}")
            self._await([name for name in asks if name not in taken])
        for name, one in taken.items():
            if whole:
                self.evaluated.setdefault(name, (one.answer.valid.count, one.answer.test.count))
        missing = tuple(f"{name}: {reason}" for name, reason in sorted(faults.items()))
        for line in missing:
            log.warning("round %s: left out %s", train or evaluate, line)
        parts = [part for one in taken.values() for part in one.parts]
        clients = sum(len(part.clients) for part in parts)
        answers = [taken[name].answer for name in sorted(taken)]
        valid, test = (sum((getattr(one, part) for one in answers), MetricSums()) for part in ("valid", "test"))
        return Exchanged(
            answering=answering,
            nodes=tuple(taken),
            missing=missing,
            seconds=time.perf_counter() - began - folding,
            state=state,
            aggregate_seconds=folding,
            clients=clients,
            loss=sum(one.answer.loss for one in taken.values()),
            losses={n: one.answer.loss / len(asks[n].positions) for n, one in taken.items() if train and one.parts},
            upload=sum(part.size for part in parts) / max(1, clients),
            metrics=Evaluated(valid, test),
        )

    def _asks(self, answering: Int64, evaluate: int, train: int, local: bool, whole: bool) -> dict[str, Ask]:
        """What every node that has something to do is asked."""
        asks: dict[str, Ask] = {}
        for place in self.roster.places:
            here = place.among(answering)
            if whole or len(here):
                download = self.method.download(self.server, place.clients if whole else here)
                asks[place.name] = Ask(
                    run=self.run,
                    world=self.world,
                    first=place.first,
                    base=self.taken[place.name],
                    selected=self.selected(),
                    evaluate=evaluate,
                    train=train,
                    local=local,
                    whole=whole,
                    positions=here - place.first,
                    download=wire.encode(download, self.form),
                )
        return asks

    def _enough(self, taken: Mapping[str, Any], asks: Mapping[str, Any]) -> bool:
        return not asks or len(taken) >= self.rules.least * len(asks)

    def _attempt(self, asks: dict[str, Ask]) -> tuple[dict[str, Taken], dict[str, str]]:
        online = self.exchange.online()
        faults = {name: self.exchange.absence(name) for name in asks if name not in online}
        answers = self.exchange.send({name: ask for name, ask in asks.items() if name in online}, self.rules.deadline)
        taken: dict[str, Taken] = {}
        for name, ask in asks.items():
            answer = answers.get(name)
            if answer is None:
                faults.setdefault(name, "no answer")
                continue
            if isinstance(answer, Fault):
                faults[name] = one_line(answer.reason)
                continue
            try:
                taken[name] = self._checked(name, ask, answer)
            except (Misfit, wire.WireError) as problem:
                faults[name] = f"not taken: {one_line(problem)}"
            except Exception as problem:  # whatever a broken answer does, the round goes on
                faults[name] = f"not taken: {type(problem).__name__}: {one_line(problem)}"
        return taken, faults

    def _folded(self, taken: Mapping[str, Taken], number: int, asked: int) -> tuple[Any, dict[str, str]]:
        """The next state of the server, and whose uploads are not in it because it would not be one."""
        fold = Fold(self.method, self.server, Keys(self.seed, number), self._replies, self._guarded, self._works)
        state, culprits = fold.without_culprits(taken)
        if culprits and len(taken) - len(culprits) < self.rules.least * asked:
            fold = replace(fold, tried=None)  # a trial alone does not end a run: what is finite is taken
            state, culprits = fold.without_culprits(taken)
        return state, culprits

    def _guarded(self, before: Any, replies: Iterator[Reply[Any]], keys: Keys) -> Any:
        """The method's fold behind the run's defence."""
        return self.robust.fold(self.method, before, replies, keys, self.roster.users, self.world.n_items)

    def _works(self, state: Any) -> bool:
        """Whether clients could work with a new state, tried in the place of some nodes' first clients.

        Where a trial fails with the present state as well, it says nothing about the new one.
        """
        clients = np.array([place.first for place in self.roster.places[:TRIALS]], np.int64)
        return self.template.works(self.method, state, clients) or not self.template.works(
            self.method, self.server, clients
        )

    def _await(self, names: list[str]) -> None:
        """Give nodes time to come back."""
        end = time.monotonic() + self.rules.wait
        while time.monotonic() < end and not set(names) <= self.exchange.online():
            time.sleep(min(1.0, self.rules.wait))

    def _checked(self, name: str, ask: Ask, answer: Answer) -> Taken:
        """Decode a node's uploads; anything that is not what the method sends raises."""
        place = self.roster.find(name)
        if place is None:
            raise Misfit("not one of this run's nodes")
        self._check_sums(place, ask, answer)
        trained = len(ask.positions) if ask.train else 0
        if not abs(answer.loss) <= MOST_LOSS * trained:
            raise Misfit(f"a loss of {answer.loss:.6g} over {trained} clients")
        if sum(answer.counts) != trained or len(answer.counts) != len(answer.uploads) or 0 in answer.counts:
            raise Misfit(f"uploads of {sum(answer.counts)} clients, not {trained}")
        return Taken(answer, self._parts(place, ask, answer))

    def _parts(self, place: Place, ask: Ask, answer: Answer) -> tuple[Part, ...]:
        parts: list[Part] = []
        bounds = offsets(np.array(answer.counts, np.int64))
        for data, first, last in zip(answer.uploads, bounds[:-1], bounds[1:], strict=True):
            positions = ask.positions[first:last]
            sent = wire.decode(self.method.Upload, data, FORMS)
            self.template.check_folded(sent, place.users[positions])
            with np.errstate(all="ignore"):  # what overflows is refused below
                upload = self.chain.restore(sent)
            self.template.check(upload, place.users[positions])
            parts.append(Part(place.first + positions, upload, wire.payload(sent, self.form)))
        return tuple(parts)

    def _check_sums(self, place: Place, ask: Ask, answer: Answer) -> None:
        asked = bool(ask.evaluate) or ask.local
        known = self.evaluated.get(place.name)
        for part, sums in enumerate((answer.valid, answer.test)):
            fault = sums.fault(self.metrics.names, int(place.users.sum()) if asked else 0)
            if fault is None and asked and known is not None and sums.count != known[part]:
                fault = f"metric sums of {sums.count} users, and of {known[part]} before"
            if fault is not None:
                raise Misfit(fault)

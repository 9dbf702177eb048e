"""A node in secure sums: what its members add, and their steps. Members are the node itself, or each of its clients.

What was trained and evaluated waits in ``parts.safetensors`` under the number of its sum. ``sums.json`` says for every
member which attempt it joined last and which round it signed the survivors of; it is written before a word about either
leaves the node, so that no crash, and no second process, can make a member join an attempt twice, or be in two sums of
one round with different members. The parts of an attempt are in memory alone: who restarts has dropped out of it. Every
vector is charged before it is made, to the clients whose data is in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fedrec.core.method import Keys
from fedrec.core.misfit import require
from fedrec.core.sums import SumField
from fedrec.data.ragged import Int64
from fedrec.deploy.members import hosts_of, read_members, read_sums_key
from fedrec.deploy.messages.letters import Step, Stepped
from fedrec.deploy.node.outgoing import Parts
from fedrec.deploy.node.share import NodeOptions, Share
from fedrec.deploy.node.store import NodeStore
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.runs.settings import RunSettings
from fedrec.secure.contribution import EVALUATED, LOSS, Guard, metric_fields, refuse_foreign, vector_of
from fedrec.secure.failures import Refusal, SecureFailure
from fedrec.secure.identity import host_of
from fedrec.secure.layout import Field, Layout
from fedrec.secure.messages import Kind
from fedrec.secure.participant import Member, Participant
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy

log = logging.getLogger("fedrec.deploy")

PARTS, STATE = "parts.safetensors", "sums.json"


def sum_number(evaluate: int, train: int) -> int:
    """The number of the sum of an exchange: each is summed once, and they only grow."""
    return 2 * train if train else 2 * evaluate + 1


def sum_shapes(method: Any, seed: int, share: Share) -> dict[str, SumField]:
    """The method's sums; their shapes are those of its first state, which does not depend on anybody's data."""
    return dict(method.sum_fields(method.start_server(share.world, Keys(seed, 0)), share.most_users))


def foreign_to(method: Any, settings: RunSettings, share: Share) -> Callable[[Layout], None]:
    """What refuses sums that are not this method's, or with too little room for what a node's members may have."""
    fields = sum_shapes(method, settings.seed, share)
    fields |= metric_fields(find_protocol(settings.protocol).metrics.names, share.most_users)
    clients = 1 if settings.secure_by == "clients" else share.block.n_clients
    return lambda layout: refuse_foreign(layout, fields, method.settings, share.most_users, clients)


def refuse_hidden(plan: Plan, name: str, own: Mapping[str, Any]) -> None:
    """Refuse a plan by which a member without numbers of its own would count as one that has some.

    Behind such members a server could have the sum of a single one.
    """
    names = {field.name for field in plan.layout.fields}
    trained = names - {LOSS, *EVALUATED}  # the method's own sums
    lacking = names - set(own)
    fits = not lacking & trained if plan.place[name] not in plan.idle else trained and trained <= lacking
    if not fits or lacking & set(EVALUATED):
        raise Refusal(f"the plan does not say of {name!r} what it has of its own to sum")


def within_bound(field: Field, numbers: np.ndarray) -> np.ndarray:
    """A sum's numbers, none beyond the field's bound: who fell silent there would tell the server so."""
    inside = np.clip(np.nan_to_num(numbers), -field.bound, field.bound)
    if not np.array_equal(inside, numbers):
        log.warning(
            "%s: what was trained is beyond its bound of %g and was cut off; a smaller lr helps",
            field.name,
            field.bound,
        )
    return np.asarray(inside)


class Summing:
    """One run's secure sums on one node."""

    guard: Guard = Guard()
    """The owner's protection of what is summed; see :mod:`fedrec.secure.contribution`."""

    def __init__(
        self, options: NodeOptions, store: NodeStore, refuse: Callable[[Layout], None], *, each: bool = False
    ) -> None:
        """``refuse`` raises where a plan sums something else than this node has; ``each``: its clients are members."""
        self.each = each
        assert options.members is not None
        assert options.sums_key is not None
        self.options, self.store, self.refuse = options, store, refuse
        self.key = read_sums_key(options.sums_key)
        self.directory = hosts_of(read_members(options.members))
        self.policy = Policy(options.secure_least, options.secure_least, options.secure_colluding)
        self.taking: dict[str, Participant] = {}
        self.joined: dict[str, str] = {}
        """Which parts each member joined with."""

    def step(self, word: Step) -> Stepped:
        """The members' answers; one that refuses is silent, and why is in the node's log."""
        kind = Kind(word.step)
        if kind is Kind.ADVERTISE:
            require(set(word.contents) == {"plan"}, "a plan that is none")
            return Stepped(self._join(word.run, Plan.from_bytes(word.contents["plan"])))
        require(set(word.contents) <= set(self.taking), "a step of a sum that this node is not in, or has left")
        parts: Parts = {}
        allowed: set[str] = set()
        if kind is Kind.INPUT:
            parts, clients, about = self._waiting()
            # what was trained since would be summed twice, here and under its own number, with other members perhaps,
            # or would come from another download than that of the others
            if {self.joined[name] for name in word.contents} - {about.get("made", "")}:
                raise Refusal("a sum of something else than was trained here last")
            allowed = self._charged(word.contents, clients)
        said: dict[str, bytes] = {}
        for name, content in word.contents.items():
            part = self.taking[name]
            try:
                if kind is Kind.SHARE:
                    said[name] = part.share(content)
                elif kind is Kind.INPUT:
                    if name not in allowed:
                        raise Refusal("the budget of those whose data is in it is spent")
                    said[name] = part.mask(content, self._vector(part.plan, name, parts.get(name, {})))
                elif kind is Kind.CONFIRM:
                    said[name] = part.confirm(content)
                else:
                    said[name] = part.unmask(content)
            except SecureFailure as failure:
                log.warning("%s, step %s: %s", name, kind.name.lower(), failure)
        if kind is Kind.CONFIRM:
            self._confirmed({name: self.taking[name].plan for name in said})
        if not said:
            raise Refusal(f"nobody here takes the step {kind.name.lower()}; the log says why")
        return Stepped(said)

    def _join(self, run: str, plan: Plan) -> dict[str, bytes]:
        parts, _, about = self._waiting()
        number = int(about["number"])
        require(plan.run == run and plan.round == number, "a sum of something else than was trained here last")
        if plan.agreed != about.get("agreed", ""):
            raise Refusal("the plan is for other settings, or for another download, than this node trained with")
        own = [name for name in plan.members if host_of(name) == self.options.name]
        require(bool(own), "a sum that this node is no member of")
        if {host_of(name) == name for name in plan.members} != {not self.each}:
            raise Refusal("the plan has members of another kind than this run's: nodes, or each of their clients")
        self.refuse(plan.layout)
        for name in own:
            refuse_hidden(plan, name, parts.get(name, {}))
        state = self._state()
        joined: dict[str, Participant] = {}
        for name in own:
            known = state.get(name, {})
            last, confirmed = known.get("last"), known.get("confirmed", known.get("answered"))
            member = Member(name, self.key, self.directory, self.policy)
            member.last = {} if last is None else {run: (int(last[0]), int(last[1]))}
            member.confirmed = {} if confirmed is None else {run: int(confirmed)}
            joined[name] = member.join(plan)
            state[name] = {"last": [plan.round, plan.attempt], "confirmed": confirmed}
        self.store.write_json(STATE, state)
        self.joined |= dict.fromkeys(joined, about.get("made", ""))
        self.taking = {**{name: part for name, part in self.taking.items() if part.plan.round == number}, **joined}
        return {name: part.advertise() for name, part in joined.items()}

    def _confirmed(self, plans: dict[str, Plan]) -> None:
        """Remember what is about to be signed; refuse where another process has joined or signed since."""
        state = self._state()
        for name, plan in plans.items():
            if state[name]["last"] != [plan.round, plan.attempt] or (state[name]["confirmed"] or -1) >= plan.round:
                raise Refusal(f"{name} has joined another attempt since, or has signed this sum")
            state[name]["confirmed"] = plan.round
        self.store.write_json(STATE, state)

    def _charged(self, names: Iterable[str], clients: Mapping[str, Int64]) -> set[str]:
        """Members whose vectors may be made, charged for them; who has nothing of its own to sum is not charged."""
        allowed: set[str] = set()
        adding: dict[bytes, dict[str, Int64]] = {}
        for name in names:
            part = self.taking[name]
            if part.place in part.plan.idle or name not in clients or not part.awaits(Kind.INPUT):
                allowed.add(name)
            else:
                adding.setdefault(part.plan.digest, {})[name] = clients[name]
        for own in adding.values():
            allowed |= self.guard.charge(self.taking[next(iter(own))].plan, own)
        return allowed

    def _vector(self, plan: Plan, name: str, own: dict[str, np.ndarray]) -> Any:
        """The member's numbers; one that did not train adds nothing to the method's sums, and the plan says so."""
        refuse_hidden(plan, name, own)
        names = {field.name for field in plan.layout.fields}
        if not set(own) <= names:
            raise Refusal(f"the plan leaves out {sorted(set(own) - names)}")
        whole = {field.name: own.get(field.name, np.zeros(field.shape)) for field in plan.layout.fields}
        # a file keeps a single number as an array of one
        whole |= {field.name: np.reshape(whole[field.name], ()) for field in plan.layout.fields if not field.shape}
        trained = [field for field in plan.layout.fields if field.name not in (LOSS, *EVALUATED)]
        return vector_of(
            plan, whole | {field.name: within_bound(field, whole[field.name]) for field in trained}, self.guard
        )

    def _waiting(self) -> tuple[Parts, dict[str, Int64], dict[str, Any]]:
        if not self.store.has(PARTS):
            raise Refusal("nothing was trained or evaluated here that could be summed")
        found, about = self.store.read(PARTS, dict[str, Any])
        if found.keys() != {"sums", "clients"}:
            raise Refusal("what waits here to be summed was left by another version of fedrec")
        return found["sums"], found["clients"], about

    def _state(self) -> dict[str, Any]:
        return self.store.read_json(STATE) if self.store.has(STATE) else {}

"""A server that plays its own game with secure sums: what it asks twice, tells some nodes only, or makes overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from direct import federation

from fedrec.core import wire
from fedrec.core.state import flatten
from fedrec.deploy.messages.agreement import agreement
from fedrec.deploy.messages.letters import Fault, Meet, Step
from fedrec.deploy.node.ledger import NodeLedger
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.summing import PARTS
from fedrec.deploy.server.federation import TooFewNodes
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.summing import SecureFederation, rules_for
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.laws.nodes import RUN, WORLD
from fedrec.laws.small_runs import small_settings
from fedrec.privacy.ledger import OwnerPolicy
from fedrec.runs.settings import RunSettings
from fedrec.secure.aggregator import Aggregator, SecureSum
from fedrec.secure.course import Costs
from fedrec.secure.failures import Refusal, TooFew
from fedrec.secure.layout import Field, Layout
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.rules import neighbourhood

ONCE = Rules(wait=0.01, attempts=1, least=0.5)
"""One attempt, and half of the nodes are enough."""


GIVEN = {"data": WORLD, "seed": 3, "rounds": 1, "secure": True, "secure_by": "nodes"}


def settings_of(method: str, **more: Any) -> Any:
    own = small_settings(method).model_dump(mode="json") | more.pop("settings", {})
    return resolve(method, {**GIVEN, "settings": own, **more})


def everyone(runtime: Any) -> Any:
    return np.arange(runtime.world.n_clients)


class Attacker:
    """A server's part that asks whom it likes in each step, with a graph that every member's policy takes."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.runtime, _, _, self.exchange = federation(folder, settings_of("fcf"), nodes, ONCE)
        runtime: Any = self.runtime
        self.exchange.send(runtime._asks(everyone(runtime), 0, 1, False, False), 60)
        self.layout = runtime._layout(1, False)
        download = runtime._asks(everyone(runtime), 0, 1, False, False)["node0"].download
        self.agreed = agreement(runtime.settings, wire.decode(runtime.method.Download, download))
        self.refused: set[str] = set()
        self.fewest: dict[str, int] = {}

    def plan(self, members: list[str], attempt: int) -> Plan:
        rules = neighbourhood(len(members), 0.0, 0.05).rules
        rules = replace(rules, neighbours=len(members) - 1, threshold=2, window=0, **self.fewest)
        return Plan.of(RUN, 2, members, self.layout, rules, attempt=attempt, agreed=self.agreed)

    def sum(self, members: list[str], attempt: int, asked: dict[Kind, Sequence[str]]) -> SecureSum:
        runtime: Any = self.runtime
        plan = self.plan(members, attempt)
        server, inbox = Aggregator(plan, runtime.directory), dict.fromkeys(members, b"")
        for kind in Kind:
            to = asked.get(kind, list(inbox))
            first = kind is Kind.ADVERTISE
            steps = {n: Step(RUN, int(kind), {"plan": plan.to_bytes()} if first else {n: inbox[n]}) for n in to}
            for name, reply in self.exchange.step(steps, 60).items():
                if isinstance(reply, Fault):
                    self.refused.add(name)
                    continue
                server.receive(reply.contents[name])
            if kind is not Kind.UNMASK:
                inbox = server.close()
        return server.total()


def test_two_sums_of_a_round_do_not_differ_by_one_node(tmp_path: Path) -> None:
    """It opens a sum with the help of two, who can, and sums the others again without the one it is after."""
    names = [f"node{i}" for i in range(6)]
    server = Attacker(tmp_path, 6)
    whole = server.sum(names, 0, {Kind.UNMASK: ["node0", "node3"]})
    assert len(whole.survivors) == 6  # nobody but these two gave a secret away
    with pytest.raises(TooFew):
        server.sum([name for name in names if name != "node3"], 1, {})
    assert server.refused >= set(names) - {"node3"}


def test_not_even_with_the_fewest_signatures(tmp_path: Path) -> None:
    """Who was asked for no signature may be summed again: those who gave one stay together in the difference."""
    names = [f"node{i}" for i in range(8)]
    server = Attacker(tmp_path, 8)
    plan = server.plan(names, 0)
    signed = [names[place] for place in plan.committee[: plan.rules.quorum]]
    assert 3 <= len(signed) < 6
    whole = server.sum(names, 0, {Kind.CONFIRM: signed, Kind.UNMASK: signed[:2]})
    assert len(whole.survivors) == 8
    rest = [name for name in names if name not in signed]
    with pytest.raises(TooFew):
        server.sum([*rest, signed[0]], 1, {})
    assert server.refused == {signed[0]}
    found = server.sum(rest, 2, {})
    assert set(whole.survivors) - set(found.survivors) == set(signed)


def test_a_plan_that_too_few_signatures_open_is_refused(tmp_path: Path) -> None:
    names = [f"node{i}" for i in range(8)]
    server = Attacker(tmp_path, 8)
    server.fewest = {"committee": 2, "quorum": 2}
    with pytest.raises(TooFew):
        server.sum(names, 0, {})
    assert server.refused == set(names)


def test_nodes_that_were_told_other_settings_are_in_no_sum_with_those_that_were_not(tmp_path: Path) -> None:
    """With a clip of nothing for all others, a sum would be the vector of one."""
    settings = settings_of("fedavg", settings={"clip": 1.0, "noise": 0.0}, secure_dropout=0.25)
    runtime, _, _, exchange = federation(tmp_path, settings, 5, ONCE)
    other = settings.model_copy(update={"settings": {**settings.settings, "clip": 1e-12}})
    for name in ("node0", "node1", "node3", "node4"):
        Node(exchange.options[name], RUN).meet(Meet(RUN, other.model_dump_json(), ()))
    with pytest.raises(TooFewNodes, match="node4: step advertise: Refusal"):
        runtime.round(1, everyone(runtime), everyone(runtime), False)


def test_nor_those_that_were_sent_another_download(tmp_path: Path) -> None:
    made, _, _, _ = federation(tmp_path, settings_of("fcf", secure_dropout=0.25), 5, ONCE)
    runtime: Any = made
    asks = runtime._asks

    def other(*given: Any) -> Any:
        made = asks(*given)
        download = wire.decode(runtime.method.Download, made["node2"].download)
        table = np.zeros_like(download.items)
        made["node2"] = replace(made["node2"], download=wire.encode(replace(download, items=table), runtime.form))
        return made

    runtime._asks = other
    cost, _ = runtime.round(1, everyone(runtime), everyone(runtime), False)
    assert any("node2: step advertise: Refusal" in line for line in cost.missing)


@pytest.mark.parametrize("secure", [True, False])
def test_a_download_that_makes_training_overflow_is_no_question_about_a_history(secure: bool, tmp_path: Path) -> None:
    """A row so large that training on its item overflows: an error said that a client has the item, at no charge."""
    hot = {"dim": 4, "epochs": 3, "batch_size": 8, "negatives": 1, "optimizer": "sgd", "lr": 10.0}
    more = {} if secure else {"clip": 1.0, "noise": 2.0}
    settings = settings_of("fedavg", secure=secure, settings={**hot, **more})
    runtime, _, _, exchange = federation(tmp_path, settings, 4, ONCE)
    node = Node(replace(exchange.options["node1"], repeatable=False), RUN)
    download = runtime.method.download(runtime.server, runtime.roster.places[1].clients)
    history = set(node.share.block.train[2].tolist())
    before = runtime._asks(everyone(runtime), 0, 1, False, False)["node1"]
    overflowed = 0
    for item in sorted(history)[:3]:
        table = np.array(download.items)
        table[item] = [3e38, -3e38, 3e38, -3e38]
        sent = wire.encode(replace(download, items=table), runtime.form)
        answer = node.answer(replace(before, positions=np.array([2]), download=sent))
        assert np.isfinite(answer.loss)
        if secure:
            (own,) = node.store.read(PARTS, dict[str, Any])[0]["sums"].values()
            overflowed += bool((own["items"][item] == 0).any())
            assert all(np.isfinite(part).all() for part in own.values())
        state = flatten(node.private("state-1.safetensors"))[0]
        assert all(np.isfinite(array).all() for array in state.values() if array.dtype.kind == "f")
    assert overflowed or not secure


def test_what_is_beyond_its_bound_is_cut_off_where_an_error_would_say_so(tmp_path: Path) -> None:
    runtime, _, _, exchange = federation(tmp_path, settings_of("fcf"), 4, ONCE)
    honest = Node._keep_parts

    def huge(self: Node, *given: Any) -> Any:
        if self.options.name == "node1":
            given[2].parts["node1"]["items"][:] = 1e30
        return honest(self, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Node, "_keep_parts", huge)
        cost, _ = runtime.round(1, everyone(runtime), everyone(runtime), False)
    assert not any("step" in line for line in cost.missing)
    assert exchange.nodes["node1"].summing.taking  # it went through all steps as the others did


def test_losses_are_not_sent_where_the_owner_has_limits(tmp_path: Path) -> None:
    """A server that left --epsilon out and put the noise into the plan was told the losses without any."""
    with_budget, _, _, _ = federation(tmp_path / "a", resolve("fcf", {**GIVEN, "nodes": 4, "epsilon": 8.0}), 4, ONCE)
    noise: Any = with_budget.summed  # type: ignore[attr-defined]
    own = with_budget.method.settings.model_dump(mode="json")
    runtime, _, _, exchange = federation(tmp_path / "b", settings_of("fcf", settings=own), 4, ONCE)
    loose: Any = runtime
    policy = OwnerPolicy(min_noise=1e-6, max_clip=10.0, budget=8.1)
    exchange.options |= {name: replace(one, policy=policy) for name, one in exchange.options.items()}
    layout, seen = loose._layout, []
    loose._layout = lambda train, whole, *_: layout(train, whole, noise.noise, noise.bits)
    sums = loose._sums

    def kept(*given: Any) -> Any:
        seen.append(sums(*given))
        return seen[-1]

    loose._sums = kept
    cost, _ = runtime.round(1, everyone(runtime), everyone(runtime), False)
    assert cost.participants == 30
    assert float(seen[0][0].fields["loss"]) == 0


def test_claims_that_would_round_the_others_away_are_refused_by_name(tmp_path: Path) -> None:
    runtime, _, _, _ = federation(tmp_path, settings_of("fcf", secure_dropout=0.25), 5, ONCE)
    loose: Any = runtime
    *honest, last = runtime.roster.places
    keys = np.arange(1 << 40, (1 << 40) + 10**6).astype(np.uint64)
    loose.roster = Roster.of([*honest, replace(last, client_keys=keys, users=np.full(10**6, 10**7))])
    with pytest.raises(
        BadInput, match=r"node4 says that it has 1000000 clients of up to 10000000 users; if that is not"
    ):
        loose._layout(1, False)


def claiming(runtime: Any, *claims: int) -> Any:
    """The runtime with so many users in the first client of its last nodes."""
    places = list(runtime.roster.places)
    for place, (last, claim) in enumerate(zip(places[-len(claims) :], claims, strict=True), len(places) - len(claims)):
        places[place] = replace(last, users=np.r_[claim, last.users[1:]])
    runtime.roster = Roster.of(places)
    return runtime


def test_claims_for_which_noise_would_hide_the_others_are_refused_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Noise grows with the most users of a client: one claim of a thousand left everybody a model of noise."""
    settings = resolve("fedavg", {**GIVEN, "epsilon": 8.0, "nodes": 5, "settings": {"dim": 4, "epochs": 1}})
    for number, claims in enumerate([(1000,), (10**12,), (1000, 2000)]):
        runtime = claiming(federation(tmp_path / str(number), settings, 5, ONCE)[0], *claims)
        named = "node3, node4 say" if len(claims) == 2 else "node4 says"
        with pytest.raises(BadInput, match=f"{named} that a client there has {claims[0]} users or more"):
            runtime.round(1, everyone(runtime), everyone(runtime), False)
    for number, claims in enumerate([(1,), (2,), (3, 3, 3)], 3):  # what is plausible goes on
        caplog.clear()
        runtime = claiming(federation(tmp_path / str(number), settings, 5, ONCE)[0], *claims)
        assert runtime.summed.noise
        assert ("the noise is 2 times as large" in caplog.text) == (claims == (2,))


def test_what_is_masked_is_what_was_joined_with(tmp_path: Path) -> None:
    """Honest joins, and then another download for all but one, before they mask."""
    runtime: Any = federation(tmp_path, settings_of("fcf", secure_dropout=0.25), 5, ONCE)[0]
    exchange, step = runtime.exchange, runtime.exchange.step
    asks = runtime._asks(everyone(runtime), 0, 1, False, False)

    def again(steps: Any, deadline: float) -> Any:
        if next(iter(steps.values())).step == Kind.INPUT:
            for name, ask in asks.items():
                if name != "node2":
                    download = wire.decode(runtime.method.Download, ask.download)
                    other = replace(download, items=np.full_like(download.items, 3e38))
                    exchange.send({name: replace(ask, download=wire.encode(other, runtime.form))}, 60)
        return step(steps, deadline)

    exchange.step = again
    with pytest.raises(TooFewNodes, match="node4: step input: Refusal"):
        runtime.round(1, everyone(runtime), everyone(runtime), False)


def test_clients_that_are_counted_hide_nobody(tmp_path: Path) -> None:
    """The server says of all but one that it has their part: they add zeros, and the sum would be that one's pairs."""
    runtime: Any = federation(tmp_path, settings_of("fedease", secure_dropout=0.25), 5, ONCE)[0]
    asks = runtime._asks

    def counted(*given: Any) -> Any:
        made = asks(*given)
        for name, ask in made.items():
            if name != "node2":
                download = wire.decode(runtime.method.Download, ask.download)
                other = replace(download, counted=np.ones_like(download.counted))
                made[name] = replace(ask, download=wire.encode(other, runtime.form))
        return made

    runtime._asks = counted
    with pytest.raises(TooFewNodes, match="node4: step advertise: Refusal"):
        runtime.round(1, everyone(runtime), everyone(runtime), False)


def test_a_round_in_which_one_is_new_is_skipped(tmp_path: Path) -> None:
    """The honest server had the sum of the one that was not counted yet, too."""
    runtime: Any = federation(tmp_path, settings_of("fedease", rounds=3), 4, ONCE)[0]
    without = np.setdiff1d(everyone(runtime), runtime.roster.places[2].clients)
    assert runtime.round(1, without, without, False)[0].participants == len(without)
    cost, _ = runtime.round(2, everyone(runtime), everyone(runtime), False)
    assert cost.participants == 0
    assert "1 of 4 members have trained" in cost.missing[-1]


def test_new_ones_among_many_that_are_counted_share_cohorts(tmp_path: Path) -> None:
    """Some cohorts had one or two of the six that were new, and the whole round was skipped."""
    settings = settings_of("fedease", secure_by="clients", secure_dropout=0.1, secure_cohort=6, rounds=3)
    runtime: Any = federation(tmp_path, settings, 2, ONCE)[0]
    first = np.r_[0:12, 15:27]
    assert runtime.round(1, first, first, False)[0].participants == len(first)
    cost, _ = runtime.round(2, everyone(runtime), everyone(runtime), False)
    assert not cost.missing
    assert runtime.server.counted.all()


def test_the_signers_are_among_those_that_add_something() -> None:
    layout = Layout((Field("table", (5,), 1.0),), 10)
    names = [f"node{i}" for i in range(10)]
    for cohort in range(20):
        rules = neighbourhood(10, 0.0, 0.05, adding=5).rules
        plan = Plan.of(RUN, 2, names, layout, rules, cohort=cohort, idle=names[5:])
        assert set(plan.committee.tolist()) <= set(range(5))
        assert rules.quorum >= 3


@pytest.mark.parametrize(("members", "least"), [(24, 4), (60, 4), (3, 3), (8, 3)])
def test_colluding_signers_are_not_counted_on(members: int, least: int) -> None:
    """Of 24 members two may collude: three signatures, theirs and one more, would set that one apart."""
    rules = neighbourhood(members, 0.0, 0.05).rules
    assert rules.quorum >= least
    names = sorted(f"n{i:02}" for i in range(members))
    weak = replace(rules, committee=least - 1, quorum=least - 1)
    layout = Layout((Field("table", (5,), 1.0),), members)
    policy, known = Policy(), dict.fromkeys(names, b"")
    policy.check(Plan.of(RUN, 2, names, layout, rules), known)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="signatures"):
        policy.check(Plan.of(RUN, 2, names, layout, weak), known)  # type: ignore[arg-type]


def test_a_node_is_in_a_plan_once(tmp_path: Path) -> None:
    server = Attacker(tmp_path, 4)
    with pytest.raises(TooFew):
        server.sum(["node0", "node0/0", "node2"], 0, {})
    assert "node2" in server.refused


def test_a_model_that_overflows_for_some_is_evaluated_like_any_other(tmp_path: Path) -> None:
    """Scores were infinite where a user has an item, and an error said so."""
    runtime: Any = federation(tmp_path, settings_of("fedelsa", rounds=2), 4, ONCE)[0]
    ask = runtime._asks(everyone(runtime), 1, 0, False, True)["node1"]
    download = wire.decode(runtime.method.Download, ask.download)
    node = Node(runtime.exchange.options["node1"], RUN)
    answered = 0
    for item in node.share.block.train[0].tolist()[:4]:
        table = np.zeros_like(download.table)
        table[item] = 3e38
        sent = wire.encode(replace(download, table=table), runtime.form)
        answered += node.answer(replace(ask, download=sent)) is not None
    assert answered == 4


def test_a_sum_is_charged_whatever_its_numbers_are(tmp_path: Path) -> None:
    """Where zeros were free, a spent budget said whose numbers are none."""
    made = federation(tmp_path, resolve("fcf", {**GIVEN, "nodes": 4, "epsilon": 8.0}), 4, ONCE)
    runtime: Any = made[0]
    honest = Node._keep_parts

    def nothing(self: Node, *given: Any) -> Any:
        if self.options.name == "node1":
            own = given[2].parts["node1"]
            given[2].parts["node1"] = {name: np.zeros_like(part) for name, part in own.items()}
        return honest(self, *given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Node, "_keep_parts", nothing)
        runtime.round(1, everyone(runtime), everyone(runtime), False)
    spent = [NodeLedger(one.folder, OwnerPolicy()).read().spent() for one in made[3].options.values()]
    assert len({one.rho for one in spent}) == 1
    assert spent[1].rho > 0


def test_members_who_are_away_are_waited_for_where_the_rest_are_too_few() -> None:
    """Rules that fit seven members and none of six ended a run."""
    chosen = RunSettings(method="fedavg", secure=True, secure_dropout=0.34, secure_colluding=0.2)
    server: Any = SimpleNamespace(settings=chosen, seed=0, run="r")
    members = [f"n{number}" for number in range(7)]
    assert rules_for(7, chosen).neighbours
    with pytest.raises(TooFew) as raised:
        SecureFederation._sums(server, 2, members[:6], set(), cast(Any, None), Costs(), {})
    assert raised.value.repeat

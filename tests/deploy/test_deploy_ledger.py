"""A node keeps account of what it gives away: charged before it is sent, sent again but never drawn again."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, federation, records_of
from hostile import put_together, taken_apart

from fedrec.core.loop import Progress
from fedrec.deploy.messages.envelope import fault_in, pack_ask, pack_meet, unpack_answer
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Meet
from fedrec.deploy.node.ledger import FILE, NodeLedger
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.releases import Releases
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.worker import Worker, options_of
from fedrec.deploy.server.federation import TooFewNodes
from fedrec.deploy.server.rules import Rules
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.privacy.card import APART
from fedrec.privacy.ledger import Ledger, OwnerPolicy, Withheld
from fedrec.privacy.spending import NOTHING, UNBOUNDED, gaussian_release, laplace_release
from fedrec.runs.result import card_of
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan

NOISED = {"dim": 4, "epochs": 1, "clip": 1.0, "noise": 4.0, "noise_kind": "gaussian"}
WORLD = "scale:users=20,items=40,interactions=300"


def settings_of(own: dict[str, Any], **more: Any) -> Any:
    method = more.pop("method", "fedavg")
    return resolve(method, {"data": WORLD, "rounds": 4, "settings": own, **more})


@pytest.fixture
def asked(tmp_path: Path) -> tuple[NodeOptions, Ask]:
    """A node whose noise is secret, and a sound message to it that it has not answered."""
    found: list[Ask] = []

    def watch(name: str, ask: Ask, work: Any) -> Any:
        found.append(ask)
        return Fault("not now") if name == "node1" else work()

    runtime, _, _, exchange = federation(tmp_path, settings_of(NOISED), 2, spoil=watch)
    runtime._exchange(np.arange(20), train=1)
    options = replace(exchange.options["node1"], repeatable=False)
    return options, next(ask for ask in reversed(found) if ask.first == 10)


def altered(ask: Ask, by: float) -> Ask:
    arrays, about = taken_apart(ask.download)
    return replace(ask, download=put_together({**arrays, "items": arrays["items"] + np.float32(by)}, about))


def said(worker: Worker, ask: Ask) -> Answer | Fault:
    plain = worker.handle(pack_ask(ask))
    return fault_in(plain) or unpack_answer(plain)


def test_a_round_is_noised_once_whatever_is_asked(asked: tuple[NodeOptions, Ask]) -> None:
    options, ask = asked
    first = said(Worker(options), ask)
    assert isinstance(first, Answer)
    # a killed server that comes back, a node that comes back, and questions that differ a little
    again = [said(Worker(options), one) for one in (ask, *(altered(ask, 1e-3 * i) for i in range(1, 6)))]
    assert {one.uploads if isinstance(one, Answer) else one for one in again} == {first.uploads}
    charges = NodeLedger(options.folder, OwnerPolicy()).read().charges
    assert [(one.run, one.round, one.clients, one.answered) for one in charges] == [(RUN, 1, 10, True)]
    assert charges[0].spent == gaussian_release(2.0, 4.0)
    other = said(Worker(options), replace(altered(ask, 0.1), positions=ask.positions[:1]))
    assert isinstance(other, Fault)
    assert "round 1 of this run was answered" in other.reason


def test_what_was_charged_and_not_stored_was_not_sent(
    asked: tuple[NodeOptions, Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, ask = asked

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("fedrec.deploy.node.store.NodeStore.keep_answer", full)
        assert isinstance(said(Worker(options), ask), Fault)
    ledger = NodeLedger(options.folder, OwnerPolicy())
    assert [one.answered for one in ledger.read().charges] == [False]
    assert isinstance(said(Worker(options), ask), Answer)
    assert [one.answered for one in ledger.read().charges] == [True]


def test_a_charge_that_was_not_sent_is_not_for_others(
    asked: tuple[NodeOptions, Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round was charged for two clients when the node died; its others were then sent without a charge."""
    options, ask = asked

    def killed(*_: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("fedrec.deploy.node.store.NodeStore.keep_answer", killed)
        assert isinstance(said(Worker(options), replace(ask, positions=ask.positions[:2])), Fault)
    ledger = NodeLedger(options.folder, OwnerPolicy())
    assert len(ledger.read().keys) == 2
    other = said(Worker(options), ask)
    assert isinstance(other, Fault)
    assert "charged for other clients" in other.reason
    answer = said(Worker(options), replace(ask, positions=ask.positions[:2]))  # who was charged may still be sent
    assert isinstance(answer, Answer)
    assert answer.counts == (2,)
    assert ledger.read().spent().releases == 1


def test_what_was_stored_and_not_marked_when_the_node_died_is_not_noised_again(
    asked: tuple[NodeOptions, Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, ask = asked

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("fedrec.deploy.node.store.NodeStore.link", killed)
        with pytest.raises(KeyboardInterrupt):
            said(Worker(options), ask)
    first = said(Worker(options), ask)
    assert isinstance(first, Answer)
    again = said(Worker(options), altered(ask, 0.1))
    assert isinstance(again, Answer)
    assert again.uploads == first.uploads
    assert [one.answered for one in NodeLedger(options.folder, OwnerPolicy()).read().charges] == [True]


def test_a_budget_ends_the_nodes_part_with_a_line(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = federation(tmp_path, settings_of(NOISED, method="fcf"), 2)
    release = gaussian_release(2.0, 4.0)
    budget = release.times(2).epsilon(1e-6) * 1.001
    exchange.options["node1"] = replace(exchange.options["node1"], policy=OwnerPolicy(budget=budget))
    records = records_of(runtime, plan, progress)
    assert [one.participants for one in records] == [20, 20, 10, 10]
    spent = NodeLedger(exchange.options["node1"].folder, OwnerPolicy()).read().spent()
    assert spent.releases == 2
    assert spent.epsilon(1e-6) <= budget
    with pytest.raises(Withheld, match="the privacy budget of this node is spent: another release would reach epsilon"):
        Releases(exchange.options["node1"], runtime.method).charge(
            RUN, 3, np.array(runtime.client_keys()[10:], np.uint64), 1
        )


@pytest.mark.parametrize(
    ("own", "policy", "words"),
    [
        ({**NOISED, "noise": 0.0}, OwnerPolicy(min_noise=0.5), "noise of at least 0.5, but the run has 0"),
        (NOISED, OwnerPolicy(max_clip=0.5), "norm 0.5 at most, the run has 1"),
        ({**NOISED, "clip": 0.0}, OwnerPolicy(max_clip=0.5), "norm 0.5 at most, the run bounds nothing"),
    ],
)
def test_the_owners_word_stands_above_the_servers(
    own: dict[str, Any], policy: OwnerPolicy, words: str, tmp_path: Path
) -> None:
    worker = Worker(NodeOptions("a", tmp_path / "a", hosted=WORLD, policy=policy))
    plain = worker.handle(pack_meet(Meet(RUN, settings_of(own).model_dump_json(), ())))
    fault = fault_in(plain)
    assert fault is not None
    assert words in fault.reason
    assert not (tmp_path / "a" / RUN).exists()


def test_runs_without_noise_spend_without_bound(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = federation(tmp_path, settings_of({**NOISED, "noise": 0.0}, rounds=1), 2)
    records_of(runtime, plan, progress)
    options = exchange.options["node0"]
    assert NodeLedger(options.folder, OwnerPolicy()).read().spent().epsilon(1e-6) == inf
    late = Node(replace(options, policy=OwnerPolicy(budget=1e9)), "run-2")
    with pytest.raises(Withheld, match="without bound"):
        late.meet(Meet("run-2", settings_of(NOISED, method="fcf").model_dump_json(), ()))


def test_accounts_are_the_clients_own_and_add_up_over_runs() -> None:
    one, keys = gaussian_release(1.0, 2.0), np.array([3, 5, 9], np.uint64)
    ledger = Ledger.empty().charged("a", 1, keys[:2], one).charged("a", 1, keys, one).charged("b", 1, keys[1:], one)
    assert [ledger.spent(keys[i : i + 1]).releases for i in range(3)] == [1, 2, 1]
    assert ledger.spent() == one.times(2)
    assert ledger.charged("c", 1, keys[:1], UNBOUNDED).spent().epsilon(1e-6) == inf
    assert ledger.spent(np.array([4], np.uint64)).epsilon(1e-6) == 0


def test_a_round_that_is_asked_for_again_at_a_higher_price_is_charged_the_difference() -> None:
    keys, cheap, dear = np.array([3, 5], np.uint64), gaussian_release(1.0, 9.0), gaussian_release(1.0, 2.0)
    once = Ledger.empty().charged("a", 1, keys, cheap)
    ledger = once.charged("a", 1, keys, dear)
    assert ledger.spent() == ledger.charges[0].spent
    assert ledger.spent().rho == pytest.approx(dear.rho)
    assert ledger.charged("a", 1, keys, cheap) is ledger
    assert once.charged("a", 1, keys, UNBOUNDED).spent().epsilon(1e-6) == inf
    assert once.charged("a", 1, keys, laplace_release(1.0, 20.0)).spent().eta == inf
    assert ledger.charged("a", 2, keys, dear).spent().releases == 2


def test_a_round_costs_what_its_dearest_question_does(tmp_path: Path) -> None:
    cheap, dear, keys = gaussian_release(1.0, 4.0), gaussian_release(1.0, 1.0), np.array([3, 5], np.uint64)
    for more in (dear, UNBOUNDED):
        ledger = Ledger.empty().charged("a", 1, keys, cheap).charged("a", 1, keys, more).charged("a", 1, keys, cheap)
        assert ledger.spent() == more
        assert [one.spent for one in ledger.charges] == [more]
        assert ledger.charged("a", 1, keys, more) is ledger
    budget = OwnerPolicy(budget=dear.epsilon(1e-6) * 0.99)
    NodeLedger(tmp_path, budget).charge("a", 1, keys, cheap)
    with pytest.raises(Withheld, match="budget of this node is spent"):
        NodeLedger(tmp_path, budget).charge("a", 1, keys, dear)


def test_a_second_attempt_with_less_noise_is_charged_for_that(tmp_path: Path) -> None:
    """A server that asks for a sum with much noise, lets it fail, and asks again for the same round with hardly any."""
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0)
    options = exchange.options["node0"]
    fair = runtime.summed
    budget = fair.spent.epsilon(1e-6) * 1.01
    exchange.options["node0"] = replace(options, policy=OwnerPolicy(budget=budget))
    exchange.between = lambda name, step, work: Fault("silent") if step.step == Kind.CONFIRM else work()
    loud = {name: 10 * one for name, one in fair.noise.items()}
    runtime.summed = replace(fair, noise=loud, bits=64)
    runtime.rules = Rules(wait=0.01, attempts=1, least=0.5)
    with pytest.raises(TooFewNodes):
        records_of(runtime, plan, progress)
    before = NodeLedger(options.folder, OwnerPolicy()).read().spent().epsilon(1e-6)
    assert 0 < before < 1
    exchange.between = None
    runtime.summed = replace(fair, noise={name: one / 10 for name, one in fair.noise.items()}, bits=64)
    said: list[str] = []

    def attempt_again(*given: Any, **named: Any) -> Plan:
        return of(*given, **{**named, "attempt": 1})

    of = Plan.of
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Plan, "of", attempt_again)
        try:
            said += records_of(runtime, plan, progress)[0].missing
        except TooFewNodes as few:
            said.append(str(few))
    assert "node0: step input: Withheld" in "; ".join(said)
    assert NodeLedger(options.folder, OwnerPolicy()).read().spent().epsilon(1e-6) == before
    other = NodeLedger(exchange.options["node1"].folder, OwnerPolicy()).read().spent()
    assert other.epsilon(1e-6) > 8.0


def test_a_damaged_ledger_is_no_fresh_start(tmp_path: Path) -> None:
    ledger = NodeLedger(tmp_path, OwnerPolicy())
    ledger.charge("a", 1, np.array([1], np.uint64), gaussian_release(1.0, 2.0))
    assert json.loads(json.dumps(ledger.read().charges[0].run)) == "a"
    data = bytearray((tmp_path / FILE).read_bytes())
    data[-1] ^= 1
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(BadInput, match="damaged"):
        ledger.charge("a", 2, np.array([1], np.uint64), gaussian_release(1.0, 2.0))


def test_the_owners_limits_come_from_the_nodes_configuration() -> None:
    plain = {"name": "a", "folder": "/x"}
    assert options_of(plain).policy == OwnerPolicy()
    assert options_of({**plain, "min_noise": "0.5", "budget": "inf", "delta": "1e-07"}).policy == OwnerPolicy(
        0.5, inf, inf, 1e-7
    )


def test_a_server_that_knows_no_histories_states_no_less_than_is_true(tmp_path: Path) -> None:
    """Uploads with a row for each interaction: a trial client with three of them stood for all."""
    own = {**NOISED, "noise": 50.0, "noise_kind": "laplace", "dim": 2}
    settings = resolve("fedfast", {"data": WORLD, "rounds": 1, "settings": own})
    runtime, plan, progress, _ = federation(tmp_path, settings, 2)
    prepared = prepare(settings)
    records = records_of(prepared.runtime, prepared.plan, Progress())
    stated = card_of(settings, prepared.method, records_of(runtime, plan, progress), runtime)
    known = card_of(settings, prepared.method, records, prepared.runtime)
    assert stated.epsilon is not None
    assert known.epsilon is not None
    assert stated.epsilon >= known.epsilon > 0
    assert stated.sensitivity == pytest.approx(2 * np.sqrt(2 * (40 + 40)))  # somebody may have every item
    assert stated.not_covered == (*known.not_covered, APART)  # what one process would see
    assert runtime.template.exposure(2**50)[0] > 2**50  # whatever number of users a node claims


def test_an_answer_that_came_too_late_counts_as_a_release(tmp_path: Path) -> None:
    """``fedease`` sends once; who did not come through in time is asked again, and the card said one release."""
    settings = resolve("fedease", {"data": WORLD, "epsilon": 8.0, "rounds": 3})
    late: list[str] = []

    def first_is_late(name: str, ask: Ask, work: Any) -> Any:
        answer = work()
        if ask.train and not late:
            late.append(name)
            raise TimeoutError
        return answer

    for rounds, spoil in ((1, None), (2, first_is_late)):
        rules, folder = Rules(wait=0.01, attempts=1, least=0.5), tmp_path / str(rounds)
        runtime, plan, progress, exchange = federation(folder, settings, 2, rules, spoil)
        records = records_of(runtime, plan, progress)
        assert [bool(one.missing) for one in records] == [True, False][-rounds:]
        ledgers = [NodeLedger(one.folder, OwnerPolicy()).read().spent() for one in exchange.options.values()]
        assert [one.releases for one in ledgers] == [rounds, rounds]
        stated = card_of(settings, runtime.method, records, runtime)
        assert stated.epsilon is not None
        assert stated.epsilon == pytest.approx(max(one.epsilon(1e-6) for one in ledgers))
        assert (stated.epsilon <= 8.0) == (spoil is None)


def summed(tmp_path: Path, **given: Any) -> Any:
    chosen = {"data": WORLD, "secure": True, "secure_by": "nodes", "nodes": 4, "secure_dropout": 0.25, "rounds": 1}
    return federation(tmp_path, resolve("fedease", {**chosen, **given}), 4, Rules(wait=0.01, attempts=1, least=0.5))


def test_nodes_state_the_epsilon_of_secure_sums_themselves(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0)
    records = records_of(runtime, plan, progress)
    simulated = prepare(runtime.settings).runtime
    simulated.round(1, np.arange(20), np.arange(20), False)
    assert records[0].participants == 20
    assert records[0].loss == 0  # losses stay at home
    assert runtime.server.variance >= runtime.summed.noise["pairs"] ** 2
    for options in exchange.options.values():
        spent = NodeLedger(options.folder, OwnerPolicy()).read().spent()
        assert spent.releases == 1
        assert 7.9 < spent.epsilon(1e-6) <= 8.0
        assert simulated.ledgers.stated()["epsilon"] == pytest.approx(spent.epsilon(1e-6), rel=1e-4)


def test_a_second_attempt_with_less_noise_is_charged_as_what_it_is(tmp_path: Path) -> None:
    """A server began a sum with much noise, let it fail and made it again with hardly any: the first was charged."""
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0)
    runtime.rules = runtime.rules.model_copy(update={"attempts": 3})  # in the last, who was silent is left out
    honest, seen = runtime._sums, [0]

    def sums(number: int, members: Any, idle: Any, layout: Any, *rest: Any) -> Any:
        quiet = tuple(replace(one, noise=one.noise / 20) for one in layout.fields)
        return honest(number, members, idle, replace(layout, fields=quiet) if runtime.begun else layout, *rest)

    def between(name: str, step: Any, work: Any) -> Any:
        found = work()
        if name in ("node1", "node2") and step.step == Kind.INPUT and seen[0] < 2:
            seen[0] += 1
            raise ConnectionError
        return found

    runtime._sums, exchange.between = sums, between
    exchange.options["node3"] = replace(exchange.options["node3"], policy=OwnerPolicy(budget=9.0))
    (record,) = records_of(runtime, plan, progress)
    assert record.secure["repeated"] == 1
    assert record.participants == 15
    assert any("node3" in line for line in record.missing)
    for name, options in exchange.options.items():
        ledger = NodeLedger(options.folder, OwnerPolicy()).read()
        both = name != "node3"
        assert [(one.round, one.attempt) for one in ledger.charges] == [(1, 0), (1, 1)][: 1 + both]
        assert (ledger.spent().epsilon(1e-6) > 100) == both  # others may open the first without this node: it counts
        assert ledger.spent() == sum((one.spent for one in ledger.charges), NOTHING)


def test_a_sum_that_was_lost_counts_as_a_release_of_those_who_are_summed_again(tmp_path: Path) -> None:
    """``fedease`` sends once; where a sum was unmasked and lost it sends again, and the card said one release."""
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0, rounds=2)
    everyone, before = np.arange(20), runtime.snapshot()
    runtime.round(1, everyone, everyone, False)
    runtime.restore(before)  # the server died before it wrote anything down
    records = records_of(runtime, replace(plan, rounds=2), progress)
    assert [one.participants for one in records] == [0, 20]
    card = card_of(runtime.settings, runtime.method, records, runtime)
    ledgers = [NodeLedger(one.folder, OwnerPolicy()).read().spent() for one in exchange.options.values()]
    assert [one.releases for one in ledgers] == [2, 2, 2, 2]
    assert card.epsilon is not None
    assert card.epsilon == pytest.approx(max(one.epsilon(1e-6) for one in ledgers), rel=1e-3)
    assert card.epsilon > 10
    assert "2 releases" in card.composition


def test_a_node_keeps_out_of_sums_that_its_owner_does_not_want(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0)
    for name, policy in (("node1", OwnerPolicy(budget=4.0)),):
        exchange.options[name] = replace(exchange.options[name], policy=policy)
    (record,) = records_of(runtime, plan, progress)
    assert record.participants == 15
    assert any("node1" in line for line in record.missing)
    folders = {name: NodeLedger(one.folder, OwnerPolicy()).read().charges for name, one in exchange.options.items()}
    assert [len(charges) for charges in folders.values()] == [1, 0, 1, 1]


@pytest.mark.parametrize("most", [1.0, 0.999])
def test_an_owners_bound_is_that_of_the_method_and_not_of_its_rounding(most: float, tmp_path: Path) -> None:
    """``--max-clip 1`` kept a node out of every private run of fedease, whose users add 1: on the wire 1 + 2^-24."""
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0)
    exchange.options["node1"] = replace(exchange.options["node1"], policy=OwnerPolicy(max_clip=most))
    (record,) = records_of(runtime, plan, progress)
    assert record.participants == (20 if most == 1.0 else 15)


def test_sums_without_noise_are_charged_without_bound_or_refused(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = summed(tmp_path)
    exchange.options["node2"] = replace(exchange.options["node2"], policy=OwnerPolicy(min_noise=0.1))
    (record,) = records_of(runtime, plan, progress)
    assert record.participants == 15
    assert NodeLedger(exchange.options["node0"].folder, OwnerPolicy()).read().spent().epsilon(1e-6) == inf
    assert not NodeLedger(exchange.options["node2"].folder, OwnerPolicy()).read().charges


def test_the_card_states_the_noise_of_the_sum_that_was_made(tmp_path: Path) -> None:
    """A node that is gone from the start leaves a smaller cohort, whose shares are larger than those of four."""
    runtime, plan, progress, exchange = summed(tmp_path, epsilon=8.0, secure_colluding=0.0, secure_dropout=0.0)
    assert runtime.summed.summands == 4
    exchange.gone.add("node3")
    records = records_of(runtime, plan, progress)
    assert records[0].secure["smallest_cohort"] == 3
    card = card_of(runtime.settings, runtime.method, records, runtime)

    assert runtime.summed.summands == 3
    assert "if 3 of them" in json.dumps(card.as_dict())


def test_the_card_of_nodes_says_that_a_user_of_several_is_several(tmp_path: Path) -> None:
    runtime, plan, progress, _ = summed(tmp_path, epsilon=8.0)
    card = card_of(runtime.settings, runtime.method, records_of(runtime, plan, progress), runtime)
    assert APART in card.not_covered
    assert APART in "\n".join(card.lines())
    prepared = prepare(runtime.settings)  # one file, in which a user of two clients is refused
    simulated = records_of(prepared.runtime, prepared.plan, Progress())
    assert APART not in card_of(runtime.settings, prepared.method, simulated, prepared.runtime).not_covered

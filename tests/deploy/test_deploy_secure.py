"""Secure sums over nodes: equal to the plain run, whoever falls silent; what is refused; what a crash cannot do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import DirectExchange, federation, in_process, records_of
from live import new_run

from fedrec.core.state import flatten
from fedrec.deploy.flower.supernode import GROWTH, QUICK, Waits
from fedrec.deploy.members import FILE, read_members
from fedrec.deploy.messages.letters import Meet, Selected, Step, Stepped
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.recommending import NodeModel, recommend
from fedrec.deploy.node.summing import PARTS, STATE
from fedrec.deploy.server.federation import TooFewNodes
from fedrec.deploy.server.job import ATTEMPTS, Job
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.serve import serve
from fedrec.deploy.server.summing import SecureFederation
from fedrec.experiment.resolve import resolve
from fedrec.laws.nodes import RUN, WORLD
from fedrec.laws.small_runs import small_settings
from fedrec.methods.registry import federated, find
from fedrec.runs.rounds import record_of
from fedrec.secure.failures import Refusal
from fedrec.secure.messages import Kind
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.secure.ring import Scale
from fedrec.secure.rules import neighbourhood

SUMMED = [name for name in federated() if find(name).card.sum_suffices]
RULES = Rules(wait=0.01, attempts=1, least=0.5)


def settings_of(method: str, **more: Any) -> Any:
    own = small_settings(method).model_dump(mode="json")
    given = {
        "data": WORLD,
        "seed": 3,
        "rounds": 2,
        "secure_dropout": 0.25,
        "secure_by": "nodes",
        "nodes": 4,
        "settings": own,
    }
    return resolve(method, {**given, "secure": True, **more})


def same(one: Any, other: Any, fields: tuple[str, ...] = ("valid", "test")) -> None:
    assert one.participants == other.participants
    assert one.loss == pytest.approx(other.loss, rel=1e-6)
    for name in fields:
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


@pytest.mark.parametrize("method", SUMMED)
def test_nodes_give_the_plain_run(method: str, tmp_path: Path) -> None:
    settings = settings_of(method)
    found = records_of(*federation(tmp_path, settings, 4, RULES)[:3])
    for one, other in zip(found, in_process(settings.model_copy(update={"secure": False})), strict=True):
        same(one, other)
        assert not one.missing
        assert one.secure is not None
        assert one.secure["smallest_cohort"] == 4


def test_single_clients_give_the_plain_run(tmp_path: Path) -> None:
    settings = settings_of("fedavg", secure_by="clients", secure_cohort=12, participation=0.8, secure_dropout=0.1)
    found = records_of(*federation(tmp_path, settings, 2, RULES)[:3])
    for one, other in zip(found, in_process(settings.model_copy(update={"secure": False})), strict=True):
        same(one, other)
        assert one.secure is not None
        assert one.secure["cohorts"] == 2


@pytest.mark.parametrize("kind", list(Kind))
def test_a_node_killed_in_any_step_is_left_out_or_made_up_for(kind: Kind, tmp_path: Path) -> None:
    settings = settings_of("fcf", rounds=3)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)
    killed: list[int] = []

    def between(name: str, step: Step, work: Any) -> Stepped:
        if name == "node1" and step.step == kind and not killed:
            killed.append(step.step)
            exchange.nodes.pop(name, None)  # what it had in memory is gone
            raise ConnectionError
        found: Stepped = work()
        return found

    exchange.between = between
    found = records_of(runtime, plan, progress)
    clients = len(runtime.roster.client_keys)
    there = clients if kind > Kind.INPUT else clients - len(runtime.roster.places[1].client_keys)
    assert killed
    assert [record.participants for record in found] == [there, clients, clients]
    assert any("node1" in line for line in found[0].missing)
    if there == clients:
        wanted = in_process(settings.model_copy(update={"secure": False}))
        same(found[0], wanted[0])


def test_below_the_threshold_the_sum_is_tried_again_and_then_nothing_is_used(tmp_path: Path) -> None:
    settings = settings_of("fcf")
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, Rules(wait=0.01, attempts=2, least=0.5))
    seen: list[int] = []

    def between(name: str, step: Step, work: Any) -> Stepped:
        if name in ("node1", "node2") and step.step == Kind.INPUT and len(seen) < silent:
            seen.append(step.step)
            raise ConnectionError
        found: Stepped = work()
        return found

    exchange.between, silent = between, 2
    first = records_of(runtime, plan, progress)[0]
    assert first.secure is not None
    assert first.secure["repeated"] == 1
    same(first, in_process(settings.model_copy(update={"secure": False}))[0])

    other, plan, progress, exchange = federation(tmp_path / "b", settings, 4, Rules(wait=0.01, attempts=2, least=0.5))
    exchange.between, silent = between, 100
    before = flatten(other.server)[0]
    with pytest.raises(TooFewNodes, match="no secure sum, and nothing of it was used"):
        records_of(other, plan, progress)
    after = flatten(other.server)[0]
    assert all((before[name] == after[name]).all() for name in before)


class Connected(DirectExchange):
    """Nodes in this process, as the server's own process reaches them."""

    def __init__(self, other: DirectExchange, hellos: list[Any]) -> None:
        super().__init__(list(other.options.values()))
        self.between, self.hellos, self.patient, self.meet_seconds = other.between, dict(enumerate(hellos)), True, 1.0


def test_a_run_that_stopped_for_want_of_nodes_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    """Members never join the same attempt twice, so a server that comes back must not begin to count anew."""
    settings = settings_of("fcf")
    runtime, _, _, exchange = federation(tmp_path, settings, 4, RULES)
    run = new_run(tmp_path / "run", settings, 4, read_members(tmp_path / FILE), attempts=3, wait=0.01)
    replace(Job.read(run.path), run=RUN).write(run.path)
    stops: list[str] = []

    def between(name: str, step: Step, work: Any) -> Stepped:
        if name in ("node1", "node2") and step.step == Kind.INPUT and len(stops) < 2:
            if len(stops) == 1:
                raise KeyboardInterrupt  # the server is killed in the middle of a sum
            raise ConnectionError
        found: Stepped = work()
        return found

    exchange.between = between
    for problem in (TooFewNodes, KeyboardInterrupt):
        with pytest.raises(problem):
            serve(run.path, lambda word, poll: Connected(exchange, list(runtime.roster.places)))
        stops.append(str(problem))
    serve(run.path, lambda word, poll: Connected(exchange, list(runtime.roster.places)))
    found = [record_of(plain) for plain in run.records()]
    for one, other in zip(found, in_process(settings.model_copy(update={"secure": False})), strict=True):
        same(one, other)
    assert found[0].secure is not None
    assert found[0].secure["repeated"] == 0
    assert not (run.path / ATTEMPTS).exists()


def test_a_round_that_members_try_no_more_is_skipped(tmp_path: Path) -> None:
    runtime, plan, progress, _ = federation(tmp_path, settings_of("fcf"), 4, RULES)
    assert isinstance(runtime, SecureFederation)
    runtime.begun[2] = Policy.attempts
    found = records_of(runtime, plan, progress)
    assert [record.participants for record in found] == [0, len(runtime.client_keys())]
    assert f"tried {Policy.attempts} times" in found[0].missing[-1]


@pytest.mark.parametrize("silent", [Kind.ADVERTISE, Kind.INPUT])
def test_a_node_that_trains_and_takes_no_step_does_not_end_the_run(silent: Kind, tmp_path: Path) -> None:
    """No dropout is allowed in a cohort of four, so every attempt with that node fails."""
    settings = settings_of("fcf", secure_dropout=0.0)
    rules = Rules(wait=0.01, attempts=3, least=0.5)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, rules)

    def between(name: str, step: Step, work: Any) -> Stepped:
        if name == "node2" and step.step == silent:
            raise ConnectionError
        found: Stepped = work()
        return found

    exchange.between = between
    found = records_of(runtime, plan, progress)
    there = len(runtime.roster.client_keys) - len(runtime.roster.places[2].client_keys)
    assert [record.participants for record in found] == [there, there]
    for record in found:
        assert record.secure is not None
        assert record.secure["repeated"] == 2
        assert any("node2" in line and silent.name.lower() in line for line in record.missing)


def test_a_node_whose_shares_nobody_can_open_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All its neighbours refuse; it alone does not, and the last attempt is made without it."""
    settings = settings_of("fcf", rounds=1, secure_dropout=0.1)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, Rules(wait=0.01, attempts=2, least=0.5))

    def between(name: str, step: Step, work: Any) -> Stepped:
        with monkeypatch.context() as patched:
            if name == "node2" and step.step == Kind.SHARE:
                patched.setattr("fedrec.secure.participant.seal", lambda *given: bytes(48))
            found: Stepped = work()
        return found

    exchange.between = between
    (record,) = records_of(runtime, plan, progress)
    assert record.participants == len(runtime.client_keys()) - len(runtime.roster.places[2].client_keys)
    assert record.missing == ("node2: left out: the others fell silent where it did not",)


@pytest.mark.parametrize(("part", "number"), [(0, 29), (1, 31.0), (1, -1.0)])
def test_metric_sums_that_nobody_can_have_are_not_used(
    part: int, number: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A member may put any number that the ring holds into a sum, and the run would report it."""
    settings = settings_of("fcf")
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)

    def between(name: str, step: Step, work: Any) -> Stepped:
        summing = exchange.nodes[name].summing if name == "node2" and step.step == Kind.INPUT else None
        waiting, about = summing.store.read(PARTS) if summing else ({}, {})
        if summing and "valid" in waiting["sums"][name]:  # not where nothing is evaluated
            waiting["sums"][name]["valid"][part] = number
            summing.store.write(PARTS, waiting, **{key: about[key] for key in ("number", "agreed", "made")})
            plan = summing.taking[name].plan
            honest = plan.layout.scales["valid"]
            loose = Scale(honest.bound, honest.summands, honest.bits, honest.noise)
            object.__setattr__(loose, "bound", np.inf)
            loose.__dict__["exponent"] = honest.exponent
            plan.layout.scales["valid"] = loose
        found: Stepped = work()
        return found

    exchange.between = between
    found = records_of(runtime, plan, progress)
    for record in found:
        assert record.participants == len(runtime.roster.client_keys)
        assert not record.valid
    assert caplog.text.count("the evaluation is not used") == len(found)
    assert progress.best_round == len(found)  # the last one, where nothing is known of any


def test_a_run_with_more_attempts_than_members_make_stops_after_theirs(tmp_path: Path) -> None:
    many = Rules(wait=0.01, attempts=Policy.attempts + 1, least=0.5)
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fcf"), 4, many)
    asked: list[str] = []

    def between(name: str, step: Step, work: Any) -> Stepped:
        asked.append(name)
        raise ConnectionError

    exchange.between = between
    with pytest.raises(TooFewNodes, match="no secure sum, and nothing of it was used"):
        records_of(runtime, plan, progress)
    assert asked.count("node0") == Policy.attempts


def test_a_sum_that_was_signed_is_not_made_again_and_its_round_is_skipped(tmp_path: Path) -> None:
    settings = settings_of("fcf", rounds=3)
    runtime, plan, _, _ = federation(tmp_path, settings, 4, RULES)
    everyone = plan.participation.choose(3, 1, runtime.client_keys())
    before = runtime.snapshot()
    runtime.round(1, everyone, everyone, False)
    runtime.restore(before)  # the server died before it wrote anything down
    cost, _ = runtime.round(1, everyone, everyone, False)
    assert cost.participants == 0
    assert "round 1 is skipped" in cost.missing[-1]
    assert "have signed another sum of it and refuse a second one" in cost.missing[-1]
    cost, _ = runtime.round(2, everyone, everyone, False)
    assert cost.participants == len(everyone)


def test_what_is_about_to_be_signed_is_on_disk_before_a_word_leaves(tmp_path: Path) -> None:
    settings = settings_of("fcf", rounds=1)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)
    seen: dict[int, Any] = {}

    def between(name: str, step: Step, work: Any) -> Stepped:
        found: Stepped = work()
        if name == "node0" and step.step in (Kind.ADVERTISE, Kind.CONFIRM):
            seen.setdefault(step.step, exchange.nodes[name].store.read_json(STATE)[name])
        return found

    exchange.between = between
    records_of(runtime, plan, progress)
    assert seen[Kind.ADVERTISE] == {"last": [2, 0], "confirmed": None}
    assert seen[Kind.CONFIRM] == {"last": [2, 0], "confirmed": 2}
    exchange.nodes.clear()
    for step in range(1, 5):  # a restarted node has nothing left to say about that sum
        with pytest.raises(Exception, match="has left"):
            Node(exchange.options["node0"], RUN).step(Step(RUN, step, {"node0": b""}))


def test_what_is_trained_later_does_not_go_into_a_sum_that_was_joined_before(tmp_path: Path) -> None:
    """It would be summed twice, with whom the server likes: two sums that differ by a node tell what that node has."""
    settings = settings_of("fcf")
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)

    def between(name: str, step: Step, work: Any) -> Stepped:
        if step.step == Kind.INPUT:
            later, ask = Node(exchange.options[name], RUN), dict(exchange.sent)[name]
            later.answer(replace(ask, train=ask.train + 1))
            assert later.store.read(PARTS)[1]["number"] == "4"
            with pytest.raises(Refusal, match="something else than was trained here last"):
                work()
            raise ConnectionError
        found: Stepped = work()
        return found

    exchange.between = between
    with pytest.raises(TooFewNodes, match="step input"):
        records_of(runtime, plan, progress)


def test_what_was_trained_under_other_settings_is_not_summed(tmp_path: Path) -> None:
    """A node would charge its users for a norm of 1, and give out what was never clipped to it."""
    settings = settings_of("fedavg", rounds=1)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)

    def between(name: str, step: Step, work: Any) -> Stepped:
        if step.step == Kind.ADVERTISE:
            clipped = {**settings.settings, "clip": 1e-3}
            other = settings.model_copy(update={"settings": clipped}).model_dump_json()
            Node(exchange.options[name], RUN).meet(Meet(RUN, other, ()))
        found: Stepped = work()
        return found

    exchange.between = between
    with pytest.raises(TooFewNodes, match="step advertise: Refusal"):
        records_of(runtime, plan, progress)


@pytest.mark.parametrize("idle", [(), (1, 2)])
def test_a_node_is_not_summed_with_names_of_its_own_that_have_nothing(idle: tuple[int, ...], tmp_path: Path) -> None:
    """Three members by name, one node in truth: the sum would be that node's part."""
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fcf", rounds=1), 4, RULES)

    def between(name: str, step: Step, work: Any) -> Stepped:
        if step.step == Kind.ADVERTISE:
            asked = Plan.from_bytes(step.contents["plan"])
            alone = Plan.of(RUN, asked.round, [name, f"{name}/0", f"{name}/1"], asked.layout, rules.rules)
            alone = replace(alone, idle=idle, agreed=asked.agreed)
            with pytest.raises(Refusal, match=r"of its own to sum|minimum is 3|of another kind"):
                Node(exchange.options[name], RUN).step(Step(RUN, 0, {"plan": alone.to_bytes()}))
        found: Stepped = work()
        return found

    rules = neighbourhood(3)
    exchange.between = between
    assert not records_of(runtime, plan, progress)[0].missing


def test_one_who_trains_is_not_hidden_among_those_who_do_not(tmp_path: Path) -> None:
    """Where models are evaluated in the same exchange, everybody is a member; who did not train adds nothing."""
    settings = settings_of("fcf", secure_by="clients", secure_dropout=0.1, rounds=9)
    runtime, _, _, _ = federation(tmp_path, settings, 2, RULES)
    for trained in (1, 2):
        done = runtime._exchange(np.arange(trained), evaluate=2 * trained - 1, train=2 * trained)
        assert done.clients == 0
        assert f"{trained} of 30 members have trained" in done.missing[-1]
        assert flatten(done.state)[0].keys() == flatten(runtime.server)[0].keys()


def test_a_round_in_which_too_few_trained_to_sign_is_skipped(tmp_path: Path) -> None:
    """Enough to hide each other, but with two that collude no committee of three will do: the run stopped for it."""
    settings = settings_of("fcf", secure_by="clients", secure_dropout=0.1, rounds=9)
    runtime, _, _, _ = federation(tmp_path, settings, 2, RULES)
    done = runtime._exchange(np.arange(3), evaluate=1, train=2)
    assert done.clients == 0
    assert "3 of 30 members have trained, too few to sign" in done.missing[-1]


def test_a_server_cannot_say_that_somebody_trained_who_did_not(tmp_path: Path) -> None:
    settings = settings_of("fcf", secure_by="clients", secure_dropout=0.1, rounds=9)
    runtime, _, _, exchange = federation(tmp_path, settings, 2, RULES)
    seen: list[str] = []

    def between(name: str, step: Step, work: Any) -> Stepped:
        if step.step == Kind.ADVERTISE:
            asked = Plan.from_bytes(step.contents["plan"])
            assert len(asked.idle) == 30 - 6
            one_less = asked.idle[1:] if name == "node0" else asked.idle[:-1]
            for idle in ((), one_less, (*range(24),)):
                altered = replace(asked, idle=idle)
                with pytest.raises(Refusal, match="of its own to sum"):
                    Node(exchange.options[name], RUN).step(Step(RUN, 0, {"plan": altered.to_bytes()}))
                seen.append(name)
        found: Stepped = work()
        return found

    exchange.between = between
    done = runtime._exchange(np.array([1, 5, 9, 16, 20, 21]), evaluate=1, train=2)
    assert set(seen) == {"node0", "node1"}
    assert done.clients == 6
    assert not done.missing


def test_keys_that_the_server_puts_in_place_are_refused(tmp_path: Path) -> None:
    """The server passes on keys of its own as those of three neighbours: the fourth says nothing more."""
    import os

    from fedrec.secure.identity import Directory, new_key, public_bytes
    from fedrec.secure.participant import Member

    settings = settings_of("fcf", rounds=1)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)
    plans: list[Plan] = []
    said: list[int] = []

    def between(name: str, step: Step, work: Any) -> Stepped:
        if step.step == Kind.ADVERTISE:
            plans.append(Plan.from_bytes(step.contents["plan"]))
        if name == "node0" and step.step == Kind.SHARE:
            forged = {other: new_key(os.urandom) for other in plans[0].members}
            directory = Directory({other: public_bytes(key) for other, key in forged.items()})
            lenient = Policy(server="curious", colluding=0.0, security_bits=0)
            contents = b"".join(
                Member(other, key, directory, lenient).join(plans[0]).advertise()
                for other, key in forged.items()
                if other != name
            )
            object.__setattr__(step, "contents", {name: contents})
        found: Stepped = work()
        if name == "node0":
            said.append(step.step)
        return found

    exchange.between = between
    record = records_of(runtime, plan, progress)[0]
    assert set(said) == {Kind.ADVERTISE}
    assert "node0: step share: Refusal" in record.missing
    assert record.participants == len(runtime.roster.client_keys) - len(runtime.roster.places[0].client_keys)


def test_nodes_say_nothing_of_their_own(tmp_path: Path) -> None:
    settings = settings_of("fedavg", rounds=1)
    answers: list[Any] = []

    def spoil(name: str, ask: Any, work: Any) -> Any:
        answers.append(work())
        return answers[-1]

    records_of(*federation(tmp_path, settings, 4, RULES, spoil)[:3])
    assert answers
    for answer in answers:
        assert not answer.uploads
        assert not answer.loss
        assert not answer.valid.count
        assert not answer.test.count


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"shape": (10**9, 4)}, "which this participant does not have"),
        ({"name": "histories"}, "which this participant does not have"),
        ({"bound": 0.01}, "less room for 'items'"),
    ],
)
def test_a_plan_of_other_sums_is_refused(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    """A server that chose the bounds would see who is beyond them; one that chose the shapes could fill the memory."""
    settings = settings_of("fcf", rounds=1)
    runtime, plan, progress, exchange = federation(tmp_path, settings, 4, RULES)

    def between(name: str, step: Step, work: Any) -> Stepped:
        asked = Plan.from_bytes(step.contents["plan"]) if step.step == Kind.ADVERTISE else None
        if asked is not None and "items" in asked.layout.places:  # not where a model is only evaluated
            fields = tuple(replace(f, **change) if f.name == "items" else f for f in asked.layout.fields)
            altered = replace(asked, layout=replace(asked.layout, fields=fields))
            with pytest.raises(Refusal, match=why):
                Node(exchange.options[name], RUN).step(Step(RUN, 0, {"plan": altered.to_bytes()}))
        found: Stepped = work()
        return found

    exchange.between = between
    assert not records_of(runtime, plan, progress)[0].missing


def test_a_node_waits_little_while_there_are_messages_and_as_flower_does_at_rest() -> None:
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    waits = Waits(lambda: now[0], sleep)
    waits.sleep(3)
    now[0] = 104.0
    waits.sleep(3)  # nothing came for a while
    now[0] = 160.0
    waits.sleep(3)
    waits.sleep(0.5)  # an answer is waited for
    waits.sleep(3)
    assert slept == [QUICK, 4 * GROWTH, 3, QUICK, QUICK]
    assert waits.monotonic is not None  # all else is that of the module


def test_a_node_recommends_from_a_run_with_secure_sums(tmp_path: Path) -> None:
    """Reading the model asked for the keys with which the node had taken part."""
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fcf"), 4, RULES)
    records_of(runtime, plan, progress)
    Node(exchange.options["node0"], RUN).select(Selected(RUN, 1))
    folder = exchange.options["node0"].folder
    user = NodeModel(folder).names.users[0]
    assert len(recommend(folder, user, k=3)) == 3

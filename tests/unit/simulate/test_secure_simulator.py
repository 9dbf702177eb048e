"""Secure sums in process: what equals the plain run, what is repeated, what fails closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrec.core.loop import Progress, run_rounds
from fedrec.core.messages import Rows
from fedrec.core.participation import Participation
from fedrec.core.settings import PrivacySettings
from fedrec.core.state import flatten
from fedrec.core.sums import SumField, Summand
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.laws.broken import Comparison, LawBroken
from fedrec.laws.equal_runs import secure_sums_change_nothing
from fedrec.laws.small_runs import plan, run, simulator, world
from fedrec.methods.fedease import FedEase
from fedrec.runs.result import card_of
from fedrec.secure.contribution import FREE, MOST_LOSS, Guard, Parts, layout_of, loss_of
from fedrec.secure.failures import TooFew
from fedrec.secure.plan import Plan
from fedrec.secure.policy import Policy
from fedrec.simulate.secured import SecureOptions, SecureSimulator


def pair(secure: SecureOptions, **settings: Any) -> tuple[Any, Any]:
    """The plain and the secure runtime of one method."""
    return tuple(simulator("fedavg", world("tiny"), secure=one, settings=settings) for one in (None, secure))  # type: ignore[return-value]


@pytest.mark.parametrize(
    "secure",
    [
        SecureOptions(nodes=3),
        SecureOptions(nodes=4, cohort=6, work="protocol"),
        SecureOptions(cohort=15, work="protocol"),
        SecureOptions(cohort=10, work="sums"),
    ],
    ids=str,
)
def test_nodes_and_every_level_of_work_give_the_plain_run(secure: SecureOptions) -> None:
    plain, hidden = pair(secure, clip=5.0)
    law = Comparison("10", "fedavg")
    one, other = (run(sim, plan(2)) for sim in (plain, hidden))
    law.metrics(one, other, "with secure sums")
    law.states(plain.snapshot(), hidden.snapshot(), "with secure sums")
    found = other.records[0].secure
    assert found is not None
    assert found["repeated"] == 0
    assert found["smallest_cohort"] == (secure.nodes or secure.cohort)
    assert other.records[0].bytes["upload"] == pytest.approx(sum(found["bytes"]["upload"].values()), abs=1)


def test_more_dropouts_than_allowed_are_summed_again_without_those_who_are_gone() -> None:
    plain, hidden = pair(SecureOptions(cohort=15, dropout=0.0, silent=0.2, attempts=40))
    some = plan(2, Participation(1.0, dropout=0.3))
    one, other = run(plain, some), run(hidden, some)
    Comparison("10", "fedavg").metrics(one, other, "with secure sums")
    assert all(record.secure is not None and record.secure["repeated"] >= 1 for record in other.records)
    assert [r.participants for r in one.records] == [r.participants for r in other.records]


@pytest.mark.parametrize(("least", "attempts"), [(25, 8), (3, 1)])
def test_below_the_threshold_nothing_changes(least: int, attempts: int) -> None:
    _, hidden = pair(SecureOptions(least=least, dropout=0.0, attempts=attempts))
    run(hidden, plan(1))
    before = flatten(hidden.snapshot())[0]
    everyone = np.arange(30)
    with pytest.raises(TooFew, match="round 2 has no secure sum of cohort 0, and nothing of it was used"):
        hidden.round(2, everyone, everyone[:20], False)
    after = flatten(hidden.snapshot())[0]
    assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(TooFew, match="2 participants, a secure sum needs"):
        hidden.round(2, everyone[:2], everyone[:2], False)


def test_a_sum_to_which_too_few_add_something_new_is_skipped() -> None:
    hidden: Any = simulator("fedease", world("tiny"), secure=SecureOptions(least=3))
    everyone = np.arange(30)
    hidden.round(1, everyone[:20], everyone[:20], False)
    before = flatten(hidden.snapshot())[0]
    cost, evaluated = hidden.round(2, everyone[:22], everyone[:22], True)  # 20 of these are counted already
    assert cost.missing == ("round 2 is skipped: 2 of 22 members have trained, a secure sum needs 3; nothing was sent",)
    assert cost.participants == 0
    assert cost.upload == 0
    assert evaluated is not None
    after = flatten(hidden.snapshot())[0]
    assert all(np.array_equal(before[name], after[name]) for name in before)
    cost, _ = hidden.round(3, everyone[:23], everyone[:23], False)  # three may not sign: members refuse such a plan
    assert cost.missing == (
        "round 3 is skipped: 3 of 23 members have trained, too few to sign a sum where 5% of all may collude; "
        "nothing was sent",
    )
    cost, _ = hidden.round(4, everyone[:24], everyone[:24], False)
    assert not cost.missing
    assert hidden.server.counted[:24].all()


def test_a_round_whose_signers_drop_out_is_skipped_as_over_a_network() -> None:
    """The run ended, and could not be continued."""
    settings = resolve(
        "fedease",
        {
            "data": "demo", "seed": 1, "rounds": 12, "participation": 0.5, "dropout": 0.05, "secure": True,
            "secure_work": "sums",
        },
    )  # fmt: skip
    prepared = prepare(settings)
    done = run_rounds(prepared.runtime, prepared.plan, Progress(), lambda *_: None)
    reasons = [" ".join(record.missing) for record in done.records if not record.participants]
    assert any("too few of the committee are left" in reason for reason in reasons)
    assert [record.unsent for record in done.records] == [
        any("nothing was sent" in line for line in record.missing) for record in done.records
    ]


def test_rounds_of_which_nothing_was_sent_are_no_releases() -> None:
    """A budget of 8 was stated as 24 after ten rounds."""
    settings = resolve(
        "fedease",
        {
            "data": "demo", "rounds": 10, "participation": 0.5, "secure": True, "secure_work": "sums", "epsilon": 8.0,
            "delta": 1e-6, "evaluate_every": 10,
        },
    )  # fmt: skip
    prepared = prepare(settings)
    done = run_rounds(prepared.runtime, prepared.plan, Progress(), lambda *_: None)
    assert any(record.unsent for record in done.records)
    card = card_of(settings, prepared.method, done.records, prepared.runtime)
    assert card.epsilon is not None
    assert card.epsilon <= 8.001
    sent = replace(next(record for record in done.records if record.unsent), unsent=False)
    card = card_of(settings, prepared.method, [*done.records, sent], prepared.runtime)
    assert card.epsilon is not None
    assert card.epsilon > 8.5  # one whose sum was lost may have been opened


def test_a_node_is_idle_where_those_of_its_clients_that_answer_are() -> None:
    hidden: Any = simulator("fedease", world("tiny"), secure=SecureOptions(least=3, nodes=6))
    everyone = np.arange(30)
    asked: list[Any] = []
    idle = hidden._idle
    hidden._idle = lambda clients: (asked.append(clients), idle(clients))[1]  # type: ignore[func-returns-value]
    hidden.round(1, everyone, everyone[:20], False)
    assert asked[0].tolist() == everyone[:20].tolist()


def test_plans_name_who_adds_nothing_as_members_of_a_federation_ask() -> None:
    hidden: Any = simulator("fedease", world("tiny"), secure=SecureOptions(least=3))
    everyone = np.arange(30)
    hidden.round(1, everyone[:20], everyone[:20], False)
    planned: list[Plan] = []
    hidden.summed_up = lambda total: planned.append(total.plan)
    hidden.round(2, everyone, everyone, False)
    (plan_,) = planned
    assert {plan_.members[place] for place in plan_.idle} == set(hidden.names[:20])
    Policy(least_members=3).check(plan_, dict.fromkeys(plan_.members))  # type: ignore[arg-type]


def test_a_number_beyond_its_bound_is_an_error_that_names_the_field() -> None:
    _, hidden = pair(SecureOptions(work="sums"))

    class Enlarging(Guard):
        def bounded(self, parts: Parts) -> Parts:
            return {**parts, "items": parts["items"] + 1e9}

    hidden.guard = Enlarging()
    before = hidden.server
    with pytest.raises(BadInput, match="field 'items': a number of magnitude 1e\\+09 is beyond the bound"):
        hidden.round(1, np.arange(30), np.arange(30), False)
    assert hidden.server is before


def test_the_law_notices_a_sum_that_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubling(Guard):
        def bounded(self, parts: Parts) -> Parts:
            return {**parts, "items": 2 * parts["items"]}

    monkeypatch.setattr(SecureSimulator, "guard", Doubling())
    with pytest.raises(LawBroken, match="fcf breaks law 10"):
        secure_sums_change_nothing("fcf")


@pytest.mark.parametrize(
    ("method", "settings", "why"),
    [
        ("fedca", {}, "fedca cannot run with --secure: its server needs each client's upload"),
        ("ease", {}, "ease is centralised: there are no uploads to hide"),
    ],
)
def test_methods_without_sums_are_refused_by_one_line(method: str, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        resolve(method, {"data": "demo", "secure": True, "settings": settings})


def test_factors_are_refused_before_the_first_round() -> None:
    with pytest.raises(BadInput, match="fedcia sends thin factors here"):
        simulator("fedcia", world("tiny"), secure=SecureOptions(), settings={"form": "truncated"})


def test_bounds_come_from_the_clip_and_else_from_the_field() -> None:
    fields = {"items": SumField((4, 2), weight=3.0), "weight": SumField((), bound=7.0, protected=False)}

    def layout(**given: Any) -> Any:
        return layout_of(fields, PrivacySettings(**given), users=2, clients=5, summands=100)

    clipped, free, noised = layout(clip=1.0), layout(), layout(clip=1.0, noise=0.1)
    assert [f.bound for f in clipped.fields] == pytest.approx([5 * 3.003, 35.0, 5 * MOST_LOSS])
    assert [f.bound for f in free.fields] == [5 * 6 * FREE, 35.0, 5 * MOST_LOSS]
    assert [f.bound for f in noised.fields] == [f.bound for f in free.fields]
    assert (clipped.bits, free.bits, noised.bits) == (32, 64, 64)
    assert loss_of(np.array([np.nan, 1e9, -2.0])).tolist() == [0.0, MOST_LOSS, -2.0]


@given(st.integers(1, 5), st.booleans(), st.booleans(), st.integers(0, 99))
def test_what_clients_add_is_what_is_added(clients: int, compact: bool, weighted: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    values: Any = draw.normal(size=(clients, 3, 2)).astype(np.float32)
    if compact:
        start = np.arange(clients + 1, dtype=np.int64)
        ids = draw.integers(0, 3, clients).astype(np.int32)
        values = Rows(start, ids, draw.normal(size=(clients, 2)).astype(np.float32), 3)
    summand = Summand(values, draw.integers(0, 9, clients) if weighted else None)
    total = np.zeros((3, 2))
    summand.add_to(total)
    np.testing.assert_allclose(sum(summand.of(c) for c in range(clients)), total, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("nodes", "work"), [(4, 1), (3, 3)])
def test_copies_of_a_population_add_what_was_computed_once(
    nodes: int, work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"data": "demo", "copies": 4, "secure": True, "secure_by": "nodes", "nodes": nodes, "epsilon": 8.0}
    settings = resolve("fedease", given)
    found: list[Any] = []
    for twins in (True, False):
        monkeypatch.setattr(FedEase, "follows_history", twins)
        runtime: Any = prepare(settings).runtime
        blocks: list[int] = []
        update = runtime.method.local_update
        monkeypatch.setattr(
            runtime.method, "local_update", lambda *a, u=update, b=blocks: b.append(1) or u(*a), raising=False
        )
        everyone = np.arange(runtime.people.world.n_clients)
        cost, _ = runtime.round(1, everyone, everyone, False)
        found.append((runtime.server.cooccurrence, cost.upload, cost.download, runtime.ledgers.stated(), len(blocks)))
    one, other = found
    assert np.array_equal(one[0], other[0])  # the noise of the sum included
    assert one[1:4] == other[1:4]
    assert one[4] == work


def test_simulated_ledgers_count_attempts_for_which_vectors_had_left() -> None:
    """Nodes are charged for each attempt; the simulated ledger had the last one only."""
    given = {"data": "scale:users=30,items=80,interactions=700", "seed": 10, "rounds": 1, "secure": True}
    more = {"epsilon": 8.0, "dropout": 0.03, "secure_dropout": 0.0, "settings": {"dim": 4, "epochs": 1}}
    settings = resolve("fedavg", {**given, **more})
    prepared = prepare(settings)
    runtime: Any = prepared.runtime
    (record,) = run_rounds(runtime, prepared.plan, Progress(), lambda *_: None).records
    assert record.secure is not None
    assert record.secure["repeated"] == 1
    assert record.participants == 29  # one fell silent before it had masked anything
    assert sorted(runtime.ledgers.charges) == [0, *[2] * 29]
    assert runtime.ledgers.stated()["epsilon"] > 12
    again: Any = prepare(settings).runtime
    again.ledgers.read(*runtime.ledgers.written())
    assert again.ledgers.stated() == runtime.ledgers.stated()
    assert np.array_equal(again.ledgers.accounts, runtime.ledgers.accounts)


def test_a_round_that_is_skipped_after_vectors_had_left_is_charged() -> None:
    given = {"data": "demo", "seed": 1, "rounds": 12, "participation": 0.5, "dropout": 0.05, "secure": True}
    settings = resolve("fedease", {**given, "secure_work": "sums", "epsilon": 8.0})
    prepared = prepare(settings)
    runtime: Any = prepared.runtime
    before, charged = np.zeros(0), list[int]()

    def look(record: Any, _: Progress) -> None:
        nonlocal before
        now = runtime.ledgers.charges.copy()
        changed = int((now != before).sum() if len(before) else now.astype(bool).sum())
        if not record.participants:
            assert (changed == 0) == record.unsent
            charged.append(changed)
        before = now

    run_rounds(runtime, prepared.plan, Progress(), look)
    assert 0 in charged
    assert any(charged)

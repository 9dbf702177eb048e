"""Secure sums in a node's ledger: whose data is in a vector is charged for it, each time one is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, DirectExchange, federation, records_of

from fedrec.core.loop import Progress, run_rounds
from fedrec.deploy.messages.letters import Meet, Step, Stepped
from fedrec.deploy.node.ledger import NodeLedger
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.summing import PARTS
from fedrec.deploy.server.rules import Rules
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.privacy.ledger import Ledger, OwnerPolicy
from fedrec.runs.settings import RunSettings
from fedrec.secure.failures import Refusal
from fedrec.secure.messages import Kind

WORLD = "scale:users=20,items=40,interactions=300"
NODES, USERS = 4, 20
RULES = Rules(wait=0.01, attempts=3, least=0.5)


def settings_of(method: str, by: str, **given: Any) -> RunSettings:
    own = {} if method == "fedease" else {"dim": 4, "epochs": 1}
    nodes = {"nodes": NODES} if by == "nodes" else {}
    chosen = {"data": WORLD, "secure": True, "secure_by": by, "secure_dropout": 0.25, "epsilon": 8.0, "rounds": 1}
    return resolve(method, {**chosen, **nodes, "settings": own, **given})


def ledgers(exchange: DirectExchange) -> dict[str, Ledger]:
    return {name: NodeLedger(one.folder, OwnerPolicy()).read() for name, one in exchange.options.items()}


def accounts(exchange: DirectExchange) -> dict[int, float]:
    """rho of every client that was charged, by its key."""
    kept = ledgers(exchange).values()
    return {int(key): account[0] for one in kept for key, account in zip(one.keys, one.accounts, strict=True)}


@pytest.mark.parametrize(("method", "by"), [("fcf", "clients"), ("fcf", "nodes"), ("fedease", "clients")])
def test_a_run_within_the_owners_budget_is_taken_part_in_to_its_end(method: str, by: str, tmp_path: Path) -> None:
    """All clients of a node were charged in each round, so that nodes left a run that spends what they allow."""
    settings = settings_of(method, by, participation=0.6, rounds=5)
    prepared = prepare(settings)
    simulated: Any = prepared.runtime
    alone = run_rounds(simulated, prepared.plan, Progress(), lambda *_: None).records
    runtime, plan, progress, exchange = federation(tmp_path, settings, NODES, RULES)
    policy = OwnerPolicy(budget=8.0, delta=settings.delta)
    exchange.options |= {name: replace(one, policy=policy) for name, one in exchange.options.items()}
    apart = records_of(runtime, plan, progress)
    assert [one.participants for one in apart] == [one.participants for one in alone]
    assert not any("Withheld" in line for one in apart for line in one.missing)
    charged = simulated.ledgers.charges > 0
    known = dict(zip(runtime.client_keys()[charged].tolist(), simulated.ledgers.accounts[charged, 0], strict=True))
    assert accounts(exchange) == pytest.approx(known, rel=1e-3)
    most = max(one.spent().epsilon(settings.delta) for one in ledgers(exchange).values())
    assert simulated.ledgers.stated()["epsilon"] == pytest.approx(most, rel=1e-3)
    assert most <= 8.0


@pytest.mark.parametrize("by", ["clients", "nodes"])
def test_who_is_not_asked_is_not_charged(by: str, tmp_path: Path) -> None:
    runtime, _, _, exchange = federation(tmp_path, settings_of("fcf", by), NODES, RULES)
    asked = np.array([0, 1, 5, 6, 10, 11, 15, 16])
    runtime.round(1, asked, asked, by == "nodes")  # where all are evaluated in the same sum, nobody else is charged
    assert set(accounts(exchange)) == set(runtime.client_keys()[asked].tolist())


def test_clients_that_add_nothing_any_more_are_not_charged_again(tmp_path: Path) -> None:
    runtime, _, _, exchange = federation(tmp_path, settings_of("fedease", "nodes", rounds=3), NODES, RULES)
    first, everyone = np.array([0, 5, 10, 15]), np.arange(USERS)
    for number, asked in ((1, first), (2, everyone)):
        assert runtime.round(number, asked, asked, False)[0].participants == len(asked)
    assert len(accounts(exchange)) == USERS
    assert {one.spent().releases for one in ledgers(exchange).values()} == {1}


def test_a_vector_of_other_members_in_the_same_attempt_is_charged_too(tmp_path: Path) -> None:
    """A server that met the nodes again, with their clients as members, had a second vector of the round for free."""
    runtime, _, _, exchange = federation(tmp_path, settings_of("fcf", "nodes"), NODES, RULES)
    everyone = np.arange(USERS)
    assert runtime.round(1, everyone, everyone, False)[0].participants == USERS
    once = accounts(exchange)
    other = settings_of("fcf", "clients")
    again: Any = federation(tmp_path / "other", other, NODES, RULES)[0]
    for options in exchange.options.values():
        Node(options, RUN).meet(Meet(RUN, other.model_dump_json(), ()))
    again.exchange, again.directory = exchange, runtime.directory  # type: ignore[attr-defined]
    again.server = replace(again.server, items=again.server.items * np.float32(1.01))  # no stored answer fits
    assert again.round(1, everyone, everyone, False)[0].participants == USERS
    twice = accounts(exchange)
    assert all(twice[key] > 1.5 * once[key] for key in once)


def test_a_vector_is_made_once_and_charged_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    runtime, _, _, exchange = federation(tmp_path, settings_of("fcf", "clients"), NODES, RULES)

    def twice(name: str, step: Step, work: Any) -> Stepped:
        found: Stepped = work()
        if step.step == Kind.INPUT:
            with pytest.raises(Exception, match="nobody here takes the step input"):
                work()
        return found

    exchange.between = twice
    everyone = np.arange(USERS)
    assert runtime.round(1, everyone, everyone, False)[0].participants == USERS
    assert {one.spent().releases for one in ledgers(exchange).values()} == {1}


@pytest.mark.parametrize("by", ["clients", "nodes"])
def test_a_crash_after_the_charge_gives_no_second_vector_for_free(by: str, tmp_path: Path) -> None:
    runtime, _, _, exchange = federation(tmp_path, settings_of("fcf", by, secure_dropout=0.0), NODES, RULES)
    killed: list[str] = []

    def crash(name: str, step: Step, work: Any) -> Stepped:
        found: Stepped = work()
        if step.step == Kind.INPUT and name == "node1" and not killed:
            killed.append(name)
            sent = step.contents
            del exchange.nodes[name]  # charged, and perhaps sent
            with pytest.raises(Exception, match="has left"):
                Node(exchange.options[name], RUN).step(Step(RUN, int(Kind.INPUT), sent))
            raise ConnectionError
        return found

    exchange.between = crash
    everyone = np.arange(USERS)
    cost, _ = runtime.round(1, everyone, everyone, False)
    assert cost.participants == USERS
    assert cost.secure is not None
    assert cost.secure["repeated"] == 1
    for ledger in ledgers(exchange).values():
        assert {one.attempt for one in ledger.charges} == {0, 1}
        assert ledger.spent().releases == 2


def test_clients_whose_budget_is_spent_stay_out_alone(tmp_path: Path) -> None:
    settings = settings_of("fcf", "clients", rounds=2)
    runtime, _, _, exchange = federation(tmp_path, settings, NODES, RULES)
    policy = OwnerPolicy(budget=6.5, delta=settings.delta)  # for one of two rounds
    exchange.options |= {name: replace(one, policy=policy) for name, one in exchange.options.items()}
    some, everyone = np.array([0, 5, 10, 15]), np.arange(USERS)
    assert runtime.round(1, some, some, False)[0].participants == 4
    assert runtime.round(2, everyone, everyone, False)[0].participants == USERS - 4
    assert {one.spent().releases for one in ledgers(exchange).values()} == {1}


def test_what_another_version_left_to_be_summed_is_refused_in_a_line(tmp_path: Path) -> None:
    runtime, _, _, exchange = federation(tmp_path, settings_of("fcf", "nodes"), NODES, RULES)
    everyone = np.arange(USERS)
    assert runtime.round(1, everyone, everyone, False)[0].participants == USERS
    node = Node(next(iter(exchange.options.values())), RUN)
    found, about = node.store.read(PARTS)
    node.store.write(PARTS, found["sums"], **{key: about[key] for key in ("number", "agreed", "made")})
    with pytest.raises(Refusal, match="left by another version"):
        node.summing.step(Step(RUN, int(Kind.INPUT), {}))

"""Laws 8 and 10: a method finds what is there, and a control that can find nothing finds nothing."""

from __future__ import annotations

import pytest
from small_runs import plan, run, simulator

from fedrec.core.population import population
from fedrec.data.load import load
from fedrec.evaluation.canary import chance
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.references.popularity import Popularity
from fedrec.methods.registry import find
from fedrec.simulate.central import CentralRun

ENOUGH = {"dim": 16, "epochs": 10, "batch_size": 256}


@pytest.fixture(scope="module")
def planted():
    return load("planted")


@pytest.fixture(scope="module")
def popularity(planted):
    task = find_protocol("strict").prepare(planted, 3)
    return run(CentralRun(Popularity(), population(task), task, 3), plan(1)).records[0].test


def test_law_8_the_planted_answer_is_found(method, planted, popularity):
    kind = find(method)
    if not kind.federates:
        pytest.skip(f"{method} exchanges nothing: law 10 is about it")
    settings = {k: v for k, v in {**ENOUGH, **kind.enough}.items() if k in kind.Settings.model_fields}
    rounds = kind.enough_rounds
    found = run(simulator(method, planted, settings=settings), plan(rounds, evaluate_every=5))
    best = next(r for r in found.records if r.round == found.best_round).test
    assert best["HR@10"] > popularity["HR@10"] + 0.3
    assert best["HR@10/99"] > popularity["HR@10/99"] + 0.3


def test_law_10_without_federation_there_is_only_chance(demo):
    """Under strict the private-table method stays at chance, however long it trains."""
    sim = simulator("local", demo, settings=ENOUGH)
    found = run(sim, plan(5))
    expected = chance(sim.judging.task, "test", "HR@10/99")
    users = found.best_per_user["HR@10/99"]
    spread = (expected * (1 - expected) / len(users)) ** 0.5
    assert abs(users.mean() - expected) < 4 * spread


def test_law_10_a_leaky_protocol_gives_the_control_away(demo):
    sim = simulator("local", demo, protocol="paper-fedca", settings=ENOUGH)
    found = run(sim, plan(10))
    expected = chance(sim.judging.task, "test", "HR@10/99")
    assert found.records[-1].test["HR@10/99"] > expected + 0.1

"""Law 11: a control that can learn nothing from others learns nothing, unless the protocol gives it away."""

from __future__ import annotations

from fedrec.evaluation.canary import chance
from fedrec.laws.learning import ENOUGH
from fedrec.laws.small_runs import plan, run, simulator, world


def test_without_federation_there_is_only_chance() -> None:
    """Under strict the private-table method stays at chance, however long it trains."""
    sim = simulator("local", world("demo"), settings=ENOUGH)
    found = run(sim, plan(5))
    expected = chance(sim.evaluating.task, "test", "HR@10/99")
    assert found.best_per_user is not None
    users = found.best_per_user["HR@10/99"]
    spread = (expected * (1 - expected) / len(users)) ** 0.5
    assert abs(users.mean() - expected) < 4 * spread


def test_a_leaky_protocol_gives_the_control_away() -> None:
    sim = simulator("local", world("demo"), protocol="paper-fedca", settings=ENOUGH)
    found = run(sim, plan(10))
    expected = chance(sim.evaluating.task, "test", "HR@10/99")
    assert found.records[-1].test is not None
    assert found.records[-1].test["HR@10/99"] > expected + 0.1

"""When a run over nodes is settled: as most of them say, whatever one of them does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from direct import federation, in_process, records_of

from fedrec.core.loop import run_rounds
from fedrec.core.state import BadState, expect, flatten, unflatten
from fedrec.deploy.messages.letters import Answer, Ask
from fedrec.deploy.server.federation import snapshot_of
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.settling import UNKNOWN, typical_change
from fedrec.experiment.resolve import resolve
from fedrec.runs.rounds import record_of

RULES = Rules(wait=0.01, attempts=1, least=0.5)
OWN = {"dim": 4, "epochs": 2, "lr": 0.05}
GIVEN = {"data": "scale:users=40,items=60,interactions=800", "seed": 3, "rounds": 12, "settings": OWN}


def test_the_middle_change_counts_and_of_two_the_larger() -> None:
    before = {"a": 1.0, "b": 2.0, "c": 4.0}
    assert typical_change(before, {"a": 0.5, "b": 1.0, "c": 4.0}) == pytest.approx(-1.0)
    assert typical_change(before, {"a": 0.9, "b": 1.9, "c": 1e9}) == pytest.approx(-0.1 / 1.9)
    assert typical_change({"a": 1.0, "b": 1.0}, {"a": 0.5, "b": 1.0}) == -1.0  # one of two ends no run
    assert abs(typical_change({"a": 1.0, "b": 1.0}, {"a": 0.5, "b": 1e-300})) == 1.0
    assert typical_change({}, {"a": 1.0}) == typical_change({}, {}) == UNKNOWN
    assert typical_change({"a": 1.0}, {"a": 1.0, "b": 1.0}) == UNKNOWN  # a newcomer among two
    assert typical_change({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.0}) == UNKNOWN  # a method without losses


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("said", [1e9, -1e9, 1.0, -1.0])
def test_one_node_does_not_end_a_run(said: float, nodes: int, tmp_path: Path) -> None:
    """A loss of a billion in each round, beside which those of the others change nothing, ended it after three."""
    settings = resolve("fedavg", {**GIVEN, "settle": 0.01})

    def spoil(name: str, ask: Ask, work: Any) -> Any:
        answer: Answer = work()
        return replace(answer, loss=said * len(ask.positions)) if name == "node1" and ask.train else answer

    alone = in_process(settings)
    runtime, plan, progress, _ = federation(tmp_path, settings, nodes, RULES, spoil)
    found = records_of(runtime, plan, progress)
    assert len(found) >= len(alone) > 3
    assert not any(one.missing for one in found)


def test_honest_nodes_settle_where_one_process_does_and_after_a_stop_as_without(tmp_path: Path) -> None:
    settings = resolve("fedavg", {**GIVEN, "settle": 0.02, "rounds": 30})
    alone = in_process(settings)
    assert 3 < len(alone) < 30
    whole, plan, progress, _ = federation(tmp_path / "a", settings, 4, RULES)
    records = records_of(whole, plan, progress)
    assert abs(len(records) - len(alone)) <= 2
    runtime, plan, progress, exchange = federation(tmp_path / "b", settings, 4, RULES)
    run_rounds(runtime, replace(plan, rounds=2), progress, lambda *_: None)
    progress.records = [record_of(json.loads(json.dumps(one.as_dict()))) for one in progress.records]
    progress.state = unflatten(*flatten(runtime.snapshot()), snapshot_of(runtime.server))
    again = federation(tmp_path / "c", settings, 4, RULES)[0]
    again.exchange = exchange
    resumed = records_of(again, plan, progress)
    assert [one.change for one in resumed] == [one.change for one in records]


def test_a_method_without_losses_is_never_settled(tmp_path: Path) -> None:
    settings = resolve("fedspectral", {**GIVEN, "settings": {}, "rounds": 5, "settle": 0.5})
    runtime, plan, progress, _ = federation(tmp_path, settings, 4, RULES)
    assert len(records_of(runtime, plan, progress)) == len(in_process(settings)) == 5


def test_what_nodes_said_last_may_be_in_a_checkpoint_or_not() -> None:
    known = expect(taken=dict[str, int]).may(losses=dict[str, float])
    right: list[dict[str, Any]] = [{"taken": {"a": 1}}, {"taken": {"a": 1}, "losses": {"a": 0.5}}]
    for state in right:
        assert unflatten(*flatten(state), known) == state
    wrong: list[dict[str, Any]] = [
        {"losses": {"a": 0.5}},
        {"taken": {"a": 1}, "losses": {"a": "much"}},
        {"taken": {}, "other": {}},
    ]
    for state in wrong:
        with pytest.raises(BadState):
            unflatten(*flatten(state), known)

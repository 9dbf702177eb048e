"""Nodes that add up their clients: the same run, one sum a node, and sums that are none are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import federation, in_process, records_of

from fedrec.core.misfit import Misfit
from fedrec.core.sums import SumField
from fedrec.deploy.messages.letters import Answer, Ask, Fault
from fedrec.deploy.messages.totals import pack_totals, unpack_totals
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import federated, find

WORLD = "scale:users=40,items=60,interactions=760"
SUMMED = [name for name in federated() if find(name).card.sum_suffices]
BOUNDS = {"a": 15.0, "b": 30.0}
FIELDS = {"b": SumField((2, 3)), "a": SumField((), weight=5.0)}


def settings_of(method: str, sums: bool, **more: Any) -> Any:
    small = {k: v for k, v in {"epochs": 2, "dim": 4}.items() if k in find(method).Settings.model_fields}
    own = {**small, **more.pop("settings", {})}
    return resolve(
        method, {"data": WORLD, "rounds": 3, "seed": 3, "robust": "none", "node_sums": sums, **more, "settings": own}
    )


@pytest.mark.parametrize(
    ("method", "more"),
    [(name, {}) for name in SUMMED]
    + [
        ("fedavg", {"participation": 0.3, "dropout": 0.2}),
        ("fedavg", {"memory_mb": 16, "clients": 7, "settings": {"dim": 64}}),
        ("fcf", {"settings": {"noise": 0.01, "clip": 0.5, "compress": "int8"}}),
        ("fedmf", {"protocol": "paper-fedca"}),  # evaluates local models
    ],
)
def test_the_run_is_the_one_in_process(method: str, more: dict[str, Any], tmp_path: Path) -> None:
    runtime, plan, progress, _ = federation(tmp_path, settings_of(method, True, **more), 3)
    found = records_of(runtime, plan, progress)
    wanted = in_process(settings_of(method, False, **more))
    assert [one.participants for one in found] == [one.participants for one in wanted]
    assert [one.loss for one in found] == pytest.approx([one.loss for one in wanted], rel=1e-5, nan_ok=True)
    for one, other in zip(found, wanted, strict=True):
        assert one.valid == (None if other.valid is None else pytest.approx(other.valid, abs=1e-6))
        assert one.test == (None if other.test is None else pytest.approx(other.test, abs=1e-6))


def test_a_node_sends_one_sum_whose_size_does_not_grow_with_its_clients(tmp_path: Path) -> None:
    sizes = []
    for users in (20, 200):
        crossed: list[Answer] = []

        def keep(name: str, ask: Ask, work: Callable[[], Answer], into: list[Answer] = crossed) -> Answer:
            into.append(work())
            return into[-1]

        settings = settings_of("fedspectral", True, data=f"scale:users={users},items=60,interactions={19 * users}")
        runtime, plan, progress, _ = federation(tmp_path / str(users), settings, 2, spoil=keep)
        records_of(runtime, plan, progress)
        trained = [answer for answer in crossed if answer.counts]
        assert all(len(answer.uploads) == 1 for answer in trained)
        sizes.append({len(answer.uploads[0]) for answer in trained})
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("how", ["short", "nan", "huge", "two", "owed", "heavy"])
def test_sums_that_are_none_are_left_out_and_named(how: str, tmp_path: Path) -> None:
    def spoil(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer | Fault:
        answer = work()
        if name != "node1" or ask.train != 2:
            return answer
        (data,) = answer.uploads
        numbers = np.frombuffer(data).copy()
        numbers[0] = np.nan if how == "nan" else 1e300
        if how == "two":
            return Answer((data, data), (1, len(ask.positions) - 1), answer.loss, answer.valid, answer.test)
        if how in ("owed", "heavy"):  # interactions taken from the others, or more than all items of all clients
            numbers[0] = np.frombuffer(data)[0]
            numbers[-1] = -1.0 if how == "owed" else 1e6  # the last field is the weight
        changed = data[:-8] if how == "short" else numbers.tobytes()
        return Answer((changed,), answer.counts, answer.loss, answer.valid, answer.test)

    runtime, plan, progress, _ = federation(tmp_path, settings_of("fedavg", True), 3, spoil=spoil)
    records = records_of(runtime, plan, progress)
    assert any(line.startswith("node1: not taken") for line in records[1].missing), records[1].missing
    assert not records[0].missing
    assert not records[2].missing


def test_totals_come_back_as_they_were() -> None:
    totals = {"a": np.array(7.5), "b": np.arange(6.0).reshape(2, 3)}
    data = pack_totals(totals)
    assert len(data) == 7 * 8
    back = unpack_totals(data, FIELDS, BOUNDS)
    assert back["a"] == 7.5
    assert back["b"].tolist() == totals["b"].tolist()
    with pytest.raises(Misfit, match="sums of 48 bytes, not 56"):
        unpack_totals(data[8:], FIELDS, BOUNDS)
    with pytest.raises(Misfit, match="not finite, or larger"):
        unpack_totals(pack_totals({**totals, "a": np.array(np.inf)}), FIELDS, BOUNDS)


def test_what_cannot_be_summed_is_refused() -> None:
    with pytest.raises(BadInput, match="fedca cannot run with --node-sums: its server needs each client's upload"):
        resolve("fedca", {"node_sums": True})
    with pytest.raises(BadInput, match="with --node-sums the server sees no single upload"):
        resolve("fedavg", {"node_sums": True, "robust": "rows"})
    with pytest.raises(BadInput, match="leave --node-sums out"):
        resolve("fedavg", {"node_sums": True, "secure": True})
    assert resolve("fedavg", {"node_sums": True}).robust == "none"
    with pytest.raises(BadInput, match="give --runtime flower as well"):
        prepare(resolve("fedavg", {"node_sums": True}))

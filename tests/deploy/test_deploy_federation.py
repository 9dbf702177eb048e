"""Server and nodes without a network: law 2 for every method, what crosses, faults, going back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, DirectExchange, federation, in_process, records_of
from without import clients_of, in_process_without

from fedrec.core import wire
from fedrec.core.loop import Progress, run_rounds
from fedrec.core.messages import Rows
from fedrec.core.settings import build
from fedrec.deploy.messages.letters import Answer, Ask, Fault
from fedrec.deploy.node.node import Node
from fedrec.deploy.server.federation import TooFewNodes
from fedrec.deploy.server.rules import Rules
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import federated, find
from found_methods import find_federated
from killed import Killed

SMALL = {"epochs": 2, "dim": 4}


def settings_of(method: str, **more: Any) -> Any:
    own = {key: value for key, value in SMALL.items() if key in find(method).Settings.model_fields}
    settings = {**own, **more.pop("settings", {})}
    return resolve(method, {"rounds": 3, "seed": 3, **more, "settings": settings})


def rules(**given: Any) -> Rules:
    return build(Rules, {"wait": 0.05, "poll": 0.01, **given}, "test")


def same(left: list[Any], right: list[Any]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.participants == other.participants
        assert one.loss == pytest.approx(other.loss, rel=1e-5)
        for part in ("valid", "test"):
            found, wanted = getattr(one, part), getattr(other, part)
            assert (found is None) == (wanted is None)
            assert found is None or found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("method", federated())
@pytest.mark.parametrize("nodes", [2, 4] if os.environ.get("FEDREC_ALL_METHODS") else [4])
def test_in_process_and_federation_agree(method: str, nodes: int, tmp_path: Path) -> None:
    """Law 2, through the bytes that would cross the wire and through the nodes' files."""
    settings = settings_of(method, data="scale:users=40,items=60,interactions=760")
    runtime, plan, progress, _ = federation(tmp_path, settings, nodes)
    same(records_of(runtime, plan, progress), in_process(settings))


@pytest.mark.parametrize(
    "more",
    [
        {"participation": 0.3, "dropout": 0.2, "rounds": 4},
        {"participation": 0.4, "rest": True, "evaluate_every": 2, "rounds": 5},
        {"protocol": "paper-fedca"},  # evaluates local models
        {"protocol": "paper-fedca", "participation": 0.5},
        {"protocol": "paper-feddae"},  # needs to know what everybody trained on
        {"protocol": "paper-fedcia", "rounds": 14},  # stops early
        {"clients": 7, "evaluate_users": 50},
        {"settings": {"noise": 0.01, "clip": 0.5, "compress": "int8"}},
        {"settings": {"compress": "topk", "upload_form": "rows", "precision": "float16"}},
        {"memory_mb": 16, "settings": {"dim": 64}},
    ],
    ids=lambda more: "-".join(f"{k}={v}" for k, v in more.items())[:50],
)
def test_they_agree_under_every_kind_of_setting(more: dict[str, Any], tmp_path: Path) -> None:
    settings = settings_of("fedavg", **more)
    runtime, plan, progress, _ = federation(tmp_path, settings, 3)
    found, wanted = records_of(runtime, plan, progress), in_process(settings)
    same(found, wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.bytes == pytest.approx(other.bytes, rel=0.01)  # compressed forms: some bytes a block
        assert one.missing == other.missing


def test_messages_that_follow_the_settings_agree_too(tmp_path: Path) -> None:
    """FedDAE with averaged local encoders: other downloads and uploads, and a private gate that starts afresh."""
    own = {"local_encoder": "averaged", "gate": "mlp", "local_shared": "adam", "local_gradient": "accumulated"}
    settings = settings_of("feddae", settings=own)
    runtime, plan, progress, _ = federation(tmp_path, settings, 2)
    same(records_of(runtime, plan, progress), in_process(settings))


def test_a_round_costs_one_message_a_node(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fedavg", rounds=5), 2)
    records_of(runtime, plan, progress)
    # five rounds, evaluated each: the first message trains, the last one only evaluates
    assert len(exchange.sent) == 2 * (5 + 1)


def test_nothing_private_crosses(tmp_path: Path) -> None:
    settings = settings_of("fedavg")
    answers: list[tuple[str, Ask, Answer]] = []

    def spy(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer:
        answer = work()
        answers.append((name, ask, answer))
        return answer

    runtime, plan, progress, exchange = federation(tmp_path, settings, 2, spoil=spy)
    records_of(runtime, plan, progress)
    upload = find_federated("fedavg").Upload
    for name, ask, answer in answers:
        crossed = b"".join(answer.uploads) + ask.download
        for data in answer.uploads:
            wire.decode(upload, data)  # the method's upload and nothing else: unknown fields would be refused
        node = Node(exchange.options[name], RUN)
        for file in node.store.path.glob("state-*.safetensors"):
            for vector in node.private(file.name).users:
                assert vector.tobytes() not in crossed
        for user in node.names.users:
            assert user.encode() not in crossed
    assert set(answers[-1][2].test.sums) == set(progress.records[-1].test or {})


def spoilt(how: str) -> Callable[[str, Ask, Callable[[], Answer]], Answer | Fault]:
    """node1 goes wrong in round 2 (and only there)."""

    def spoil(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer | Fault:
        if name != "node1" or ask.train != 2:
            return work()
        if how == "dies":
            return Fault("Flower error 5: node unavailable")
        answer = work()
        if how == "late":  # it did the work, but nobody waits any more
            return Fault("no answer within 5 s")
        upload = wire.decode(find_federated("fedavg").Upload, answer.uploads[0])
        if how == "nan":
            values = upload.rows.values.copy()
            values[5, 1] = np.nan
            upload = replace(upload, rows=replace(upload.rows, values=values))
        elif how == "shape":
            rows = upload.rows
            upload = replace(upload, rows=Rows(rows.start, rows.ids, rows.values[:, :2], rows.n_items))
        elif how == "clients":
            upload = replace(upload, sizes=upload.sizes[:-1])
        elif how == "bytes":
            return replace(answer, uploads=(b"not a message",))
        elif how == "count":
            return replace(answer, counts=(answer.counts[0] - 1,))
        elif how == "sums":
            bad = replace(answer.valid, sums={name: float("nan") for name in answer.valid.sums})
            return replace(answer, valid=bad)
        return replace(answer, uploads=(wire.encode(upload),))

    return spoil


@pytest.mark.parametrize("how", ["dies", "late", "nan", "shape", "clients", "bytes", "count", "sums"])
def test_a_node_that_goes_wrong_is_left_out_and_taken_back(how: str, tmp_path: Path) -> None:
    settings = settings_of("fedavg", rounds=4)
    runtime, plan, progress, _ = federation(tmp_path, settings, 3, rules(), spoilt(how))
    found = records_of(runtime, plan, progress)
    people = prepare(settings).people
    wanted = in_process_without(settings, {2: clients_of(people, 1, 3)})
    assert [len(record.missing) for record in found] == [0, 1, 0, 0]
    assert found[1].missing[0].startswith("node1: ")
    same(found[1:], wanted[1:])  # round 1 was evaluated by the same message, so without node1's users


def test_answering_twice_changes_nothing(tmp_path: Path) -> None:
    def twice(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer:
        first, second = work(), work()
        assert first == second
        return second

    settings = settings_of("local")
    runtime, plan, progress, _ = federation(tmp_path, settings, 2, spoil=twice)
    same(records_of(runtime, plan, progress), in_process(settings))


@pytest.mark.parametrize("method", ["fedavg", "local"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_server_that_restarts_goes_on_from_its_last_round(method: str, at: int, tmp_path: Path) -> None:
    """Nodes are ahead of a server that died: they go back to the state the server counts on."""
    settings = settings_of(method, rounds=4)
    runtime, plan, progress, _ = federation(tmp_path, settings, 2)

    kept: dict[str, Any] = {}

    def after(record: Any, now: Progress) -> None:
        if record.round == at:
            kept["state"], kept["round"] = runtime.snapshot(), record.round
        if record.round == at + 1:
            raise Killed  # after the next round, before its checkpoint

    with pytest.raises(Killed):
        run_rounds(runtime, plan, progress, after)
    again, plan, resumed, _ = federation(tmp_path, settings, 2)
    resumed.round, resumed.state = kept["round"], kept["state"]
    same(records_of(again, plan, resumed), in_process(settings)[at:])


def test_too_few_nodes_stop_the_run_with_a_reason(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fedavg"), 4, rules(least=0.75, attempts=2))
    exchange.gone = {"node0", "node3"}
    with pytest.raises(TooFewNodes, match=r"2 of 4 nodes.*node0: not connected.*node3"):
        records_of(runtime, plan, progress)


def test_a_round_is_tried_again_when_too_few_answered(tmp_path: Path) -> None:
    settings = settings_of("fedavg")
    failed: set[int] = set()

    def once(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer | Fault:
        if name == "node1" and ask.train == 2 and 2 not in failed:
            failed.add(2)
            return Fault("lost")
        return work()

    runtime, plan, progress, _ = federation(tmp_path, settings, 2, rules(least=1.0), once)
    same(records_of(runtime, plan, progress), in_process(settings))
    assert failed


def test_a_node_that_lost_its_files_says_so(tmp_path: Path) -> None:
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fedavg", rounds=2), 2, rules())

    def lose(record: Any, now: Progress) -> None:
        for file in (tmp_path / "node1" / RUN).glob("s*.safetensors"):
            file.unlink()

    records = run_rounds(runtime, plan, progress, lose).records
    assert isinstance(exchange, DirectExchange)
    assert records[-1].participants == 120  # its answer of round 2 had come with the evaluation of round 1
    runtime.taken["node1"] = 2
    assert runtime.evaluate(2).test.count == 60

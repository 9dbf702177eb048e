"""Where a node's owner has set limits, nothing leaves that no noise covers, whatever the server asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, federation, records_of

from fedrec.core import wire
from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import SumField
from fedrec.deploy.messages.envelope import fault_in, pack_meet
from fedrec.deploy.messages.letters import Ask, Meet
from fedrec.deploy.node.ledger import NodeLedger
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.worker import Worker, options_of
from fedrec.errors import BadInput
from fedrec.evaluation.sums import MetricSums
from fedrec.experiment.resolve import resolve
from fedrec.privacy.ledger import OwnerPolicy, Withheld
from fedrec.privacy.summed import norms_of

WORLD = "scale:users=20,items=40,interactions=300"
NOISED = {"dim": 4, "epochs": 1, "clip": 1.0, "noise": 4.0, "noise_kind": "gaussian"}
LIMITS = OwnerPolicy(min_noise=1.0, max_clip=2.0, budget=1e6)


def settings_of(method: str, own: dict[str, Any], **more: Any) -> Any:
    return resolve(method, {"data": WORLD, "rounds": 4, "settings": own, **more})


def limited(tmp_path: Path, policy: OwnerPolicy, nodes: int = 2, **more: Any) -> Any:
    made = federation(tmp_path, settings_of("fcf", NOISED, **more), nodes)
    exchange = made[3]
    exchange.options |= {name: replace(one, policy=policy) for name, one in exchange.options.items()}
    return made


def test_an_evaluation_tells_nothing_of_a_history_whatever_the_model(tmp_path: Path) -> None:
    """A server read whole histories out of evaluations of models that it made up, past a spent budget."""
    own = {"scale": "user", "noise": 20.0, "noise_kind": "gaussian"}
    runtime, _, _, exchange = federation(tmp_path, settings_of("fedease", own, rounds=9), 20)
    ask: Ask = runtime._asks(np.arange(20), 0, 1, False, False)["node1"]
    options = replace(exchange.options["node1"], policy=OwnerPolicy(20.0, 1.0, 0.5))

    def said(options: NodeOptions, item: int, number: int) -> Any:
        weights = np.zeros((40, 40), np.float32)
        weights[:, item] = 1
        place = next(one for one in runtime.roster.places if one.name == "node1")
        download = replace(runtime.method.download(runtime.server, place.clients), weights=weights)
        sent = wire.encode(download, wire.Form.of(runtime.method.settings))
        nobody = np.zeros(0, np.int64)
        return Node(options, RUN).answer(
            replace(ask, train=0, evaluate=number, whole=True, positions=nobody, download=sent)
        )

    free = replace(options, policy=OwnerPolicy())
    told = [said(free, item, 1).test.sums["NDCG@10"] for item in range(40)]
    assert max(told) == 1  # the held-out item, without limits
    assert all(answer.test == answer.valid == MetricSums() for answer in (said(options, item, 2) for item in range(40)))
    shared = replace(options, policy=replace(options.policy, metrics=True))
    assert said(shared, 0, 3).test.count == 1


def test_losses_stay_where_they_are_in_plain_runs_too(tmp_path: Path) -> None:
    runtime, _, _, exchange = limited(tmp_path, LIMITS)
    ask: Ask = runtime._asks(np.arange(20), 0, 1, False, False)["node1"]
    answer = Node(exchange.options["node1"], RUN).answer(ask)
    assert answer.uploads
    assert answer.loss == 0
    free = replace(exchange.options["node0"], policy=OwnerPolicy())
    assert Node(free, RUN).answer(runtime._asks(np.arange(20), 0, 1, False, False)["node0"]).loss > 0


@pytest.mark.parametrize(("nodes", "secure"), [(2, {}), (4, {"secure": True, "epsilon": 8.0})])
def test_a_run_whose_nodes_send_no_metrics_ends_with_its_last_round(
    tmp_path: Path, nodes: int, secure: dict[str, Any]
) -> None:
    own = {name: value for name, value in NOISED.items() if name in ("dim", "epochs", "clip")} if secure else NOISED
    policy = OwnerPolicy(budget=8.1 if secure else 1e7)
    runtime, plan, progress, exchange = federation(tmp_path, settings_of("fcf", own, nodes=nodes, **secure), nodes)
    exchange.options |= {name: replace(one, policy=policy) for name, one in exchange.options.items()}
    records = records_of(runtime, plan, progress)
    assert [one.participants for one in records] == [20] * 4
    assert all(np.isnan(value) for record in records for value in (record.valid or {}).values())
    assert progress.best_round == 4
    assert progress.best_state is not None


@pytest.mark.parametrize("method", ["fedavg", "pfedgraph"])
def test_uploads_with_fields_that_no_noise_covers_are_refused(tmp_path: Path, method: str) -> None:
    worker = Worker(NodeOptions("a", tmp_path / "a", hosted=WORLD, policy=LIMITS))
    fault = fault_in(worker.handle(pack_meet(Meet(RUN, settings_of(method, NOISED).model_dump_json(), ()))))
    assert fault is not None
    assert f"this node has limits, and {method} sends sizes as they are, without noise" in fault.reason


def test_fields_that_only_some_uploads_have_are_refused_before_they_are_sent(tmp_path: Path) -> None:
    """The subspaces of fedca named every item, for an epsilon of 0.0002."""
    runtime, _, _, exchange = federation(tmp_path, settings_of("fedca", NOISED), 2)
    node = Node(replace(exchange.options["node1"], policy=LIMITS), RUN)
    with pytest.raises(Withheld, match="fedca sends sizes, subspaces as they are, without noise"):
        node.answer(runtime._asks(np.arange(20), 0, 1, False, False)["node1"])
    assert not NodeLedger(exchange.options["node1"].folder, LIMITS).read().charges


def test_compression_that_moves_what_was_clipped_is_not_accounted_for_as_clipped() -> None:
    """int8 made a clip of 1 a norm of up to 2.9, and nodes charged for 1."""
    fields = {"items": SumField((40, 4), protected=True)}
    norms, _ = norms_of(fields, PrivacySettings(clip=1.0), None, users=1)
    assert max(norms.values()) == pytest.approx(1.0)
    with pytest.raises(BadInput, match="compress=int8 can move an upload beyond the clip"):
        norms_of(fields, PrivacySettings(clip=1.0, compress="int8"), None, users=1)


def test_the_owners_word_on_metrics_is_read_from_the_nodes_configuration(tmp_path: Path) -> None:
    plain = {"name": "a", "folder": str(tmp_path), "data": "d.csv", "budget": "8.0"}
    assert options_of(plain).policy.withholds_metrics
    assert options_of({**plain, "metrics": "False"}).policy.withholds_metrics
    assert not options_of({**plain, "metrics": "True"}).policy.withholds_metrics

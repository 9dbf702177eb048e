"""A node's own service: its users' lists from its own files, while the next run trains."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from direct import RUN, federation, records_of

from fedrec.deploy.messages.letters import Meet, Selected
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.recommending import recommend
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.serve.app import service
from fedrec.serve.batches import Batches
from fedrec.serve.counts import Counts
from fedrec.serve.sources import NodeSource
from serving import running


def test_a_node_serves_its_users_while_the_next_run_trains(tmp_path: Path) -> None:
    settings = resolve("fedspectral", {"data": "demo", "rounds": 1, "settings": {"k": 4}})
    made, plan, progress, exchange = federation(tmp_path, settings, 2)
    options = exchange.options["node0"]
    with pytest.raises(BadInput, match="no run has come to its end"):
        NodeSource(options.folder).mark()
    records_of(made, plan, progress)
    first = Node(options, RUN)
    first.select(Selected(RUN, progress.best_round))
    here, there = (Node(exchange.options[name], RUN).names.users[3] for name in ("node0", "node1"))
    source = Batches(NodeSource(options.folder), Counts(), look=0.02)
    with running(service(source)) as found:
        wanted = [r.item for r in recommend(options.folder, here, 5)]
        Node(options, "another").meet(Meet("another", settings.model_dump_json(), ()))  # a new run has begun
        answer = found.get(f"/recommend/{here}?k=5")
        assert [one["item"] for one in answer.json["items"]] == wanted
        assert found.get(f"/recommend/{there}").status == 404
        refused = found.post("/recommend", {"history": [wanted[0]]})
        assert (refused.status, "own users" in refused.json["error"]) == (422, True)
        assert source.counts.loaded == 1
        first.select(Selected(RUN, progress.best_round))  # the same run once more: a newer model
        end = time.monotonic() + 60
        while source.counts.loaded == 1 and time.monotonic() < end:
            assert found.get(f"/recommend/{here}").status == 200
        assert source.counts.loaded == 2

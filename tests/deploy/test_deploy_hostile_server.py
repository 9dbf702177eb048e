"""A node takes nothing from a server that is not its to give: paths, memory, files, and letters that are none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, federation
from hostile import put_together, taken_apart

from fedrec.core.settings import FOLDER, MEMORY
from fedrec.deploy.messages.envelope import Plain, pack_ask, pack_meet, pack_selected
from fedrec.deploy.messages.letters import Answer, Ask, Meet, Selected
from fedrec.deploy.node.consent import accepted
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.worker import Worker
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import federated, find

SPILLING = ["feddae", "fed3cr", "fedrap", "fediar"]
MIXING = ["pfedgraph", "gpfedrec"]
"""Their servers' tables may lie on disk; a node writes none, and takes no folder for them either."""


def word(method: str, settings: dict[str, Any], **more: Any) -> Meet:
    plain = {"method": method, "rounds": 2, "settings": settings, **more}
    return Meet(RUN, json.dumps(plain), ())


@pytest.mark.parametrize("method", SPILLING)
def test_private_state_lies_in_the_nodes_own_folder(method: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    node = Node(NodeOptions("a", tmp_path / "a"), RUN)
    node.meet(word(method, {"private_dir": str(elsewhere), "private_budget_mb": 0, "dim": 4}))
    assert node.method.settings.private_dir == str(tmp_path / "a" / "spill")
    block = node.share.block
    from fedrec.core.method import Keys

    node.method.start_clients(node.share.world, block, Keys(0, 0))
    assert not elsewhere.exists()
    assert (tmp_path / "a" / "spill").is_dir()


def test_every_setting_that_looks_like_a_path_is_marked() -> None:
    found = set()
    for name in federated():
        for key, field in find(name).Settings.model_fields.items():
            if re.search(r"dir|path|file|folder", key) and key != "profile":
                assert field.json_schema_extra == FOLDER, f"{name}: {key}"
                found.add(name)
            if key.endswith("_mb"):
                assert field.json_schema_extra == MEMORY, f"{name}: {key}"
    assert found == {*SPILLING, *MIXING}


@pytest.mark.parametrize("method", MIXING)
def test_no_folder_of_the_servers_choice(method: str, tmp_path: Path) -> None:
    node = Node(NodeOptions("a", tmp_path / "a", private_mb=32), RUN)
    node.meet(word(method, {"tables_dir": str(tmp_path / "elsewhere"), "tables_budget_mb": 10**6, "dim": 4}))
    assert node.method.settings.tables_dir == str(tmp_path / "a" / "spill")
    assert node.method.settings.tables_budget_mb <= 32


def test_resources_are_the_nodes_own(tmp_path: Path) -> None:
    given = {
        "method": "feddae", "device": "cuda", "memory_mb": 10**6, "data_dir": "/etc",
        "settings": {"private_budget_mb": 10**6},
    }  # fmt: skip
    options = NodeOptions("a", tmp_path, memory_mb=64, private_mb=32)
    settings = accepted(options, given)
    assert (settings.device, settings.memory_mb, settings.data_dir) == ("cpu", 64, None)
    assert settings.settings["private_budget_mb"] == 32
    assert accepted(replace(options, device="cuda"), given).device == "cuda"
    assert accepted(options, {**given, "memory_mb": 16}).memory_mb == 16


@pytest.mark.parametrize(
    "data", ["/etc/passwd", "../other", "own.csv", "https://example.org/x.csv", "scale:users=9999999"]
)
def test_a_server_names_no_files(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("user,item\n" + "".join(f"u{n % 9},i{n}\n" for n in range(90)))
    with pytest.raises(BadInput, match="may not name"):
        Node(NodeOptions("a", tmp_path / "a"), RUN).meet(word("fedavg", {}, data=data))
    hello = Node(NodeOptions("a", tmp_path / "b", hosted="own.csv"), RUN).meet(word("fedavg", {}, data=data))
    assert int(hello.users.sum()) == 9  # what it was started with, whatever the server says


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "fedavg", "settings": {"dim": 10**9}}, "needs .* MiB, this node gives at most"),
        ({"method": "popularity"}, "not a federated method"),
        ({"method": "fedavg", "extra": 1}, "has no setting 'extra'"),
        ({"method": "fedavg", "settings": {"dims": 1}}, "did you mean 'dim'"),
        ([], "not an object"),
        ("x", "not an object"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(given: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises((BadInput, ValueError), match=said):
        Node(NodeOptions("a", tmp_path), RUN).meet(Meet(RUN, json.dumps(given), ()))


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Worker, Ask]:
    """A node, and a sound message to it."""
    settings = resolve("fedavg", {"rounds": 3, "clients": 6, "settings": {"dim": 4, "epochs": 1}})
    found: list[Ask] = []

    def watch(name: str, ask: Ask, work: Any) -> Answer:
        found.append(ask)
        answer: Answer = work()
        return answer

    runtime, _, _, exchange = federation(tmp_path, settings, 2, spoil=watch)
    runtime._exchange(np.arange(6), evaluate=1, train=2)
    return Worker(exchange.options["node1"]), found[-1]


def with_items(ask: Ask, items: Any) -> Ask:
    arrays, about = taken_apart(ask.download)
    arrays["items"] = items(arrays["items"])
    return replace(ask, download=put_together(arrays, about))


def headed(plain: Plain, **other: Any) -> Plain:
    return {**plain[0], **other}, plain[1]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda ask: pack_ask(replace(ask, positions=np.array([0, 99]))), "Misfit"),
        (lambda ask: pack_ask(replace(ask, positions=np.array([-1]))), "Misfit"),
        (lambda ask: pack_ask(replace(ask, positions=np.array([1, 0]))), "Misfit"),
        (lambda ask: pack_ask(replace(ask, positions=np.array([34, 2**51, 2 - 2**63]))), "Misfit"),  # wraps around
        (lambda ask: pack_ask(replace(ask, world=replace(ask.world, n_items=10**9))), "Misfit"),
        (lambda ask: pack_ask(replace(ask, world=replace(ask.world, n_clients=1))), "Misfit"),
        (lambda ask: pack_ask(replace(ask, train=10**6)), "Misfit"),
        (lambda ask: pack_ask(replace(ask, whole=False)), "Misfit"),
        (lambda ask: pack_ask(with_items(ask, lambda a: a[:1])), "Misfit"),  # a kernel would read behind it
        (lambda ask: pack_ask(with_items(ask, lambda a: a[:, :1])), "Misfit"),
        (lambda ask: pack_ask(with_items(ask, lambda a: a * np.float32(np.nan))), "Misfit"),
        (lambda ask: pack_ask(with_items(ask, lambda a: a.astype(np.int32))), "Misfit"),
        (lambda ask: pack_ask(replace(ask, download=b"x" * 100)), "WireError"),
        (lambda ask: pack_ask(replace(ask, run="unknown")), "UnknownRun"),
        (lambda ask: pack_selected(Selected("unknown", 1)), "UnknownRun"),
        (lambda ask: headed(pack_ask(ask), run="../x"), "BadLetter"),
        (lambda ask: headed(pack_ask(ask), train=True), "BadLetter"),
        (lambda ask: headed(pack_ask(ask), world=["x", 1, 2]), "BadLetter"),
        (lambda ask: headed(pack_ask(ask), base=10**30), "BadLetter"),
        (lambda ask: headed(pack_ask(ask), kind=["ask"]), "BadLetter"),
        (lambda ask: ({"kind": "ask"}, {}), "BadLetter"),
        (lambda ask: ([], {}), "BadLetter"),
        (lambda ask: headed(pack_meet(Meet("new", "[" * 10**5, ()))), "BadLetter"),
        (lambda ask: (pack_meet(Meet("new", "{}", ()))[0], {"catalogue": b"a\na"}), "BadLetter"),
        (lambda ask: (pack_meet(Meet("new", "{}", ()))[0], {"catalogue": b"\n" * 10**7}), "BadLetter"),
        (lambda ask: (pack_meet(Meet("new", "{}", ()))[0], {"catalogue": b"\xff\xfe"}), "BadLetter"),
    ],
)
def test_letters_that_no_server_would_send_are_faults(asked: tuple[Worker, Ask], change: Any, kind: str) -> None:
    worker, ask = asked
    head, blocks = worker.handle(change(ask))
    assert head == {"kind": "fault", "reason": f"{kind} on the node (its errors.log says more)"}
    assert not blocks
    assert "unknown" not in worker.nodes
    assert not (worker.options.folder / "unknown").exists()
    head, blocks = worker.handle(pack_ask(ask))
    assert head["kind"] == "answer", "a sound letter after it is answered as before"
    assert set(blocks) == {"upload0"}

"""A node's own side: its own file against the catalogue, its files, its worker, its recommendations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, DirectExchange, in_process, records_of

from fedrec.core.loop import Progress
from fedrec.core.method import Method
from fedrec.core.settings import build
from fedrec.data.load import load
from fedrec.deploy.credentials import make_node, make_server
from fedrec.deploy.messages.envelope import pack_hello, pack_meet, unpack_hello
from fedrec.deploy.messages.letters import Answer, Hello, Meet, Selected
from fedrec.deploy.messages.plain_values import BadLetter
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.recommending import recommend
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.store import NodeStore
from fedrec.deploy.node.worker import Worker
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.job import read_catalogue
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.rules import Rules
from fedrec.deploy.server.serve import upcoming
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.evaluation.sums import MetricSums
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute
from fedrec.runs.plan import plan_of


def own_files(folder: Path) -> tuple[list[NodeOptions], tuple[str, ...]]:
    """The demo world in two nodes' own files, and the public catalogue in another order."""
    data = load("demo")
    assert data.times is not None
    options = []
    for name, own in (("a", data.users < 50), ("b", data.users >= 50)):
        rows = zip(data.user_ids[data.users[own]], data.item_ids[data.items[own]], data.times[own], strict=True)
        path = folder / f"{name}.csv"
        path.write_text("user,item,time\n" + "".join(f"{u},{i},{t}\n" for u, i, t in rows))
        options.append(NodeOptions(name, folder / name, data=str(path), repeatable=True))
    (folder / "items.txt").write_text("\n".join(reversed(data.item_ids.tolist())) + "\n")
    return options, read_catalogue(folder / "items.txt")


def test_nodes_with_their_own_files_give_the_in_process_metrics_and_recommendations(tmp_path: Path) -> None:
    settings = resolve("fedavg", {"rounds": 2, "settings": {"dim": 4, "epochs": 1}})
    options, catalogue = own_files(tmp_path)
    word = Meet(RUN, settings.model_dump_json(exclude={"data_dir"}), catalogue)
    roster = Roster.of([Node(o, RUN).meet(word) for o in reversed(options)])
    method = prepare(settings).method
    assert isinstance(method, Method)
    plan, progress = plan_of(settings, find_protocol(settings.protocol), method), Progress()
    runtime = Federation(
        method,
        roster.world("mine", len(catalogue)),
        roster,
        DirectExchange(options),
        build(Rules, {}, "test"),
        RUN,
        settings.seed,
        upcoming(plan),
        find_protocol(settings.protocol).metrics,
        lambda: progress.best_round,
    )
    found, wanted = records_of(runtime, plan, progress), in_process(settings)
    for one, other in zip(found, wanted, strict=True):
        assert one.test == pytest.approx(other.test, abs=1e-9)
    with pytest.raises(BadInput, match="no run has come to its end"):
        recommend(tmp_path / "a", "u003")
    for node in options:
        Node(node, RUN).select(Selected(RUN, progress.best_round))
    plain = execute(settings)
    for folder, user in ((tmp_path / "a", "u003"), (tmp_path / "b", "u090")):
        assert [r.item for r in recommend(folder, user, 5)] == [r.item for r in plain.recommend(user, 5)]
    with pytest.raises(BadInput, match="this node has no user 'u090'"):
        recommend(tmp_path / "a", "u090")


def test_an_item_outside_the_catalogue_is_refused(tmp_path: Path) -> None:
    options, catalogue = own_files(tmp_path)
    settings = resolve("fedavg", {"rounds": 1})
    with pytest.raises(BadInput, match="not in the run's catalogue of 159 items, the first is 'i001'"):
        Node(options[0], RUN).meet(Meet(RUN, settings.model_dump_json(), catalogue[1:]))


@pytest.mark.parametrize("given", [{"protocol": "paper-feddae"}, {"evaluate_users": 5}, {"clients": 3}])
def test_what_needs_everybodys_data_is_refused(given: dict[str, Any], tmp_path: Path) -> None:
    options, catalogue = own_files(tmp_path)
    settings = resolve("fedavg", {"rounds": 1, **given})
    with pytest.raises(BadInput):
        Node(options[0], RUN).meet(Meet(RUN, settings.model_dump_json(), catalogue))


def test_a_node_says_only_the_kind_of_an_error(tmp_path: Path) -> None:
    options, catalogue = own_files(tmp_path)
    settings = resolve("fedavg", {"rounds": 1, "settings": {"dim": 4}})
    worker = Worker(options[0])
    meet = pack_meet(Meet(RUN, settings.model_dump_json(exclude={"data_dir"}), catalogue))
    hello = unpack_hello(worker.handle(meet))
    assert hello.name == "a"
    assert len(hello.client_keys) == 50
    bad = pack_meet(Meet("run-2", settings.model_dump_json(), catalogue[:-1]))
    head, blocks = Worker(options[1]).handle(bad)
    assert head == {"kind": "fault", "reason": "BadInput on the node (its errors.log says more)"}
    assert not blocks
    assert "not in the run's catalogue" in (tmp_path / "b" / "errors.log").read_text()


def test_a_run_cannot_name_a_folder_elsewhere(tmp_path: Path) -> None:
    for bad in ("../outside", "a/b", "", ".."):
        with pytest.raises(ValueError, match="does not name a run"):
            NodeStore(tmp_path, bad)


def test_a_stored_answer_comes_back_as_it_was(tmp_path: Path) -> None:
    store = NodeStore(tmp_path, RUN)
    store.create()
    answer = Answer((b"\x00\x01", b"z"), (3, 1), 0.1 + 0.2, MetricSums({"HR@10": 1 / 3}, 3), MetricSums())
    store.keep_answer("digest", answer)
    assert store.answer("digest") == answer
    assert store.answer("another") is None


def test_models_of_rounds_that_are_not_needed_are_removed(tmp_path: Path) -> None:
    store = NodeStore(tmp_path, RUN)
    store.create()
    for number in (1, 2, 3):
        for name in (f"state-{number}.safetensors", f"judged-{number}.safetensors", f"judged-{number}.users"):
            (store.path / name).touch()
    store.prune({2, 3}, {1})
    assert sorted(f.name for f in store.path.iterdir()) == [
        "judged-1.safetensors", "judged-1.users", "state-2.safetensors", "state-3.safetensors",
    ]  # fmt: skip


def test_roster_orders_nodes_and_refuses_a_client_twice() -> None:
    def hello(name: str, *keys: int) -> Hello:
        return Hello(name, np.array(keys, np.uint64), np.ones(len(keys), np.int64))

    roster = Roster.of([hello("b", 7, 8), hello("a", 9)])
    assert [(p.name, p.first) for p in roster.places] == [("a", 0), ("b", 1)]
    again = Roster.from_dict(json.loads(json.dumps(roster.as_dict())))
    assert again.client_keys.tolist() == [9, 7, 8]
    with pytest.raises(BadInput, match=r"a client is hosted by two nodes \(a, c\)"):
        Roster.of([hello("c", 8, 1), hello("b", 7), hello("a", 9, 1)])
    with pytest.raises(BadLetter, match="names a client twice"):  # it would end the run for all
        unpack_hello(pack_hello(hello("a", 1, 2, 1)))
    with pytest.raises(BadInput, match="same name"):
        Roster.of([hello("a", 1), hello("a", 2)])


@pytest.mark.parametrize(
    ("text", "words"), [("a\n", "at least 2"), ("a\nb\na\n", "'a' twice"), (None, "is not a file")]
)
def test_bad_catalogues(text: str | None, words: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "items.txt").write_text(text)
    with pytest.raises(BadInput, match=words):
        read_catalogue(tmp_path / "items.txt")


def test_a_catalogue_of_numbers_is_in_the_order_of_numbers(tmp_path: Path) -> None:
    (tmp_path / "items.txt").write_text("10\n9\n100\n")
    assert read_catalogue(tmp_path / "items.txt") == ("9", "10", "100")


def test_credentials(tmp_path: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

    make_server(tmp_path, ["fedrec.test", "10.0.0.1"])
    authority, server = (x509.load_pem_x509_certificate((tmp_path / f"{n}.crt").read_bytes()) for n in ("ca", "server"))
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["fedrec.test", "localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1", "127.0.0.1"]
    make_node(tmp_path, "n1")
    private: Any = load_ssh_private_key((tmp_path / "n1").read_bytes(), None)
    public: Any = load_ssh_public_key((tmp_path / "n1.pub").read_bytes())
    assert private.public_key().public_numbers() == public.public_numbers()
    assert public.curve.name == "secp384r1"
    for secret in ("ca.key", "server.key", "n1"):
        assert (tmp_path / secret).stat().st_mode & 0o077 == 0
    with pytest.raises(BadInput, match="already has"):
        make_node(tmp_path, "n1")

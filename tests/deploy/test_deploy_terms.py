"""A node with its owner's data keeps to the terms of its first run: meeting it again tells a server nothing more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedrec.deploy.messages.envelope import fault_in, pack_meet, unpack_hello
from fedrec.deploy.messages.letters import Meet
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.deploy.node.terms import FILE
from fedrec.deploy.node.worker import Worker
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.privacy.ledger import Withheld

ITEMS = [f"i{number:02}" for number in range(12)]
MINE = ITEMS[:7]


@pytest.fixture
def options(tmp_path: Path) -> NodeOptions:
    """One person with a file of seven items."""
    path = tmp_path / "me.csv"
    path.write_text("user,item,time\n" + "".join(f"me,{item},{time}\n" for time, item in enumerate(MINE)))
    return NodeOptions("a", tmp_path / "a", data=str(path))


def word(run: str, catalogue: list[str], **more: object) -> Meet:
    settings = resolve("fcf", {"rounds": 2, "settings": {"dim": 2}, **more})
    return Meet(run, settings.model_dump_json(exclude={"data_dir"}), tuple(catalogue))


def test_a_catalogue_with_an_item_less_is_no_question(options: NodeOptions) -> None:
    """A server read a whole history by meeting the node once for each item, with a catalogue that lacked it."""
    worker, said = Worker(options), []
    for number, item in enumerate(reversed(ITEMS)):
        reply = worker.handle(pack_meet(word(f"probe-{number}", [one for one in ITEMS if one != item])))
        fault = fault_in(reply)
        said.append("" if fault is None else fault.reason)
    assert said[0] == ""  # the first is answered, and it is the last that is
    assert len(set(said[1:])) == 1
    assert "has a smaller catalogue" in said[1]


def test_nor_is_one_more_filter(options: NodeOptions) -> None:
    """Who stays under --min-interactions 1, 2, 3 told the length of every history."""
    worker = Worker(options)
    found = [worker.handle(pack_meet(word(f"count-{n}", ITEMS, min_interactions=n))) for n in range(1, 12)]
    assert len(unpack_hello(found[0]).client_keys) == 1
    reasons = {fault.reason for one in found[1:] if (fault := fault_in(one)) is not None}
    assert len(found[1:]) == 10
    assert len(reasons) == 1
    assert "keeps to the terms of its first run" in reasons.pop()
    assert fault_in(worker.handle(pack_meet(word("again", ITEMS, min_interactions=1)))) is None


def test_a_catalogue_may_grow_and_not_shrink_again(options: NodeOptions) -> None:
    Node(options, "one").meet(word("one", ITEMS))
    Node(options, "two").meet(word("two", ["new", *ITEMS]))
    with pytest.raises(Withheld, match="has a smaller catalogue; ask its owner"):
        Node(options, "three").meet(word("three", ITEMS))
    with pytest.raises(Withheld, match="has another protocol and min-rating"):
        Node(options, "four").meet(word("four", ["new", *ITEMS], protocol="paper-fedcia", min_rating=2))
    (options.folder / FILE).unlink()  # the owner allows other terms
    Node(options, "three").meet(word("three", ITEMS))


def test_data_that_did_not_fit_is_tried_again_when_the_owner_has_changed_it(options: NodeOptions) -> None:
    with pytest.raises(BadInput, match="not in the run's catalogue"):
        Node(options, "one").meet(word("one", ITEMS[1:]))
    for catalogue in (ITEMS[1:], ITEMS):  # not even a catalogue that would fit
        with pytest.raises(Withheld, match="could not take part in its first run"):
            Node(options, "two").meet(word("two", catalogue))
    assert options.data is not None
    path = Path(options.data)
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "i00" not in line) + "\n")
    Node(options, "two").meet(word("two", ITEMS))


def test_a_run_of_data_that_everybody_has_leaves_no_terms(tmp_path: Path, options: NodeOptions) -> None:
    hosted = replace(options, data=None, hosted="demo", folder=tmp_path / "b")
    Node(hosted, "one").meet(word("one", [], data="demo"))
    assert not (tmp_path / "b" / FILE).exists()

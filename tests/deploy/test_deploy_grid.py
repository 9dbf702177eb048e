"""The server's side of Flower: what one node does, or what is lost on the way to it, costs nobody else a round."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flwr.app import RecordDict
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import http_grid as flower_grid

from fedrec.deploy.admission import Admission
from fedrec.deploy.credentials import make_node
from fedrec.deploy.flower.commands import connection, register
from fedrec.deploy.flower.grid import GridExchange
from fedrec.deploy.flower.tasks import Link
from fedrec.deploy.messages.letters import Fault, Meet
from fedrec.deploy.ports import free_ports
from fedrec.deploy.processes import StartFailed, apart
from fedrec.deploy.steps import counted
from fedrec.errors import BadInput

http_grid: Any = flower_grid


class Grid:
    """Two nodes: what node 2 announces never comes, and sending to node 1 fails a few times."""

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.sent = failures, list[int]()

    def push_messages(self, messages: Any) -> list[str]:
        (message,) = messages
        if message.metadata.dst_node_id == 1 and self.failures:
            self.failures -= 1
            raise ConnectionError("the push session may have expired")
        self.sent.append(message.metadata.dst_node_id)
        return [str(message.metadata.dst_node_id)]

    def pull_messages(self, wanted: Any) -> list[Any]:
        found = []
        for number in sorted(wanted, reverse=True):  # the one that hangs first
            try:
                http_grid.pull_objects([number], self.content)
            except ObjectPullError:
                continue
            reply = SimpleNamespace(reply_to_message_id=number)
            found.append(SimpleNamespace(metadata=reply, has_error=lambda: False, content=number))
        return found

    @staticmethod
    def content(number: str) -> bytes:
        if number == "2":
            raise ObjectUnavailableError(number)
        return b"here"


@pytest.fixture(autouse=True)
def inside_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flower makes messages only there."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def exchange(grid: Grid) -> GridExchange:
    return GridExchange(grid, Meet("run", "{}", ()), poll=0.01)


def test_who_announces_an_answer_and_sends_none_is_waited_for_no_longer_than_others() -> None:
    before = http_grid.pull_objects
    asked = {"one": (1, RecordDict()), "two": (2, RecordDict())}
    found = exchange(Grid())._round_trip(asked, "train", "1", 0.3)  # by itself Flower would wait for two hours
    assert found["one"] == "1"
    assert isinstance(found["two"], Fault)
    assert http_grid.pull_objects is before


@pytest.mark.parametrize(("failures", "sent"), [(2, [1]), (9, [])])
def test_a_message_that_cannot_be_sent_is_tried_again_and_ends_nothing(failures: int, sent: list[int]) -> None:
    grid = Grid(failures)
    found = exchange(grid)._round_trip({"one": (1, RecordDict())}, "train", "1", 5.0)
    assert grid.sent == sent
    assert isinstance(found["one"], Fault) != bool(sent)


def test_who_is_revoked_while_the_server_waits_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid()
    looks: list[int] = []

    def nothing(wanted: Any) -> list[Any]:
        looks.append(len(wanted))
        return []

    monkeypatch.setattr(grid, "pull_messages", nothing)
    made = exchange(grid)
    made.admission = SimpleNamespace(revoked=lambda name: name == "one" and len(looks) > 2)  # type: ignore[assignment]
    asked = {"one": (1, RecordDict()), "two": (2, RecordDict())}
    found = made._round_trip(asked, "train", "1", 0.5)
    assert found == {"one": Fault("its key was revoked"), "two": Fault("no answer within 0.5 s")}
    assert looks[:4] == [2, 2, 2, 1]


def test_who_is_revoked_after_announcing_an_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrec.deploy.flower.grid.GRACE", 0.1)
    revoked: list[str] = []

    class Announced(Grid):
        def content(self, number: str) -> bytes:  # type: ignore[override]
            revoked.append("two")
            return super().content(number)

        def pull_messages(self, wanted: Any) -> list[Any]:
            try:
                http_grid.pull_objects(["2"], self.content)
            except ObjectPullError:
                error = SimpleNamespace(code=4, reason="gone")
                reply = SimpleNamespace(reply_to_message_id="2")
                return [SimpleNamespace(metadata=reply, has_error=lambda: True, error=error)]  # no content, as Flower's
            raise AssertionError("node 2 sends nothing")

    made = exchange(Announced())
    made.admission = SimpleNamespace(revoked=lambda name: name in revoked)  # type: ignore[assignment]
    began = time.monotonic()
    assert made._round_trip({"two": (2, RecordDict())}, "train", "1", 300.0) == {"two": Fault("its key was revoked")}
    assert time.monotonic() - began < 60  # and not 300


class Losing(Grid):
    """Flower says of every message, after a while, that it is not there any more."""

    def __init__(self, code: int, seconds: float) -> None:
        super().__init__()
        self.code, self.seconds = code, seconds

    def pull_messages(self, wanted: Any) -> list[Any]:
        time.sleep(self.seconds)
        error = SimpleNamespace(code=self.code, reason="Message Unavailable - it may have\nexpired due to its TTL")
        return [
            SimpleNamespace(metadata=SimpleNamespace(reply_to_message_id=n), has_error=lambda: True, error=error)
            for n in wanted
        ]


@pytest.mark.parametrize(
    ("code", "seconds", "deadline", "reason"),
    [
        (3, 0.3, 0.3, "no answer within 0.3 s"),
        (4, 0.3, 0.3, "no answer within 0.3 s"),
        (3, 0.0, 60.0, "the node left before it answered"),
        (5, 0.0, 60.0, "the node left before it answered"),
        (8, 0.0, 60.0, "Flower error 8: Message Unavailable - it may have expired due to its TTL"),
    ],
)
def test_a_message_that_flower_has_lost_is_named_in_plain_words(
    code: int, seconds: float, deadline: float, reason: str
) -> None:
    found = exchange(Losing(code, seconds))._round_trip({"one": (1, RecordDict())}, "train", "1", deadline)
    assert found == {"one": Fault(reason)}


def test_a_newcomer_that_does_not_answer_holds_up_one_round_and_not_every_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid = Grid()
    monkeypatch.setattr(grid, "get_node_ids", lambda: [2], raising=False)
    made = GridExchange(grid, Meet("run", "{}", ()), poll=0.01, meet_seconds=0.05)
    for _ in range(2):  # before the first round everybody is waited for
        made.online()
    assert grid.sent == [2, 2]
    made.patient = False
    made._silent = {2: (time.monotonic() + 100, 100.0)}
    for _ in range(5):
        assert made.online() == set()
    assert grid.sent == [2, 2]
    made._silent = {2: (time.monotonic() - 1, 100.0)}
    made.online()
    assert grid.sent == [2, 2, 2]
    assert made._silent[2][1] == 200.0


def test_a_key_is_not_admitted_where_no_server_answers(tmp_path: Path) -> None:
    make_node(tmp_path, "one")
    home = tmp_path / "server"
    connection(home, Link(f"127.0.0.1:{free_ports(1)[0]}"))
    with pytest.raises(StartFailed, match=r"no server answers on .*fedrec deploy server"):
        register(home, tmp_path / "one.pub")
    assert not Admission(home).nodes()


def test_bad_data_is_the_same_line_from_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("nothing\n")
    with pytest.raises(BadInput) as there:
        apart(counted)(tmp_path / "empty.csv")
    with pytest.raises(BadInput) as here:
        counted(tmp_path / "empty.csv")
    assert str(there.value) == str(here.value)

"""Flower's loop of a node, as we run it: Flower's own halves of it, on a state in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from flwr.supercore.run import RunNotRunningException
from flwr.supernode import start_client_internal

from fedrec.deploy.flower.supernode import InStep

loop: Any = start_client_internal


def message(number: str, answers: str = "") -> Any:
    metadata = SimpleNamespace(
        message_id=number, reply_to_message_id=answers, run_id=1, group_id="", message_type="train"
    )
    return SimpleNamespace(metadata=metadata)


class State:
    """What Flower keeps of a node; answers are made as soon as a message is stored."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def get_run(self, run: int) -> Any:
        return SimpleNamespace(primary_task_type="", fab_hash="")

    def create_task(self, **_: Any) -> int:
        return 1

    def store_message(self, stored: Any) -> None:
        number = stored.metadata.message_id
        self.answers.append(message(f"answer to {number}", number))

    def get_messages_legacy(self, is_reply: bool) -> list[Any]:
        return self.answers[:1]  # one at a time, as a node makes them

    def delete_messages(self, message_ids: list[str]) -> None:
        self.answers = [one for one in self.answers if one.metadata.message_id not in message_ids]

    def get_message_processing_duration(self, message_id: str) -> float:
        return 0.0


def test_an_answer_that_nobody_waits_for_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "iterate_object_tree", lambda tree: ())
    state = State()
    store = SimpleNamespace(preregister=lambda *_: [], get_object_tree=lambda _: None, delete=lambda _: None)
    made = InStep(loop._pull_and_store_message, loop._push_messages)
    sent: list[str] = []

    def exchange(number: str, running: bool = True) -> list[str]:
        """A message comes; the answers that go out before the next."""

        def confirm(*_: Any) -> None:
            if not running:
                raise RunNotRunningException

        def send(answer: Any, *_: Any) -> tuple[set[str], str]:
            sent.append(answer.metadata.message_id)
            return set(), ""

        sent.clear()
        found = made.pull(
            state=state, object_store=store, node_config={}, receive=lambda: (message(number), None), get_run=None,
            get_fab=None, pull_object=None, confirm_message_received=confirm, trusted_entities=None,
        )  # fmt: skip
        if found is not None:
            made.push(state=state, object_store=store, send=send, push_object=None)
        return list(sent)

    assert exchange("one") == ["answer to one"]
    assert exchange("two", running=False) == []  # the run was stopped meanwhile; Flower answers all the same
    assert exchange("three") == ["answer to two", "answer to three"]
    assert exchange("four") == ["answer to four"]

"""Letters over Flower's grid: how each becomes a message, and the server's side of sending them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedrec.core.block import World
from fedrec.deploy.letters import Answer, Ask, Fault, Hello, Meet, Settle
from fedrec.evaluation.sums import MetricSums

log = logging.getLogger("fedrec.deploy")

QUERY, TRAIN, EVALUATE = "query", "train", "evaluate"


def _pack(head: dict[str, Any], arrays: dict[str, bytes] | None = None) -> RecordDict:
    """A letter as records: a JSON head and blocks of bytes."""
    blocks = {
        name: Array(dtype="uint8", shape=(len(data),), stype="fedrec.bytes", data=data)
        for name, data in (arrays or {}).items()
    }
    return RecordDict({"head": ConfigRecord({"json": json.dumps(head)}), "blocks": ArrayRecord(blocks)})


def _unpack(content: RecordDict) -> tuple[dict[str, Any], dict[str, bytes]]:
    head = json.loads(str(content.config_records["head"]["json"]))
    return head, {name: array.data for name, array in content.array_records["blocks"].items()}


def pack_meet(word: Meet) -> RecordDict:
    head = {"kind": "meet", "run": word.run, "settings": word.settings}
    return _pack(head, {"catalogue": "\n".join(word.catalogue).encode()})


def pack_settle(word: Settle) -> RecordDict:
    return _pack({"kind": "settle", "run": word.run, "selected": word.selected})


def unpack_word(content: RecordDict) -> Meet | Settle:
    head, blocks = _unpack(content)
    if head["kind"] == "settle":
        return Settle(head["run"], int(head["selected"]))
    text = blocks["catalogue"].decode()
    return Meet(head["run"], head["settings"], tuple(text.split("\n")) if text else ())


def pack_hello(hello: Hello) -> RecordDict:
    blocks = {
        "client_keys": hello.client_keys.astype("<u8").tobytes(),
        "users": hello.users.astype("<i8").tobytes(),
    }
    return _pack({"kind": "hello", "name": hello.name}, blocks)


def unpack_hello(content: RecordDict) -> Hello:
    head, blocks = _unpack(content)
    keys, users = np.frombuffer(blocks["client_keys"], "<u8"), np.frombuffer(blocks["users"], "<i8")
    return Hello(str(head["name"]), keys.astype(np.uint64), users.astype(np.int64))


def pack_ask(ask: Ask) -> RecordDict:
    world = ask.world
    head = {
        "kind": "ask",
        "run": ask.run,
        "world": [world.name, world.n_items, world.n_users, world.n_clients],
        "first": ask.first,
        "base": ask.base,
        "selected": ask.selected,
        "judge": ask.judge,
        "train": ask.train,
        "local": ask.local,
        "whole": ask.whole,
    }
    return _pack(head, {"positions": ask.positions.astype("<i8").tobytes(), "download": ask.download})


def unpack_ask(content: RecordDict) -> Ask:
    head, blocks = _unpack(content)
    name, n_items, n_users, n_clients = head["world"]
    return Ask(
        run=str(head["run"]),
        world=World(name, n_items, n_users, n_clients),
        first=int(head["first"]),
        base=int(head["base"]),
        selected=int(head["selected"]),
        judge=int(head["judge"]),
        train=int(head["train"]),
        local=bool(head["local"]),
        whole=bool(head["whole"]),
        positions=np.frombuffer(blocks["positions"], "<i8").astype(np.int64),
        download=blocks["download"],
    )


def pack_answer(answer: Answer) -> RecordDict:
    head = {
        "kind": "answer",
        "counts": list(answer.counts),
        "loss": answer.loss,
        "valid": answer.valid.as_dict(),
        "test": answer.test.as_dict(),
    }
    return _pack(head, {f"upload{i}": data for i, data in enumerate(answer.uploads)})


def unpack_answer(content: RecordDict) -> Answer:
    head, blocks = _unpack(content)
    return Answer(
        uploads=tuple(blocks[f"upload{i}"] for i in range(len(head["counts"]))),
        counts=tuple(int(n) for n in head["counts"]),
        loss=float(head["loss"]),
        valid=MetricSums.from_dict(head["valid"]),
        test=MetricSums.from_dict(head["test"]),
    )


def pack_fault(fault: Fault) -> RecordDict:
    return _pack({"kind": "fault", "reason": fault.reason})


def fault_in(content: RecordDict) -> Fault | None:
    head, _ = _unpack(content)
    return Fault(str(head["reason"])) if head.get("kind") == "fault" else None


class GridExchange:
    """Reaches nodes over Flower's grid. Nodes are known by the name they give when they are met.

    Flower's own ``send_and_receive`` looks for replies every three seconds; here it is ``poll``.
    """

    def __init__(self, grid: Any, word: Meet, *, poll: float = 0.2, meet_seconds: float = 60.0) -> None:
        self.grid, self.word, self.poll, self.meet_seconds = grid, word, poll, meet_seconds
        self.hellos: dict[int, Hello] = {}
        self.expected: Callable[[Hello], bool] = lambda hello: True
        """Whether a node is one of this run's; set once the roster is fixed."""
        self._strangers: dict[int, str] = {}

    def online(self) -> set[str]:
        """Nodes that are connected and known; those that came since the last look are met first."""
        ids = set(self.grid.get_node_ids())
        unknown = sorted(ids - self.hellos.keys() - self._strangers.keys())
        if unknown:
            self._meet(unknown)
        return {self.hellos[i].name for i in ids if i in self.hellos}

    def send(self, asks: Mapping[str, Ask], deadline: float) -> dict[str, Answer | Fault]:
        online = set(self.grid.get_node_ids())
        ids = {hello.name: i for i, hello in self.hellos.items() if i in online}
        packed = {name: (ids[name], pack_ask(ask)) for name, ask in asks.items() if name in ids}
        rounds = {ask.train or ask.judge for ask in asks.values()}
        train = any(ask.train for ask in asks.values())
        found = self._round_trip(packed, TRAIN if train else EVALUATE, str(max(rounds, default=0)), deadline)
        answers: dict[str, Answer | Fault] = {}
        for name in asks:
            reply = found.get(name, Fault("not connected"))
            answers[name] = self._read(name, reply, unpack_answer)
        return answers

    def settle(self, selected: int, deadline: float) -> dict[str, Fault]:
        """Tell every node which round was selected; who did not hear it."""
        online = set(self.grid.get_node_ids())
        packed = {
            hello.name: (i, pack_settle(Settle(self.word.run, selected)))
            for i, hello in self.hellos.items()
            if i in online
        }
        found = self._round_trip(packed, QUERY, "settle", deadline)
        read = {name: self._read(name, reply, lambda content: None) for name, reply in found.items()}
        return {name: reply for name, reply in read.items() if isinstance(reply, Fault)}

    def _meet(self, ids: list[int]) -> None:
        packed = {str(i): (i, pack_meet(self.word)) for i in ids}
        for key, reply in self._round_trip(packed, QUERY, "meet", self.meet_seconds).items():
            hello = self._read(key, reply, unpack_hello)
            if isinstance(hello, Fault):
                log.warning("a node that connected could not be met: %s", hello.reason)
                continue
            if not self.expected(hello):
                log.warning("%s is not one of this run's nodes, or has other clients now: left out", hello.name)
                self._strangers[int(key)] = hello.name
                continue
            # a node that was restarted has a new number: the old one is forgotten
            self.hellos = {i: known for i, known in self.hellos.items() if known.name != hello.name}
            self.hellos[int(key)] = hello
            log.info("met %s: %d clients", hello.name, len(hello.client_keys))

    def _round_trip(
        self, packed: dict[str, tuple[int, RecordDict]], kind: str, group: str, deadline: float
    ) -> dict[str, RecordDict | Fault]:
        """Send one message to each, and collect replies until all are there or the deadline has passed."""
        names: dict[str, str] = {}
        for name, (node, content) in packed.items():
            message = Message(content, dst_node_id=node, message_type=kind, group_id=group, ttl=deadline)
            pushed = list(self.grid.push_messages([message]))
            if pushed and pushed[0]:
                names[pushed[0]] = name
        found: dict[str, RecordDict | Fault] = {
            name: Fault("the message could not be sent") for name in packed if name not in names.values()
        }
        end = time.monotonic() + deadline
        while names and time.monotonic() < end:
            for reply in self.grid.pull_messages(list(names)):
                name = names.pop(reply.metadata.reply_to_message_id, "")
                if not name:  # a second answer to a message that was answered
                    continue
                found[name] = Fault(_reason(reply.error)) if reply.has_error() else reply.content
            if names:
                time.sleep(self.poll)
        return found | {name: Fault(f"no answer within {deadline:g} s") for name in names.values()}

    def _read(self, name: str, reply: RecordDict | Fault, unpack: Callable[[RecordDict], Any]) -> Any:
        if isinstance(reply, Fault):
            return reply
        try:
            fault = fault_in(reply)
            if fault is not None and fault.reason.startswith("UnknownRun"):
                self.hellos = {i: known for i, known in self.hellos.items() if known.name != name}  # meet again
            return fault or unpack(reply)
        except Exception as problem:  # whatever a broken reply does, the round goes on
            return Fault(f"an answer that cannot be read ({type(problem).__name__})")


def _reason(error: Any) -> str:
    return f"Flower error {error.code}: {' '.join(str(error.reason).split())[:200]}"

"""How letters become bytes: a small head of plain values and blocks of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrec.core.block import World
from fedrec.deploy.letters import Answer, Ask, Fault, Hello, Meet, Settle
from fedrec.evaluation.sums import MetricSums

Plain = tuple[dict[str, Any], dict[str, bytes]]
"""A head that JSON can say, and blocks of bytes."""


def _plain(head: dict[str, Any], blocks: dict[str, bytes] | None = None) -> Plain:
    return head, blocks or {}


def pack_meet(word: Meet) -> Plain:
    head = {"kind": "meet", "run": word.run, "settings": word.settings, "challenge": word.challenge}
    return _plain(head, {"catalogue": "\n".join(word.catalogue).encode()})


def pack_settle(word: Settle) -> Plain:
    return _plain({"kind": "settle", "run": word.run, "selected": word.selected})


def unpack_word(plain: Plain) -> Meet | Settle:
    head, blocks = plain
    if head["kind"] == "settle":
        return Settle(head["run"], int(head["selected"]))
    text = blocks["catalogue"].decode()
    return Meet(head["run"], head["settings"], tuple(text.split("\n")) if text else (), str(head["challenge"]))


def pack_hello(hello: Hello) -> Plain:
    blocks = {
        "client_keys": hello.client_keys.astype("<u8").tobytes(),
        "users": hello.users.astype("<i8").tobytes(),
        "proof": hello.proof,
    }
    return _plain({"kind": "hello", "name": hello.name}, blocks)


def unpack_hello(plain: Plain) -> Hello:
    head, blocks = plain
    keys, users = np.frombuffer(blocks["client_keys"], "<u8"), np.frombuffer(blocks["users"], "<i8")
    return Hello(str(head["name"]), keys.astype(np.uint64), users.astype(np.int64), blocks["proof"])


def pack_ask(ask: Ask) -> Plain:
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
    return _plain(head, {"positions": ask.positions.astype("<i8").tobytes(), "download": ask.download})


def unpack_ask(plain: Plain) -> Ask:
    head, blocks = plain
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


def pack_answer(answer: Answer) -> Plain:
    head = {
        "kind": "answer",
        "counts": list(answer.counts),
        "loss": answer.loss,
        "valid": answer.valid.as_dict(),
        "test": answer.test.as_dict(),
    }
    return _plain(head, {f"upload{i}": data for i, data in enumerate(answer.uploads)})


def unpack_answer(plain: Plain) -> Answer:
    head, blocks = plain
    return Answer(
        uploads=tuple(blocks[f"upload{i}"] for i in range(len(head["counts"]))),
        counts=tuple(int(n) for n in head["counts"]),
        loss=float(head["loss"]),
        valid=MetricSums.from_dict(head["valid"]),
        test=MetricSums.from_dict(head["test"]),
    )


def pack_fault(fault: Fault) -> Plain:
    return _plain({"kind": "fault", "reason": fault.reason})


def fault_in(plain: Plain) -> Fault | None:
    head, _ = plain
    return Fault(str(head["reason"])) if head.get("kind") == "fault" else None

"""What a hostile node may do to its answer, and what the server is expected to say about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from fedrec.deploy.messages.envelope import Plain, pack_answer
from fedrec.deploy.messages.letters import Answer

Attack = Callable[[dict[str, Any], dict[str, bytes]], None]
"""Changes head and blocks of an answer in place."""


def hostile(answer: Answer, attack: Attack) -> Plain:
    """The letter that a node sends after the attack."""
    head, blocks = pack_answer(answer)
    head = json.loads(json.dumps(head))
    attack(head, blocks)
    return head, blocks


def taken_apart(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of an encoded message, and what it says about itself."""
    size = int.from_bytes(data[:8], "little")
    return load(data), json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["fedrec"])


def put_together(arrays: dict[str, Any], about: dict[str, Any]) -> bytes:
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return save(whole, metadata={"fedrec": json.dumps(about)})


def on_arrays(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Attack:
    """An attack on the first upload's arrays and on what it says about itself."""

    def attack(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        arrays, about = taken_apart(blocks["upload0"])
        change(arrays, about)
        blocks["upload0"] = put_together(arrays, about)

    return attack


def floats(arrays: dict[str, Any]) -> list[str]:
    return [name for name, array in arrays.items() if array.dtype.kind == "f"]


def foreign_metric(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["valid"]["sums"]["HR@99"] = 1.0


def sums_too_large(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["valid"]["sums"] = dict.fromkeys(head["valid"]["sums"], 5e5)


def sums_below_zero(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["test"]["sums"]["HR@10"] = -1.0


def too_many_users(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["valid"]["count"] = 10**6


def infinite_loss(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["loss"] = float("inf")


def absurd_loss(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["loss"] = 1e200


def counts_of_a_billion(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    head["counts"] = [10**9]


def block_too_many(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    blocks["upload7"] = b"x"


def block_missing(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
    blocks.clear()


def huge_numbers(value: float) -> Attack:
    def change(arrays: dict[str, Any], about: dict[str, Any]) -> None:
        for name in floats(arrays):
            arrays[name] = np.full_like(arrays[name], value)

    return on_arrays(change)


def other_type(arrays: dict[str, Any], about: dict[str, Any]) -> None:
    for name in floats(arrays):
        arrays[name] = arrays[name].astype(np.int32)


def array_too_many(arrays: dict[str, Any], about: dict[str, Any]) -> None:
    arrays["extra"] = np.zeros(1, np.float32)


def low_rank_bomb(arrays: dict[str, Any], about: dict[str, Any]) -> None:
    """Two factors without a number, whose product has 2^28."""
    field = sorted(arrays)[0].partition(".")[0]
    for name in [name for name in arrays if name.partition(".")[0] == field]:
        del arrays[name]
    arrays[f"{field}.left"] = np.zeros((1, 1 << 14, 0), np.float32)
    arrays[f"{field}.right"] = np.zeros((1, 0, 1 << 14), np.float32)
    about["nested"][field] = "LowRank"


def top_k_bomb(arrays: dict[str, Any], about: dict[str, Any]) -> None:
    """One number that claims to be one of 2^40."""
    field = sorted(arrays)[0].partition(".")[0]
    for name in [name for name in arrays if name.partition(".")[0] == field]:
        del arrays[name]
    arrays |= {
        f"{field}.start": np.array([0, 1]), f"{field}.indices": np.zeros(1, np.int32),
        f"{field}.values": np.zeros(1, np.float32), f"{field}.shape": np.array([1 << 40]),
        f"{field}.table": np.array([False]),
    }  # fmt: skip
    about["nested"][field] = "TopK"


def every(name: str, value: int) -> Attack:
    """One integer field filled with a number."""

    def change(arrays: dict[str, Any], about: dict[str, Any]) -> None:
        arrays[name] = np.full_like(arrays[name], value)

    return on_arrays(change)


LETTERS: dict[str, tuple[Attack, str]] = {
    "foreign metric": (foreign_metric, r"not the protocol's \('HR@99'\)"),
    "sums too large": (sums_too_large, "the sum 500000"),
    "sums below zero": (sums_below_zero, "the sum -1"),
    "too many users": (too_many_users, "metric sums of 1000000 users"),
    "infinite loss": (infinite_loss, "the loss is not a finite number"),
    "absurd loss": (absurd_loss, r"a loss of 1e\+200"),
    "counts": (counts_of_a_billion, "uploads of 1000000000 clients"),
    "block too many": (block_too_many, "other blocks than it should have"),
    "block missing": (block_missing, "counts is not a list"),
}
"""Attacks on any method's answer, and what is said about them."""

ARRAYS: dict[str, tuple[Attack, str]] = {
    "3e38": (huge_numbers(3e38), "numbers as large as 3e"),
    "nan": (huge_numbers(np.nan), "not finite"),
    "other type": (on_arrays(other_type), "int32|not that of tables|not rows"),
    "array too many": (on_arrays(array_too_many), "no field 'extra'"),
    "LowRank bomb": (on_arrays(low_rank_bomb), "unfolds|compressed where"),
    "TopK bomb": (on_arrays(top_k_bomb), "unfolds|compressed where"),
}
"""Attacks on any upload that has floating numbers."""

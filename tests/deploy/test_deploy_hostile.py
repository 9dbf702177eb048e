"""One node can lose its own part in a round, and nothing more: the audit's list, through the real message path."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import delivered, federation, records_of
from hostile import ARRAYS, LETTERS, Attack, every, hostile, huge_numbers, taken_apart

from fedrec.core.state import flatten
from fedrec.deploy.messages.letters import Answer, Ask, Fault
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.rules import Rules
from fedrec.experiment.resolve import resolve
from fedrec.methods.registry import federated
from found_methods import find_federated

WORLD = "scale:users=40,items=60,interactions=760"
SMALL = {"dim": 4, "epochs": 1, "warmup": 1}
EVERY = bool(os.environ.get("FEDREC_ALL_METHODS"))
Spoil = Callable[[str, Ask, Callable[[], Answer]], Answer | Fault]


def settings_of(method: str, rounds: int, more: dict[str, Any]) -> Any:
    kind = find_federated(method)
    own = {key: value for key, value in SMALL.items() if key in kind.Settings.model_fields}
    given = {"data": WORLD, "rounds": rounds, "clients": 9}
    return resolve(method, {**given, "settings": {**own, **kind.small, **more}})


def attacked(folder: Path, method: str, attacks: list[Attack], more: dict[str, Any]) -> tuple[list[Any], Federation]:
    """node1 attacks in one round after another, and is sound in the last."""

    def spoil(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer | Fault:
        answer = work()
        if name != "node1" or not 1 <= ask.train <= len(attacks):
            return answer
        return delivered(hostile(answer, attacks[ask.train - 1]))

    return carried_out(folder, method, len(attacks) + 1, more, spoil)


def without(folder: Path, method: str, rounds: int, more: dict[str, Any]) -> tuple[list[Any], Federation]:
    """The same run, in which node1 does not answer in those rounds."""

    def spoil(name: str, ask: Ask, work: Callable[[], Answer]) -> Answer | Fault:
        away = name == "node1" and 1 <= ask.train <= rounds
        return Fault("away") if away else work()

    return carried_out(folder, method, rounds + 1, more, spoil)


def carried_out(
    folder: Path, method: str, rounds: int, more: dict[str, Any], spoil: Spoil
) -> tuple[list[Any], Federation]:
    runtime, plan, progress, _ = federation(
        folder, settings_of(method, rounds, more), 3, Rules(wait=0.05, poll=0.01), spoil
    )
    return records_of(runtime, plan, progress), runtime


def same_results(left: tuple[list[Any], Federation], right: tuple[list[Any], Federation]) -> None:
    """Metrics of every round and the server's last state, to the bit."""
    for one, other in zip(left[0], right[0], strict=True):
        assert (one.participants, one.loss, one.valid, one.test) == (
            other.participants, other.loss, other.valid, other.test,
        )  # fmt: skip
    arrays, others = flatten(left[1].server)[0], flatten(right[1].server)[0]
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)


def check(folder: Path, method: str, tried: dict[str, tuple[Attack, str]], more: dict[str, Any] | None = None) -> None:
    given = more or {}
    found = attacked(folder / "attacked", method, [attack for attack, _ in tried.values()], given)
    for record, (name, (_, said)) in zip(found[0], tried.items(), strict=False):
        assert len(record.missing) == 1, (name, record.missing)
        assert record.missing[0].startswith("node1: "), name
        assert re.search(said, record.missing[0]), (name, record.missing[0])
        assert "\n" not in record.missing[0]
    assert not found[0][-1].missing, "node1 was not taken back"
    same_results(found, without(folder / "without", method, len(tried), given))


@pytest.mark.parametrize("method", federated())
def test_no_answer_spoils_a_run(method: str, tmp_path: Path) -> None:
    """Attacks on what every method sends; the rest of a letter is the same for all, and tried with fedavg below."""
    tried = {} if method == "local" else {name: ARRAYS[name] for name in ("3e38", "other type", "LowRank bomb")}
    if method == "local" or EVERY:  # which uploads nothing; round 1 has no metrics yet
        tried = {name: LETTERS[name] for name in ("absurd loss", "foreign metric", "sums too large")} | tried
    check(tmp_path, method, tried)


def test_the_whole_list_against_fedavg(tmp_path: Path) -> None:
    sizes = {
        "sizes of a billion": (every("sizes", 10**9), r"sizes has 1000000000, which is above"),
        "sizes below zero": (every("sizes", -5), "sizes has -5, which is below 0"),
    }
    check(tmp_path, "fedavg", {"counts": LETTERS["counts"], **LETTERS, **ARRAYS, **sizes})


IDS = "ids has .* (above|below)|ids names what is not in the catalogue"


@pytest.mark.parametrize(
    ("method", "more", "tried"),
    [
        (
            "feddae",
            {},
            {
                "ids above": (every("ids", 10**6), "ids has 1000000, which is above"),
                "ids below": (every("ids", -1), "ids has -1, which is below 0"),
                "counts": (every("counts", 10**6), "the shape|counts has"),
            },
        ),
        (
            "feddae",
            {"gradients": "dense"},
            {
                "users above": (every("users", 10**6), "users has 1000000, which is above"),
                "users below": (every("users", -1), "users has -1, which is below"),
            },
        ),
        (
            "fedca",
            {},
            {"many": (every("sizes", 10**9), "the shape|sizes has"), "below": (every("sizes", -1), "sizes has")},
        ),
        ("fedca", {"neighbours": 3, "rows": 8}, {"ids": (every("ids", 10**6), IDS)}),
        ("fedfast", {}, {"sizes": (every("sizes", 0), "profiles has the shape")}),
        ("perfedrec", {}, {"sizes": (every("sizes", 10**6), "the shape|sizes has")}),
        ("pfedgraph", {}, {"sizes": (every("sizes", -(10**6)), "sizes has -1000000, which is below 0")}),
        ("fedease", {}, {"pairs": (every("pairs.ids", 10**8), "names what is not in the catalogue")}),
        ("fedspectral", {"upload_form": "rows"}, {"ids": (every("table.ids", -1), "not in the catalogue")}),
        (
            "fedmf",
            {"upload_form": "rows"},
            {
                "start": (every("rows.start", 5), "not cut as it says"),
                "items": (every("rows.n_items", 1 << 40), "for 1099511627776 items"),
            },
        ),
        (
            "fedavg",
            {"compress": "topk"},
            {
                "shape": (every("rows.shape", 1 << 40), "unfolds into"),
                "indices": (every("rows.indices", -1), "not in the catalogue"),
            },
        ),
        ("fedavg", {"compress": "int8"}, {"huge": (huge_numbers(3e38), "not finite|numbers as large")}),
    ],
)
def test_fields_have_ranges(
    method: str, more: dict[str, Any], tried: dict[str, tuple[Attack, str]], tmp_path: Path
) -> None:
    check(tmp_path, method, tried, more)


@pytest.mark.parametrize("method", ["fedavg", "fedncf", "fedca", "feddae", "fedspectral", "fed3cr", "fediar"])
def test_numbers_that_pass_inspection_leave_a_state_that_clients_can_work_with(method: str, tmp_path: Path) -> None:
    """The largest numbers that inspection lets through: whoever sent them may be left out, nobody else is."""
    records, runtime = attacked(tmp_path, method, [huge_numbers(9e8), huge_numbers(-9e8)], {})
    assert all(line.startswith("node1: ") for record in records for line in record.missing)
    assert all(np.isfinite(array).all() for array in flatten(runtime.server)[0].values() if array.dtype.kind == "f")
    assert all(np.isfinite(value) for value in (records[-1].valid or {}).values())


def test_a_compressed_whole_table_can_be_folded(tmp_path: Path) -> None:
    """Top-k leaves rows out of a table of which the server expected all."""
    runtime, plan, progress, _ = federation(
        tmp_path, settings_of("fed3cr", 2, {"compress": "topk"}), 2, Rules(wait=0.05, poll=0.01)
    )
    assert [record.missing for record in records_of(runtime, plan, progress)] == [(), ()]


def test_other_users_than_before_are_not_counted(tmp_path: Path) -> None:
    def fewer(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        head["valid"] = {"count": 1, "sums": dict.fromkeys(head["valid"]["sums"], 1.0)}

    def nothing(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        pass

    records, _ = attacked(tmp_path, "fedavg", [nothing, nothing, fewer], {})
    assert [bool(record.missing) for record in records] == [False, False, True, False]
    assert "metric sums of 1 users, and of" in records[2].missing[0]


def test_a_reason_is_one_short_line(tmp_path: Path) -> None:
    def shout(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        head.clear()
        head.update(kind="fault", reason="gone\nround 3: all is well\x1b[2J" + "x" * 10**5)

    records, _ = attacked(tmp_path, "fedavg", [shout], {})
    assert records[0].missing[0].startswith("node1: gone round 3: all is well?[2Jxxx")
    assert len(records[0].missing[0]) < 400


def test_an_upload_that_is_taken_apart_comes_back(tmp_path: Path) -> None:
    """The attacks change what they mean to change: a letter without one is taken."""

    def same(head: dict[str, Any], blocks: dict[str, bytes]) -> None:
        assert taken_apart(blocks["upload0"])[1]["type"] == "WeightedUpload"

    records, _ = attacked(tmp_path, "fedavg", [same], {})
    assert not records[0].missing

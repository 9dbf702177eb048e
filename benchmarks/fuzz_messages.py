"""Damaged messages between server and nodes, of every federated method.

Server: a real node's answer is damaged, unpacked, inspected and folded beside a sound one. Node: a real server's
letters are damaged and handled. Damage knows the structure: heads are edited as JSON, uploads and downloads as headers
and arrays (types, shapes, lengths, numbers), and all of it also as plain bytes.
"""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from fedrec.core.method import Method
from fedrec.core.misfit import Misfit
from fedrec.core.wire import WireError
from fedrec.deploy.messages.envelope import (
    Plain,
    fault_in,
    pack_answer,
    pack_ask,
    pack_hello,
    pack_meet,
    pack_selected,
    unpack_answer,
    unpack_hello,
)
from fedrec.deploy.messages.letters import Answer, Ask, Meet, Selected
from fedrec.deploy.messages.plain_values import BadLetter, parse
from fedrec.deploy.node.node import Node, UnknownRun
from fedrec.deploy.node.worker import Worker
from fedrec.deploy.server.exchange import Taken
from fedrec.deploy.server.federation import Federation
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.laws.nodes import RUN, federation
from fedrec.methods.registry import federated, find
from fuzz_runner import Outcome

REFUSALS = (BadLetter, WireError, Misfit, BadInput, UnknownRun, FloatingPointError)
"""What a damaged message may raise; the last where a node trained and sends nothing, since it would not be finite."""
SMALL = {"dim": 4, "epochs": 1, "warmup": 1}
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fedavg", {"compress": "topk", "upload_form": "rows", "precision": "float16"}),
    ("fedavg", {"compress": "lowrank", "compress_keep": 0.25}),
    ("fedncf", {"compress": "int8"}),
    ("fedavg", {"compress": "int8", "upload_form": "rows"}),
    ("perfedrec", {"compress": "topk"}),
    ("fed3cr", {"compress": "topk"}),
    ("feddae", {"gradients": "dense", "upload_form": "rows"}),
    ("feddae", {"local_encoder": "averaged"}),
    ("fedca", {"neighbours": 4, "rows": 16}),
    ("fedca", {"variant_complementarity": "code", "r": 1.0}),
    ("fedcia", {"backbone": "gfcf"}),
    ("fedcia", {"form": "truncated"}),
)
ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 7, 2**31 - 1, 2**31, 2**63, 2**70, -(2**70), 1e9, 1e308, -1e308, float("nan"),
    float("inf"), 0.5, "", "x", "x" * 5000, "../../etc", "\x00", [], {}, [1, 2, 3], [[[[]]]],
    {"a": {"b": 1}}, [0] * 3000,
)  # fmt: skip
NUMBERS = (
    3e38,
    -3e38,
    1e20,
    1e12,
    1e9,
    -1e9,
    1e6,
    -1.0,
    0.0,
    1.0,
    np.nan,
    np.inf,
    -np.inf,
    2**31 - 1,
    2**31,
    -(2**31),
    2**62,
)
KINDS = (
    "F16",
    "F32",
    "F64",
    "BF16",
    "I8",
    "I16",
    "I32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "BOOL",
    "F8_E4M3",
    "C64",
    "X",
    7,
)


@dataclass
class Case:
    """One method between two nodes, with one sound exchange of messages."""

    name: str
    server: Federation
    asks: dict[str, Ask]
    answers: dict[str, Answer]
    sound: Taken
    """What the server made of the first node's answer."""
    meet: Meet
    hello: Plain
    worker: Worker


class Messages:
    """See the module."""

    def __init__(self) -> None:
        self.doing = ""
        self.cases: list[Case] = []

    def prepare(self, folder: Path) -> None:
        warnings.simplefilter("ignore")
        chosen = self.chosen()
        self.cases = [case(folder / f"case{n}", name, dict(more)) for n, (name, more) in enumerate(chosen)]

    def chosen(self) -> list[tuple[str, dict[str, Any]]]:
        """Methods, and settings that change what they send."""
        return [(name, {}) for name in federated()] + list(VARIANTS)

    def attempt(self, draw: random.Random) -> Outcome:
        one = draw.choice(self.cases)
        side = draw.choices(("answer", "hello", "ask", "meet", "selected"), (80, 2, 14, 2, 2))[0]
        self.doing = f"{one.name} {side}"
        try:
            outcome: Outcome = getattr(self, f"_{side}")(one, draw)
            return outcome
        except REFUSALS:
            return "refused"

    def _answer(self, one: Case, draw: random.Random) -> Outcome:
        plain = opened(damaged(pack_answer(one.answers["node1"]), draw, self._note))
        if fault_in(plain) is not None:
            return "refused"
        answer = unpack_answer(plain)
        taken = one.server._checked("node1", one.asks["node1"], answer)
        _, culprits = one.server._folded({"node0": one.sound, "node1": taken}, 2, 2)
        for reason in culprits.values():
            if "cannot be folded" in reason:
                raise AssertionError(f"passed inspection, and {reason}")
        if "node0" in culprits:
            raise AssertionError("a sound answer was left out")
        return "refused" if culprits else "accepted"

    def _hello(self, one: Case, draw: random.Random) -> Outcome:
        unpack_hello(opened(damaged(one.hello, draw, self._note)))
        return "accepted"

    def _ask(self, one: Case, draw: random.Random) -> Outcome:
        return self._handled(one, pack_ask(one.asks["node1"]), draw)

    def _meet(self, one: Case, draw: random.Random) -> Outcome:
        return self._handled(one, pack_meet(Meet("met-1", one.meet.settings, one.meet.catalogue)), draw)

    def _selected(self, one: Case, draw: random.Random) -> Outcome:
        return self._handled(one, pack_selected(Selected(RUN, 1)), draw)

    def _handled(self, one: Case, plain: Plain, draw: random.Random) -> Outcome:
        letter = opened(damaged(plain, draw, self._note))
        one.worker.nodes.clear()
        one.worker._handle(letter)
        return "accepted"

    def _note(self, what: str) -> None:
        self.doing += f" {what}"


class FewMessages(Messages):
    """Some methods, for a short run."""

    def chosen(self) -> list[tuple[str, dict[str, Any]]]:
        return [("fedavg", {}), ("fedmf", {}), ("fedspectral", {}), ("pfedgraph", {}), *VARIANTS[:4]]


def case(folder: Path, name: str, more: dict[str, Any]) -> Case:
    """A method on six clients of the demo world, on two nodes."""
    kind = find(name)
    assert issubclass(kind, Method)
    own = {key: value for key, value in SMALL.items() if key in kind.Settings.model_fields}
    given = {"rounds": 3, "clients": 6, "settings": {**own, **kind.small, **more}}
    settings = resolve(name, given)
    found: dict[str, tuple[Ask, Answer]] = {}

    def watch(node: str, ask: Ask, work: Callable[[], Answer]) -> Answer:
        answer = work()
        found[node] = (ask, answer)
        return answer

    server, _, _, exchange = federation(folder, settings, 2, spoil=watch)
    server._exchange(np.arange(6), evaluate=1, train=2)
    asks, answers = {n: ask for n, (ask, _) in found.items()}, {n: answer for n, (_, answer) in found.items()}
    worker = Worker(exchange.options["node1"])
    meet = Meet(RUN, settings.model_dump_json(), ())
    hello = pack_hello(Node(exchange.options["node1"], RUN).meet(meet))
    sound = server._checked("node0", asks["node0"], answers["node0"])
    label = " ".join([name, *(f"{k}={v}" for k, v in more.items())])
    return Case(label, server, asks, answers, sound, meet, hello, worker)


def opened(letter: tuple[str, dict[str, Any]]) -> Plain:
    """As a letter is read from Flower's records."""
    text, blocks = letter
    return parse(text), blocks


def damaged(plain: Plain, draw: random.Random, note: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    """A letter with one to three faults: its head as text, and its blocks."""
    head, blocks = json.loads(json.dumps(plain[0])), dict(plain[1])
    text: str | None = None
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        how = draw.choices(("head", "text", "blocks", "message"), (25, 5, 10, 60))[0]
        if how == "message" and not blocks:
            how = "head"
        note(how)
        if how == "head":
            edit_head(head, draw)
        elif how == "text":
            text = edit_text(json.dumps(head), draw)
        elif how == "blocks":
            edit_blocks(blocks, draw)
        else:
            name = draw.choice(sorted(blocks))
            if isinstance(blocks[name], bytes):
                blocks[name] = edit_message(blocks[name], draw, note)
    return json.dumps(head) if text is None else text, blocks


def edit_head(head: dict[str, Any], draw: random.Random) -> None:
    """Change, remove or add a value somewhere in the head."""
    place: Any = head
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = draw.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and draw.random() < 0.8:
            place = place[key]
            continue
        how = draw.random()
        if how < 0.15:
            del place[key]
        elif how < 0.25 and isinstance(place, dict):
            place[draw.choice(("extra", "HR@99", "kind", "x" * 300))] = copy.deepcopy(place[key])
        elif how < 0.4 and isinstance(place[key], int | float):
            place[key] = place[key] * draw.choice((-1, 0, 2, 1e6, 1e300)) + draw.choice((0, 1, -1))
        else:
            place[key] = copy.deepcopy(draw.choice(ODD))
        return
    if isinstance(place, dict):
        place["extra"] = copy.deepcopy(draw.choice(ODD))
    else:
        place.append(copy.deepcopy(draw.choice(ODD)))


def edit_text(text: str, draw: random.Random) -> str:
    how = draw.randrange(6)
    if how == 0:
        return text[: draw.randrange(len(text))]
    if how == 1:
        return "[" * 20_000 + text
    if how == 2:
        return '{"a":' * 3000 + "1" + "}" * 3000
    if how == 3:
        return text.replace("0", "9" * 5000, 1)
    if how == 4:
        return text + " " * (2 << 20)
    return flipped(text.encode(), draw).decode(errors="replace")


def edit_blocks(blocks: dict[str, Any], draw: random.Random) -> None:
    how = draw.randrange(5)
    name = draw.choice(sorted(blocks)) if blocks else "upload0"
    if how == 0:
        blocks.pop(name, None)
    elif how == 1:
        blocks[draw.choice(("upload1", "upload7", "extra", "x" * 1000))] = blocks.get(name, b"")
    elif how == 2:
        blocks[name] = draw.choice((b"", b"\x00" * 8, b"\xff" * 16, b"x", None, "text", 7))
    elif how == 3 and isinstance(blocks.get(name), bytes):
        blocks[name] = blocks[name] * 2
    elif isinstance(blocks.get(name), bytes):
        blocks[name] = flipped(blocks[name], draw)


def flipped(data: bytes, draw: random.Random) -> bytes:
    """Bits flipped, or the end cut off."""
    if not data:
        return b"\x00"
    if draw.random() < 0.2:
        return data[: draw.randrange(len(data))]
    changed = bytearray(data)
    near = min(len(data), 2000) if draw.random() < 0.5 else len(data)  # headers are at the beginning
    for _ in range(draw.choice((1, 1, 2, 8))):
        changed[draw.randrange(near)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def edit_message(data: bytes, draw: random.Random, note: Callable[[str], None]) -> bytes:
    """A safetensors message with other arrays, other words about itself, or a header that lies."""
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        about = json.loads(header["__metadata__"]["fedrec"])
        arrays = load(data)
    except Exception:  # positions, keys: plain numbers; or damaged already
        return odd_numbers(data, draw) if draw.random() < 0.5 else flipped(data, draw)
    how = draw.choices(("array", "about", "header", "bytes", "bomb"), (60, 10, 15, 5, 10))[0]
    note(how)
    if how == "bytes":
        return flipped(data, draw)
    if how == "header":
        return lying(header, data[8 + size :], draw)
    if how == "about":
        edit_head(about, draw)
    elif how == "bomb":
        bomb(arrays, about, draw)
    else:
        edit_array(arrays, draw)
    return save({n: np.ascontiguousarray(a) for n, a in arrays.items()}, metadata={"fedrec": json.dumps(about)})


def odd_numbers(data: bytes, draw: random.Random) -> bytes:
    numbers = np.frombuffer(data[: len(data) // 8 * 8], "<i8").copy()
    if len(numbers):
        numbers[draw.randrange(len(numbers))] = draw.choice((-1, 0, 1, 10**9, 2**62, -(2**62)))
    return numbers.tobytes()


def lying(header: dict[str, Any], behind: bytes, draw: random.Random) -> bytes:
    """The same bytes under a header with another type, shape or place."""
    names = [name for name in header if name != "__metadata__"]
    if names:
        entry = header[draw.choice(names)]
        what = draw.choice(("dtype", "shape", "data_offsets"))
        if what == "dtype":
            entry[what] = draw.choice(KINDS)
        elif what == "shape" and draw.random() < 0.5:
            shape = list(entry[what])
            entry[what] = draw.choice(
                ([*shape, 1], [0, *shape], [2**40, 0], [1] * 12, [*shape[:-1], -1], [1.5], shape[::-1])
            )
        else:
            entry[what] = [
                draw.choice((0, 1, 2, 7, -1, 2**31, 2**62, 2**70, None, "1")) for _ in range(draw.randrange(4))
            ]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    length = len(text) if draw.random() < 0.9 else draw.choice((0, 2**40, 2**63, len(text) - 1))
    return length.to_bytes(8, "little") + text + behind


def edit_array(arrays: dict[str, Any], draw: random.Random) -> None:
    """Other numbers, another type, another shape, a field too few or too many."""
    if not arrays:
        arrays["extra"] = np.zeros(1, np.float32)
        return
    name = draw.choice(sorted(arrays))
    array = arrays[name]
    how = draw.choices(("number", "all", "type", "shape", "drop", "add", "rename"), (45, 15, 10, 15, 5, 5, 5))[0]
    with np.errstate(all="ignore"):
        if how in ("number", "all"):
            value = np.array([draw.choice(NUMBERS)]).astype(array.dtype)[0]
            changed = array.copy().reshape(-1)
            if how == "all":
                changed[:] = value
            for _ in range(draw.choice((1, 1, 3))):
                if len(changed):
                    changed[draw.randrange(len(changed))] = value
            arrays[name] = changed.reshape(array.shape)
        elif how == "type":
            kinds = (
                np.float16,
                np.float32,
                np.float64,
                np.int8,
                np.int32,
                np.int64,
                np.uint8,
                np.uint32,
                np.uint64,
                bool,
            )
            arrays[name] = array.astype(draw.choice(kinds))
    if how == "shape":
        array = np.atleast_1d(array)
        shapes = [array[:-1], array[:0], array[None], array.reshape(-1), np.concatenate([array, array])]
        shapes += [array[..., :0], array[..., None], array.T, np.zeros((*array.shape, 0), array.dtype)]
        arrays[name] = draw.choice(shapes)
    elif how == "drop":
        del arrays[name]
    elif how == "add":
        arrays[draw.choice(("extra", f"{name}.left", f"{name}[x]", "rows.dense", "networks[]", "a[b"))] = array
    elif how == "rename":
        arrays[draw.choice(("extra", name + "x", name.replace(".", "["), "sizes"))] = arrays.pop(name)


def bomb(arrays: dict[str, Any], about: dict[str, Any], draw: random.Random) -> None:
    """A few bytes that claim to stand for very many numbers."""
    field = draw.choice(sorted({name.split(".")[0] for name in arrays} or {"rows"}))
    for name in [name for name in arrays if name.split(".")[0] == field]:
        del arrays[name]
    huge = draw.choice((1 << 14, 1 << 20, 1 << 31, 1 << 40))
    kind = draw.choice(("LowRank", "TopK", "Quantised", "QuantisedRows", "dense", "rows"))
    one, empty, first = np.zeros(1, np.float32), np.zeros(0, np.float32), np.array([0, 1])
    about.setdefault("nested", {})
    if not isinstance(about["nested"], dict):
        about["nested"] = {}
    made: dict[str, Any] = {}
    if kind == "LowRank":
        rank = draw.choice((0, 1))
        few = min(huge, 1 << 14) if rank else huge
        made = {"left": np.zeros((1, few, rank), np.float32), "right": np.zeros((1, rank, few), np.float32)}
    elif kind == "TopK":
        shape = draw.choice(([huge], [huge, 4], [huge, huge], [-1, 4], []))
        made = {"start": first, "values": one, "shape": np.array(shape), "table": np.array([draw.random() < 0.5])}
        made["indices"] = np.array([draw.choice((0, 5, -1, 2**31 - 1))], np.int32)
    elif kind == "Quantised":
        made = {"codes": np.zeros((huge, 0, 4), np.int8), "scale": empty, "table": np.array([True])}
    elif kind == "QuantisedRows":
        made = {"start": first, "ids": np.zeros(1, np.int32), "codes": np.zeros((1, 4), np.int8), "scale": one}
        made["catalogue"] = np.array([huge])
    elif kind == "dense":
        whole = draw.choice(((huge, 0, 4), (1, huge, 0), (huge, 1, 0)))
        made = {"dense": np.zeros(whole, np.float32), "n_items": np.array([huge])}
    else:
        made = {"start": first, "ids": np.zeros(1, np.int32), "values": np.zeros((1, 4), np.float32)}
        made["n_items"] = np.array([huge])
    if kind in ("LowRank", "TopK", "Quantised", "QuantisedRows"):
        about["nested"][field] = kind
    arrays |= {f"{field}.{name}": array for name, array in made.items()}

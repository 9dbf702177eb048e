"""``fedrec check``: the page's example method under the laws, and variants of it that break one each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Cli
from fedrec.methods import registry

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture
def example() -> str:
    """The code of the method in CONTRIBUTING.md."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert found is not None
    return found.group(1)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Nothing that a checked file registers stays."""
    known, modules = registry.registered(), set(sys.modules)
    yield
    for name in set(registry.registered()) - set(known):
        registry.forget(name)
    for name in set(sys.modules) - modules:
        if name.startswith("fedrec_checked_"):
            del sys.modules[name]


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_example_of_the_page_obeys_every_law(fedrec: Cli, example: str, tmp_path: Path) -> None:
    (tmp_path / "biased.py").write_text(example)
    done = fedrec("check", "biased.py")
    assert done.status == 0, done.out
    assert "biased under the laws" in done.out
    for number in range(1, 9):
        assert f"biased: law {number} held" in done.err
    assert "BROKEN" not in done.err


BROKEN: dict[str, tuple[Any, ...]] = {
    "its upload carries the user vectors": (
        "6",
        "private field 'users' leave",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    users: np.ndarray = per_user()\n"),
        ("Sent(trained.rows)", "Sent(trained.rows, trained.users)"),
    ),
    "its upload carries the user vectors of the round before": (
        "6",
        "private field 'users' leave the client in the upload, as they were before local work",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    users: np.ndarray = per_user()\n"),
        ("        samples = draw(", "        old = private.users.copy()\n        samples = draw("),
        ("Sent(trained.rows)", "Sent(trained.rows, old)"),
    ),
    "its upload carries multiples of the user vectors": (
        "6",
        "multiples of the private field 'users' leave",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    users: np.ndarray = per_user()\n"),
        ("Sent(trained.rows)", "Sent(trained.rows, -0.3 * trained.users)"),
    ),
    "its upload carries multiples of the private biases": (
        "6",
        "multiples of the private field 'bias' leave",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    hidden: np.ndarray = per_client()\n"),
        ("Sent(trained.rows)", "Sent(trained.rows, 2 * bias)"),
    ),
    "its upload carries the private biases": (
        "6",
        "private field 'bias' leave",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    hidden: np.ndarray = per_client()\n"),
        ("Sent(trained.rows)", "Sent(trained.rows, bias)"),
        ("np.add.at(bias, (owner, block.train.values), self.settings.bias_rate)", "bias += trained.loss[:, None]"),
        (
            "np.zeros((block.n_clients, world.n_items), np.float32)",
            "keyed.uniform(keys.clients(block, 'b'), world.n_items)",
        ),
    ),
    "its upload marks the items that its users have": (
        "6",
        "private field 'bias' leave",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    hidden: np.ndarray = per_client()\n"),
        ("Sent(trained.rows)", "Sent(trained.rows, bias)"),
    ),
    "its upload marks them with whole numbers": (
        "6",
        "private field 'bias' leave",
        ("rows: Rows = per_client()\n", "rows: Rows = per_client()\n    hidden: np.ndarray = per_client()\n"),
        ("Sent(trained.rows)", "Sent(trained.rows, bias)"),
        (
            "np.zeros((block.n_clients, world.n_items), np.float32)",
            "np.zeros((block.n_clients, world.n_items), np.int8)",
        ),
        (
            "np.add.at(bias, (owner, block.train.values), self.settings.bias_rate)",
            "bias[owner, block.train.values] = 1",
        ),
    ),
    "its scores leave out an item": (
        "2",
        "must be one row a user with",
        ("return scores if items is None", "return scores[:, :-1] if items is None"),
    ),
    "its scores of some items are others": (
        "1",
        "the score at",
        ("else np.take_along_axis(scores, items, axis=1)", "else -np.take_along_axis(scores, items, axis=1)"),
    ),
    "what is private can be encoded": (
        "6",
        "private state (Kept) can be encoded",
        ("class Kept(Private):", "class Kept(Upload):"),
    ),
    "a mean over blocks depends on their size": (
        "1",
        "in blocks of 1",
        (
            "    def finish(self, server, sums, keys):",
            "    def aggregate(self, server, replies, keys):\n"
            "        total, parts = np.zeros(server.items.shape), 0\n"
            "        for reply in replies:\n"
            "            np.add.at(total, reply.upload.rows.ids, reply.upload.rows.values)\n"
            "            parts += 1\n"
            "        return replace(server, items=(server.items + total / max(1, parts)).astype(np.float32))\n\n"
            "    def finish(self, server, sums, keys):",
        ),
    ),
    "its loss is never a number": (
        "3",
        "is not finite after local training",
        ("Sent(trained.rows), trained.loss)", "Sent(trained.rows), trained.loss * np.nan)"),
    ),
    "it writes into what it received": (
        "1",
        "wrote into its download",
        ("        samples = draw(", "        download.items[0] += 0.01\n        samples = draw("),
    ),
    "it takes a user for a client": (
        "1",
        "where clients hold several users it stops with IndexError",
        ("block.client_of_user[block.train.owners]", "block.train.owners"),
    ),
    "it gives users' items to other clients": (
        "1",
        "in blocks of 1, where clients hold several users",
        ("block.client_of_user[block.train.owners]", "np.minimum(block.train.owners, block.n_clients - 1)"),
    ),
    "it gives users' items to clients by their place": (
        "4",
        "in another order, where clients hold several users",
        ("block.client_of_user[block.train.owners]", "np.minimum(block.train.owners, block.n_clients - 1)"),
    ),
    "it keeps momentum on itself": (
        "7",
        "stopped and resumed",
        (
            "        return replace(server, items=(server.items + "
            'sums["items"] / max(1, sums.count)).astype(np.float32))',
            "        self.last = 0.9 * getattr(self, 'last', 0.0) + sums['items'] / max(1, sums.count)\n"
            "        return replace(server, items=(server.items + self.last).astype(np.float32))",
        ),
    ),
    "who is absent changes too": (
        "5",
        "of absent clients",
        (
            "        bias = private.bias.copy()",
            "        bias = private.bias.copy()\n"
            "        everyone = private.bias.base\n"
            "        seen.append(private)\n"
            "        for other in seen:\n"
            "            other.bias[:] += 1\n",
        ),
        ("@register\n", "seen = []\n\n\n@register\n"),
    ),
    "its draws depend on the order of clients": (
        "4",
        "in another order",
        (
            "        bias = private.bias.copy()",
            "        bias = private.bias + np.random.default_rng(0).random(private.bias.shape).astype(np.float32)",
        ),
    ),
    "the same seed is not enough": (
        "3",
        "run again with the same seed",
        (
            "        bias = private.bias.copy()",
            "        bias = private.bias + np.random.default_rng().random(private.bias.shape).astype(np.float32)",
        ),
    ),
    "its sums depend on the number of threads": (
        "3",
        "with five threads",
        (
            "        bias = private.bias.copy()",
            "        from fedrec.threads import thread_count\n"
            "        parts = np.array_split(trained.users.ravel(), thread_count())\n"
            "        bias = private.bias + sum(part.sum() for part in parts)",
        ),
    ),
    "it learns nothing from others": (
        "8",
        "popularity has",
        ('items=(server.items + sums["items"] / max(1, sums.count)).astype(np.float32)', "items=server.items"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_method_is_found(fedrec: Cli, example: str, tmp_path: Path, what: str) -> None:
    number, says, *pairs = BROKEN[what]
    (tmp_path / "biased.py").write_text(changed(example, *pairs))
    done = fedrec("check", "biased.py", "--laws", number)
    assert done.status == 1, done.out
    assert f"law {number} BROKEN" in done.err
    assert says in " ".join(done.out.split()), done.out
    assert "Traceback" not in done.err


def test_a_momentum_on_the_method_is_named(fedrec: Cli, example: str, tmp_path: Path) -> None:
    _, _, *pairs = BROKEN["it keeps momentum on itself"]
    (tmp_path / "biased.py").write_text(changed(example, *pairs))
    done = fedrec("check", "biased.py", "--laws", "1", "--quiet")
    assert done.status == 1
    assert done.err == ""
    assert "put 'last' on the method" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("gone.py", None, "is not a file"),
        ("notes.txt", "hello", "is not a Python file"),
        ("empty.py", "x = 1\n", "has no method in it"),
        ("half.py", "x = 1\ndef f(:\n", "half.py:2 cannot be imported: SyntaxError"),
        ("needs.py", "import a_package_that_nobody_has\n", "ModuleNotFoundError"),
        ("stops.py", "raise SystemExit(3)\n", "stops.py:1 cannot be imported: SystemExit"),
        (
            "lost.py",
            "from fedrec.core.method import Method\n\n\nclass Mine(Method):\n    name = 'mine'\n",
            "defines Mine but registers nothing",
        ),
        (
            "central.py",
            "from fedrec.methods.registry import register\n"
            "from fedrec.methods.references.controls import Popularity\n\n\n"
            "@register\nclass Mine(Popularity):\n    name = 'mine'\n",
            "centralised references only",
        ),
    ],
)
def test_bad_input_is_one_line(fedrec: Cli, tmp_path: Path, name: str, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    done = fedrec("check", name)
    assert done.status == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("laws", ["12", "one", ","])
def test_an_unknown_law_is_bad_input(fedrec: Cli, example: str, tmp_path: Path, laws: str) -> None:
    (tmp_path / "biased.py").write_text(example)
    done = fedrec("check", "biased.py", "--laws", laws)
    assert done.status == 2
    assert "a method has the laws 1, 2, 3, 4, 5, 6, 7, 8" in done.err

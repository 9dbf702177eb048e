"""The peers, an environment for each, and a running worker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from talk import Array

HERE = Path(__file__).resolve().parent
TORCH = "torch==2.13.0"
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    # newer ones lack what FedJAX needs for pmap
    "fedjax": (
        "fedjax==0.0.17",
        "jax[cpu]==0.4.31",
        "jaxlib==0.4.31",
        "dm-haiku==0.0.12",
        "optax==0.2.3",
        "chex==0.1.86",
        "numpy==2.0.2",
        "scipy==1.14.1",
    ),
    "pfl": ("pfl==0.6.0", TORCH),
    "flower": ("flwr[simulation]==1.41.0", TORCH),
}
"""What each peer's environment is made of."""


class Failed(Exception):
    """A peer that cannot be measured, in one line."""


@dataclass(frozen=True)
class Seconds:
    """What a round takes, by the clock and of all cores together."""

    clock: float
    cpu: float | None


@dataclass(frozen=True)
class Peer:
    """One way to make the round."""

    name: str
    environment: str  # "" for our own
    worker: str  # a file beside this one, and what it is called with
    optimizer: str = ""  # the only one it can, if so
    alone: bool = True  # works in one process, whose CPU seconds are all that it takes

    def can(self, optimizer: str) -> bool:
        return self.optimizer in ("", optimizer)


PEERS = (
    Peer("FedJAX jit", "fedjax", "with_fedjax.py jit"),
    Peer("FedJAX jit, rows by hand", "fedjax", "with_fedjax.py jit rows", "sgd"),
    Peer("FedJAX pmap", "fedjax", "with_fedjax.py pmap"),
    Peer("pfl-research", "pfl", "with_pfl.py"),
    Peer("Flower simulation", "flower", "with_flower.py", alone=False),
    Peer("naive loop", "", "with_loop.py"),
)


def python_of(peer: Peer, envs: Path) -> Path:
    """The interpreter of a peer's environment, which is made where it is not there yet or is of other versions."""
    if not peer.environment:
        return Path(sys.executable)
    wanted = ENVIRONMENTS[peer.environment]
    home = envs / peer.environment
    python, stamp = home / "bin" / "python", home / "made-of.json"
    if python.exists() and stamp.exists() and json.loads(stamp.read_text()) == list(wanted):
        return python
    print(f"making the environment {home} of {', '.join(wanted)}", flush=True)
    try:
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as problem:
        text = str(problem.stderr or problem.stdout or problem)
        raise Failed(f"its environment could not be made ({_last_line(text)})") from None
    except OSError as problem:
        raise Failed(f"its environment could not be made ({problem})") from None
    stamp.write_text(json.dumps(list(wanted)))
    return python


class Worker:
    """A peer's process, ready to make rounds."""

    def __init__(self, peer: Peer, python: Path, work: Path, folder: Path) -> None:
        file, *options = peer.worker.split()
        self.errors = folder / f"{file}-{'-'.join(options)}.log"
        self.table = folder / f"{file}-{'-'.join(options)}.npy"
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [str(python), "-P", str(HERE / file), str(work), *options],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder,
                env={**_plain_environment(), "PYTHONPATH": str(HERE)},
            )  # fmt: skip
        self.alone = peer.alone
        self._answer()

    def round(self) -> tuple[Array, Seconds]:
        """One round: the item table and what it took the worker."""
        assert self.process.stdin is not None
        with suppress(OSError):  # it has ended: the answer says why
            print(self.table, file=self.process.stdin, flush=True)
        answer = self._answer()
        return np.load(self.table), Seconds(answer["clock"], answer["cpu"] if self.alone else None)

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise Failed(f"it stopped ({_last_line(self.errors.read_text(encoding='utf-8', errors='replace'))})")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """No more requests: the worker ends by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _plain_environment() -> dict[str, str]:
    """Ours without what would lead another environment to our packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"

"""A node's own files for one run. Every file is whole at every moment, whatever kills the process.

    job.json               settings and catalogue, as the server said when they met
    share.safetensors      the node's data under the protocol
    names.json             ids of its users, for recommendations
    secret.json            what its clients' starts and draws are made from; the server never learns it
    state-R.safetensors    private state after round R: the last round the server took, the one before, the newest
    answer.safetensors     the last answer: a repeated message is answered with it, not worked on twice
    release-R.safetensors  the answer to round R where its noise may be drawn once only: sent again, never made again
    judged-R.safetensors   private state when round R was evaluated, and
    judged-R.download.safetensors   the download it was evaluated with: together the model of round R
    judged-R.users         test metrics of every user at round R; stays here
    selected.json          which round the run selected

Private state is written before an answer is sent, so what the server takes is never lost here. Each file carries its
own checksum (:mod:`fedrec.runs.sealed`, :mod:`fedrec.runs.state_file`) and can be read by the node's user alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core.state import expect
from fedrec.deploy.messages.letters import Answer
from fedrec.deploy.processes import one_at_a_time
from fedrec.evaluation.sums import MetricSums
from fedrec.runs.atomic import clear_leftovers, private_folder, write_text
from fedrec.runs.sealed import read_sealed_json, sealed_json, warn_unsealed
from fedrec.runs.state_file import load_state, save_state


class NodeStore:
    """Reads and writes one run's files on a node."""

    def __init__(self, folder: Path, run: str) -> None:
        if not re.fullmatch(r"[0-9a-z-]{1,64}", run):
            raise ValueError(f"{run!r} does not name a run")  # it comes over the wire and names a folder
        self.path = folder / run

    def create(self) -> None:
        private_folder(self.path.parent, mark="flower")
        private_folder(self.path, mark="job.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time, even where an old one outlived its SuperNode for a moment."""
        with one_at_a_time(self.path / ".lock"):
            clear_leftovers(self.path)
            yield

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        write_text(self.path / name, sealed_json(value), private=True)

    def read_json(self, name: str) -> dict[str, Any]:
        return read_sealed_json(self.path / name)

    def write(self, name: str, value: Any, **about: str) -> None:
        """Nested arrays as one safetensors file."""
        save_state(self.path / name, value, about, private=True)

    def read(self, name: str, kind: Any = Any) -> tuple[Any, dict[str, Any]]:
        """A value of this type, if its file is whole, and what was said about it."""
        return load_state(self.path / name, expect(kind))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Bytes as an array, in a file that carries a checksum."""
        self.write(f"{name}.safetensors", {"bytes": np.frombuffer(data, np.uint8)})

    def read_bytes(self, name: str) -> bytes:
        if not self.has(f"{name}.safetensors"):  # 0.1.0 wrote them bare
            warn_unsealed(self.path)
            return (self.path / name).read_bytes()
        found: bytes = self.read(f"{name}.safetensors", dict[str, np.ndarray])[0]["bytes"].tobytes()
        return found

    def link(self, existing: str, name: str) -> None:
        """A second name for a file that is never changed in place."""
        temporary = self.path / f".{name}.link.tmp"
        temporary.unlink(missing_ok=True)
        os.link(self.path / existing, temporary)
        os.replace(temporary, self.path / name)

    def keep_answer(self, digest: str, answer: Answer, who: str = "") -> None:
        parts = {str(i): np.frombuffer(data, np.uint8) for i, data in enumerate(answer.uploads)}
        plain = json.dumps(answer.about())
        self.write("answer.safetensors", {"parts": parts, "plain": plain}, digest=digest, who=who)

    def answer(self, digest: str) -> Answer | None:
        """The answer to exactly this message, where it was already given."""
        if not self.has("answer.safetensors"):
            return None
        answer, about = self._answer("answer.safetensors")
        return answer if about.get("digest") == digest else None

    def released(self, round: int) -> tuple[Answer, str] | None:
        """The answer to a round that was noised once and for all, and whose it is."""
        name = f"release-{round}.safetensors"
        if not self.has(name):
            return None
        answer, about = self._answer(name)
        return answer, str(about.get("who", ""))

    def _answer(self, name: str) -> tuple[Answer, dict[str, Any]]:
        found, about = self.read(name, dict[str, Any])
        plain = json.loads(found["plain"])
        answer = Answer(
            uploads=tuple(found["parts"][str(i)].tobytes() for i in range(len(plain["counts"]))),
            counts=tuple(plain["counts"]),
            loss=plain["loss"],
            valid=MetricSums.from_dict(plain["valid"]),
            test=MetricSums.from_dict(plain["test"]),
        )
        return answer, about

    def states(self) -> list[int]:
        """Rounds of which private state is here."""
        return [int(found[1]) for f in self.path.iterdir() if (found := re.fullmatch(r"state-(\d+)\..*", f.name))]

    def prune(self, states: set[int], evaluated: set[int]) -> None:
        """Remove states and evaluated models of other rounds."""
        for file in self.path.iterdir():
            found = re.fullmatch(r"(state|release|judged)-(\d+)\..*", file.name)
            if found and int(found[2]) not in (evaluated if found[1] == "judged" else states):
                file.unlink(missing_ok=True)

"""A node with a witness: every message in and out is kept beside it, and it can be held up.

A node whose folder has a file ``hold-R`` says ``held`` and waits in round R until it is killed; one that has a file
``hold-step-S`` does so in step S of a secure sum.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from fedrec.deploy.flower.node_process import Handle, start


def keep(folder: Path, kind: str, plain: Any) -> None:
    """Everything in a message: the head as text, the blocks as bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{time.time_ns()}-{kind}"
    head, blocks = plain
    for name, data in blocks.items():
        (folder / f"{stem}-blocks-{name}.bin").write_bytes(data)
    (folder / f"{stem}.txt").write_text(f"head.json={json.dumps(head)}")


def watched(config: dict[str, Any], handle: Handle) -> Handle:
    folder = Path(config["folder"])

    def answer(plain: Any) -> Any:
        head = plain[0]
        held = folder / (f"hold-step-{head['step']}" if head.get("kind") == "step" else f"hold-{head.get('train')}")
        while held.exists():
            held.with_name("held").touch()
            time.sleep(0.1)
        keep(folder / "witness", "in", plain)
        said = handle(plain)
        keep(folder / "witness", "out", said)
        return said

    return answer


if __name__ == "__main__":
    start(watched)

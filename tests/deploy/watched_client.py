"""The node's app with a witness: every message in and out is kept beside it, and a node can be held up.

A node whose folder has a file ``hold-R`` says ``held`` and waits in round R until it is killed.
"""

from __future__ import annotations

import time
from pathlib import Path

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedrec.deploy.client_app import reply
from fedrec.deploy.records import from_records

app = ClientApp()


def keep(folder: Path, kind: str, content: RecordDict) -> None:
    """Everything in a message: configuration as text, arrays as bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{time.time_ns()}-{kind}"
    text = []
    for name, record in content.items():
        for key, value in record.items():
            if hasattr(value, "data"):
                stem.with_name(f"{stem.name}-{name}-{key}.bin").write_bytes(value.data)
            else:
                text.append(f"{name}.{key}={value}")
    stem.with_name(f"{stem.name}.txt").write_text("\n".join(text))


def answer(message: Message, context: Context) -> Message:
    folder = Path(str(context.node_config["folder"]))
    held = folder / f"hold-{from_records(message.content)[0].get('train')}"
    while held.exists():
        held.with_name("held").touch()
        time.sleep(0.1)
    keep(folder / "witness", "in", message.content)
    said = reply(message, context)
    keep(folder / "witness", "out", said.content)
    return said


@app.query()
def query(message: Message, context: Context) -> Message:
    return answer(message, context)


@app.train()
def train(message: Message, context: Context) -> Message:
    return answer(message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    return answer(message, context)

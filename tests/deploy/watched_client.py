"""The node's app with a witness: every message in and out is kept beside it, and a node can be held up.

A node whose folder has a file ``hold-R`` says ``held`` and waits in round R until it is killed.
"""

from __future__ import annotations

import time
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedrec.deploy.client_app import options_of, respond
from fedrec.deploy.grid import unpack_ask

app = ClientApp()


def keep(folder: Any, kind: str, content: RecordDict) -> None:
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


def answer(message: Message, context: Context, query: bool) -> Message:
    options = options_of(context.node_config)
    if not query:
        held = options.folder / f"hold-{unpack_ask(message.content).train}"
        while held.exists():
            held.with_name("held").touch()
            time.sleep(0.1)
    keep(options.folder / "witness", "in", message.content)
    reply = respond(options, message.content, query)
    keep(options.folder / "witness", "out", reply)
    return Message(reply, reply_to=message)


@app.query()
def query(message: Message, context: Context) -> Message:
    return answer(message, context, query=True)


@app.train()
def train(message: Message, context: Context) -> Message:
    return answer(message, context, query=False)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    return answer(message, context, query=False)

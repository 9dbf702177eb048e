"""What Flower starts on a node for every message. Imports stay lean: a new process pays them each time."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedrec.deploy.grid import pack_answer, pack_fault, pack_hello, unpack_ask, unpack_word
from fedrec.deploy.letters import Fault, Meet
from fedrec.deploy.node import Node
from fedrec.deploy.share import NodeOptions

app = ClientApp()


def options_of(config: Any) -> NodeOptions:
    """The node's options out of Flower's node configuration."""
    directory, data = config.get("data-dir"), config.get("data")
    return NodeOptions(
        name=str(config["name"]),
        folder=Path(str(config["folder"])),
        data=str(data) if data else None,
        part=int(config.get("part", 0)),
        parts=int(config.get("parts", 1)),
        data_dir=Path(str(directory)) if directory else None,
        repeatable=bool(config.get("repeatable", False)),
    )


def respond(options: NodeOptions, content: RecordDict, query: bool) -> RecordDict:
    """The reply to a message. What went wrong is written here; only its kind leaves the node."""
    try:
        if query:
            word = unpack_word(content)
            node = Node(options, word.run)
            if isinstance(word, Meet):
                return pack_hello(node.meet(word))
            node.settle(word)
            return RecordDict()
        ask = unpack_ask(content)
        return pack_answer(Node(options, ask.run).answer(ask))
    except Exception as problem:
        options.folder.mkdir(parents=True, exist_ok=True)
        with open(options.folder / "errors.log", "a", encoding="utf-8") as handle:
            handle.write(traceback.format_exc() + "\n")
        logging.getLogger("fedrec.deploy").error("%s; see %s", type(problem).__name__, options.folder / "errors.log")
        return pack_fault(Fault(f"{type(problem).__name__} on the node (its errors.log says more)"))


def _reply(message: Message, context: Context, query: bool) -> Message:
    return Message(respond(options_of(context.node_config), message.content, query), reply_to=message)


@app.query()
def query(message: Message, context: Context) -> Message:
    return _reply(message, context, query=True)


@app.train()
def train(message: Message, context: Context) -> Message:
    return _reply(message, context, query=False)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    return _reply(message, context, query=False)

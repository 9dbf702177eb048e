"""What Flower starts on a node for every message. Imports stay lean: a new process pays them each time."""

from __future__ import annotations

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedrec.deploy.plain_values import BadLetter
from fedrec.deploy.records import from_records, to_records
from fedrec.deploy.resident import ask_worker

app = ClientApp()


def reply(message: Message, context: Context) -> Message:
    """Hand the message to the node's worker and send what it says."""
    try:
        letter = from_records(message.content)
    except BadLetter as problem:
        return Message(to_records(({"kind": "fault", "reason": f"BadLetter: {problem}"}, {})), reply_to=message)
    return Message(to_records(ask_worker(dict(context.node_config), letter)), reply_to=message)


@app.query()
def query(message: Message, context: Context) -> Message:
    return reply(message, context)


@app.train()
def train(message: Message, context: Context) -> Message:
    return reply(message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    return reply(message, context)

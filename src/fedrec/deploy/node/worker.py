"""The node's work on a message, whatever brought it."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedrec.core.method import Keys
from fedrec.deploy.messages import envelope
from fedrec.deploy.messages.envelope import Plain
from fedrec.deploy.messages.inspection import Template
from fedrec.deploy.messages.letters import Fault, Meet
from fedrec.deploy.node.news import MARK
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions, Prepare, prepare
from fedrec.privacy.ledger import OwnerPolicy, Withheld
from fedrec.runs.atomic import private_folder, private_opener

log = logging.getLogger("fedrec.deploy")

ENTRIES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("name", "data", "hosted", "device"), str),
    **dict.fromkeys(("folder", "data_dir", "members", "sums_key", "key"), Path),
    **dict.fromkeys(("part", "parts", "memory_mb", "secure_least"), int),
    "secure_colluding": float,
    "repeatable": bool,
}
"""Options that the node's configuration can have, there with dashes in their names; what each is read as."""
LIMITS: dict[str, Callable[[Any], Any]] = {
    field.name: (lambda said: str(said) == "True") if field.default is False else float for field in fields(OwnerPolicy)
}
"""Entries of the node's configuration that are its owner's, and what each is read as."""


def options_of(config: dict[str, Any]) -> NodeOptions:
    """The node's options out of its configuration file; an empty name or path is none."""
    said = {name: (config.get(name.replace("_", "-")), kind) for name, kind in ENTRIES.items()}
    given = {name: kind(v) for name, (v, kind) in said.items() if v or (v is not None and kind not in (str, Path))}
    own = {name: kind(config[name]) for name, kind in LIMITS.items() if name in config}
    return NodeOptions(**given, policy=OwnerPolicy(**own))


def config_of(options: NodeOptions) -> dict[str, Any]:
    """The entries that :func:`options_of` makes these options of, less the owner's limits."""
    given = {name.replace("_", "-"): getattr(options, name) for name in ENTRIES}
    return {key: str(v.resolve()) if isinstance(v, Path) else v for key, v in given.items() if v is not None}


class Worker:
    """Answers messages; keeps what was loaded for a run."""

    def __init__(self, options: NodeOptions, prepare: Prepare = prepare) -> None:
        self.options, self.prepare = options, prepare
        self.nodes: dict[str, Node] = {}

    def handle(self, plain: Plain) -> Plain:
        """The reply to a message. What went wrong is written here; only its kind leaves the node."""
        try:
            return self._handle(plain)
        except Withheld as problem:  # the owner's word, made to be said
            log.warning("withheld: %s", problem)
            return envelope.pack_fault(Fault(str(problem)))
        except Exception as problem:
            folder = self.options.folder
            private_folder(folder)
            with open(folder / "errors.log", "a", encoding="utf-8", opener=private_opener) as handle:
                handle.write(traceback.format_exc() + "\n")
            return envelope.pack_fault(Fault(f"{type(problem).__name__} on the node (its errors.log says more)"))

    def _handle(self, plain: Plain) -> Plain:
        if envelope.kind_of(plain) == "ask":
            ask = envelope.unpack_ask(plain)
            node = self.nodes.get(ask.run) or Node(self.options, ask.run)
            began = time.perf_counter()
            answer = envelope.pack_answer(node.answer(ask))
            self.nodes[ask.run] = node  # only now: runs that were never met are not remembered
            if ask.train:
                seconds = time.perf_counter() - began
                log.info("%sround %d done: %d clients, %.1f s", MARK, ask.train, len(ask.positions), seconds)
            return answer
        if envelope.kind_of(plain) == "step":
            step = envelope.unpack_step(plain)
            node = self.nodes.get(step.run) or Node(self.options, step.run)
            stepped = envelope.pack_stepped(node.step(step))
            self.nodes[step.run] = node
            return stepped
        word = envelope.unpack_word(plain)
        node = Node(self.options, word.run)
        node.prepare = self.prepare
        if isinstance(word, Meet):
            hello = envelope.pack_hello(node.meet(word))
            self.nodes[word.run] = node
            log.info("%staking part in a run of %s, %d rounds", MARK, node.settings.method, node.settings.rounds)
            return hello
        node.select(word)
        log.info("%sthe run is over; round %d was selected", MARK, word.selected)
        return {"kind": "heard"}, {}

    def warm_up(self) -> None:
        """Load and compile what the first round will need, while nobody waits."""
        try:
            for node in list(self.nodes.values()):
                world = node.share.world
                server = node.method.start_server(world, Keys(0, 0))
                Template.of(node.method, server, world, 0)
        except Exception:
            log.warning("could not warm up:\n%s", traceback.format_exc())

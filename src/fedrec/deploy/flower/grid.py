"""The server's side of sending letters over Flower's grid."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from flwr.app import Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError

from fedrec.deploy.admission import Admission, verified
from fedrec.deploy.flower.records import from_records, to_records
from fedrec.deploy.messages import envelope
from fedrec.deploy.messages.envelope import Plain, one_line
from fedrec.deploy.messages.letters import Answer, Ask, Fault, Hello, Meet, Selected, Step, Stepped

log = logging.getLogger("fedrec.deploy")

QUERY, TRAIN, EVALUATE = "query", "train", "evaluate"
LATE, SELDOM = 0.05, 2.0
"""Replies are looked for this share of the time waited so far later, up to so many seconds."""
GRACE = 10.0
"""Seconds that announced replies are waited for once one of their senders is revoked."""
PUSHES = 3
"""Times that sending a message is tried."""
LEFT, REVOKED = "the node left before it answered", "its key was revoked"


@dataclass(eq=False)
class GridExchange:
    """Reaches nodes over Flower's grid. A node is known by the name that it proves when it is met.

    With ``admission`` a name counts only with the signature of the key it belongs to, and only while that key is
    admitted. Without (one machine, no keys), a name that is taken is given to another node only if it hosts the
    very same clients: a node that was started again.

    Flower's own ``send_and_receive`` looks for replies every three seconds; here it is ``poll``.
    """

    grid: Any
    word: Meet
    poll: float = 0.2
    meet_seconds: float = 60.0
    admission: Admission | None = None

    def __post_init__(self) -> None:
        self.hellos: dict[int, Hello] = {}
        self.expected: Callable[[Hello], bool] = lambda hello: True
        """Whether a node is one of this run's; set once the roster is fixed."""
        self.patient = True
        """Whether who does not answer is met again at once; in the middle of a run, later each time."""
        self._silent: dict[int, tuple[float, float]] = {}
        """Until when a node that did not answer is left alone, and for how long that was."""
        self._strangers: dict[int, str] = {}
        self._admitted: dict[str, bytes] = {}

    def online(self) -> set[str]:
        """Nodes that are connected and known; those that came since the last look are met first."""
        ids = set(self.grid.get_node_ids())
        self._forget_revoked()
        now = time.monotonic()
        silent = set() if self.patient else {i for i, (until, _) in self._silent.items() if now < until}
        unknown = sorted(ids - self.hellos.keys() - self._strangers.keys() - silent)
        if unknown:
            self._meet(unknown)
        return {self.hellos[i].name for i in ids if i in self.hellos}

    def absence(self, name: str) -> str:
        """Why a node cannot be reached."""
        return REVOKED if self._revoked(name) else "not connected"

    def _revoked(self, name: str) -> bool:
        return self.admission is not None and self.admission.revoked(name)

    def send(self, asks: Mapping[str, Ask], deadline: float) -> dict[str, Answer | Fault]:
        rounds = {ask.train or ask.evaluate for ask in asks.values()}
        kind = TRAIN if any(ask.train for ask in asks.values()) else EVALUATE
        letters = {name: envelope.pack_ask(ask) for name, ask in asks.items()}
        return self._asked(letters, kind, str(max(rounds, default=0)), deadline, envelope.unpack_answer)

    def step(self, steps: Mapping[str, Step], deadline: float) -> dict[str, Stepped | Fault]:
        letters = {name: envelope.pack_step(step) for name, step in steps.items()}
        return self._asked(letters, QUERY, "step", deadline, envelope.unpack_stepped)

    def _asked(
        self, letters: Mapping[str, Plain], kind: str, group: str, deadline: float, unpack: Callable[[Plain], Any]
    ) -> dict[str, Any]:
        online = set(self.grid.get_node_ids())
        ids = {hello.name: i for i, hello in self.hellos.items() if i in online}
        packed = {name: (ids[name], to_records(letter)) for name, letter in letters.items() if name in ids}
        found = self._round_trip(packed, kind, group, deadline)
        return {name: self._read(name, found.get(name, Fault("not connected")), unpack) for name in letters}

    def select(self, selected: int, deadline: float) -> dict[str, Fault]:
        """Tell every node which round was selected; who did not hear it."""
        online, letter = set(self.grid.get_node_ids()), envelope.pack_selected(Selected(self.word.run, selected))
        letters = {hello.name: letter for i, hello in self.hellos.items() if i in online}
        read = self._asked(letters, QUERY, "selected", deadline, lambda plain: None)
        return {name: reply for name, reply in read.items() if isinstance(reply, Fault)}

    def _meet(self, ids: list[int]) -> None:
        words = {i: replace(self.word, challenge=secrets.token_hex(32)) for i in ids}
        packed = {str(i): (i, to_records(envelope.pack_meet(word))) for i, word in words.items()}
        for key, reply in self._round_trip(packed, QUERY, "meet", self.meet_seconds).items():
            hello = self._read(key, reply, envelope.unpack_hello)
            if isinstance(hello, Fault):
                log.warning("a node that connected could not be met: %s", hello.reason)
                pause = 2 * self._silent.get(int(key), (0.0, self.meet_seconds / 2))[1]
                self._silent[int(key)] = (time.monotonic() + pause, pause)
                continue
            self._silent.pop(int(key), None)
            refusal = self._refusal(hello, words[int(key)])
            if refusal:
                log.warning("node %s calls itself %r and is left out: %s", key, hello.name[:80], refusal)
                self._strangers[int(key)] = hello.name
                continue
            # a node that was restarted may have a new number: the old one is forgotten
            self.hellos = {i: known for i, known in self.hellos.items() if known.name != hello.name}
            self.hellos[int(key)] = hello
            log.info("met %s: %d clients", hello.name, len(hello.client_keys))

    def _refusal(self, hello: Hello, word: Meet) -> str:
        """Why a node that connected is not taken; empty for one that is."""
        if self.admission is not None:
            key = self.admission.nodes().get(hello.name)
            if key is None or not verified(key, hello.claim(word), hello.proof):
                return "that name belongs to another key, or to none"
        else:
            holder = next((known for known in self.hellos.values() if known.name == hello.name), None)
            if holder is not None and not holder.hosts_as(hello):
                return "another node has that name"
        return "" if self.expected(hello) else "it is not one of this run's nodes, or has other clients now"

    def _forget_revoked(self) -> None:
        if self.admission is None:
            return
        admitted = self.admission.nodes()
        if admitted is not self._admitted:  # the list has changed: who was turned away may try again
            self._admitted, self._strangers = admitted, {}
        for number, hello in list(self.hellos.items()):
            if hello.name not in admitted:
                log.warning("%s was revoked and is out", hello.name)
                del self.hellos[number]
                self._strangers[number] = hello.name

    def _round_trip(
        self, packed: dict[str, tuple[int, RecordDict]], kind: str, group: str, deadline: float
    ) -> dict[str, RecordDict | Fault]:
        """Send one message to each, and collect replies until all are there or the deadline has passed.

        Who is revoked meanwhile cannot answer and is not waited for.
        """
        names: dict[str, str] = {}
        for name, (node, content) in packed.items():
            number = self._pushed(node, content, kind, group, deadline)
            if number:
                names[number] = name
        found: dict[str, RecordDict | Fault] = {
            name: Fault("the message could not be sent") for name in packed if name not in names.values()
        }
        began = time.monotonic()
        end = began + deadline
        while names and time.monotonic() < end:
            with pulling_until(end, self.poll, lambda: any(self._revoked(name) for name in names.values())):
                replies = self.grid.pull_messages(list(names))
            for reply in replies:
                name = names.pop(reply.metadata.reply_to_message_id, "")
                if not name:  # a second answer to a message that was answered
                    continue
                if not reply.has_error():
                    found[name] = reply.content
                    continue
                reason = _reason(reply.error, time.monotonic() - began, deadline)
                found[name] = Fault(REVOKED if self._revoked(name) else reason)
            for number in [number for number, name in names.items() if self._revoked(name)]:
                found[names.pop(number)] = Fault(REVOKED)
            if names:
                time.sleep(max(self.poll, min(SELDOM, LATE * (time.monotonic() - began))))
        return found | {name: Fault(f"no answer within {deadline:g} s") for name in names.values()}

    def _pushed(self, node: int, content: RecordDict, kind: str, group: str, deadline: float) -> str:
        """The number of a message that was handed to Flower; empty for one that could not be: nobody else suffers."""
        for _ in range(PUSHES):
            try:
                message = Message(content, dst_node_id=node, message_type=kind, group_id=group, ttl=deadline)
                return next(iter(self.grid.push_messages([message])), "") or ""
            except Exception as problem:  # a server under load loses what is being handed over
                log.warning("a message to node %d could not be sent: %s", node, one_line(problem))
        return ""

    def _read(self, name: str, reply: RecordDict | Fault, unpack: Callable[[Plain], Any]) -> Any:
        if isinstance(reply, Fault):
            return reply
        try:
            plain = from_records(reply)
            fault = envelope.fault_in(plain)
            if fault is not None and fault.reason.startswith("UnknownRun"):
                self.hellos = {i: known for i, known in self.hellos.items() if known.name != name}  # meet again
            return fault or unpack(plain)
        except Exception as problem:  # whatever a broken reply does, the round goes on
            return Fault(f"an answer that cannot be read ({type(problem).__name__})")


@contextmanager
def pulling_until(end: float, poll: float, revoked: Callable[[], bool]) -> Iterator[None]:
    """Bound the wait for a reply whose sender has announced it and sends no more: by itself Flower waits for hours.

    Whose the awaited part is cannot be seen here, so once a sender is revoked the others have ``GRACE`` seconds.
    """
    from flwr.superlink.grid import http_grid as flower

    http_grid: Any = flower
    real = http_grid.pull_objects
    given_up: list[float] = []
    """When those who are left are not waited for any more."""

    def bounded(object_ids: list[str], pull_object_fn: Callable[[str], bytes], **named: Any) -> Any:
        def pulled(number: str) -> bytes:
            try:
                return pull_object_fn(number)
            except ObjectUnavailableError:
                if not given_up and revoked():
                    given_up.append(time.monotonic() + GRACE)
                if given_up and time.monotonic() > given_up[0]:
                    raise ObjectPullError(number, "its sender was revoked") from None
                raise

        left = max(0.0, end - time.monotonic())
        return real(object_ids, pulled, **{"max_time": left, "initial_backoff": poll, "backoff_cap": 1.0, **named})

    http_grid.pull_objects = bounded
    try:
        yield
    finally:
        http_grid.pull_objects = real


def _reason(error: Any, waited: float, deadline: float) -> str:
    """Why there is no answer, in plain words where Flower's code has one meaning.

    A message lives as long as its deadline, so Flower may report it gone just before or after we stop waiting.
    """
    if error.code in (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE):
        return f"no answer within {deadline:g} s" if waited >= 0.9 * deadline else LEFT
    if error.code == ErrorCode.NODE_UNAVAILABLE:
        return LEFT
    return f"Flower error {error.code}: {' '.join(str(error.reason).split())[:200]}"

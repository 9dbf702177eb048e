"""The node's side: meet the server, then answer one message a round."""

from __future__ import annotations

import logging
import secrets
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.messages import Rows, gather, opened, scatter
from fedrec.core.method import Keys
from fedrec.core.misfit import finite, require
from fedrec.core.settings import build
from fedrec.core.sums import Summands
from fedrec.data.ragged import Int64
from fedrec.deploy.admission import sign
from fedrec.deploy.messages.agreement import agreement
from fedrec.deploy.messages.inspection import Received
from fedrec.deploy.messages.letters import Answer, Ask, Hello, Meet, Selected, Step, Stepped
from fedrec.deploy.messages.plain_values import parse
from fedrec.deploy.node.consent import accepted, refuse_too_large
from fedrec.deploy.node.outgoing import Collected, EachClient, OneSum, Outgoing
from fedrec.deploy.node.releases import Releases, SumReleases, whose
from fedrec.deploy.node.share import Names, NodeOptions, Prepare, Share, prepare
from fedrec.deploy.node.store import NodeStore
from fedrec.deploy.node.summing import PARTS, Summing, foreign_to, sum_number, sum_shapes
from fedrec.deploy.node.tally import Tally, chunks
from fedrec.deploy.node.terms import Terms
from fedrec.memory import MIB
from fedrec.methods.registry import find as find_method
from fedrec.privacy.chain import Chain, outgoing
from fedrec.privacy.fields import coordinates, telling
from fedrec.privacy.ledger import Withheld
from fedrec.runs.settings import RunSettings
from fedrec.secure.randomness import Stream

log = logging.getLogger("fedrec.deploy")


def method_of(settings: RunSettings) -> Any:
    """The run's method with its settings."""
    kind: Any = find_method(settings.method, settings.settings)
    return kind(build(kind.Settings, settings.settings, settings.method), settings.device)


class UnknownRun(Exception):
    """A message about a run that this node has not met."""


class Node:
    """One run on one node."""

    def __init__(self, options: NodeOptions, run: str, *, taking_part: bool = True) -> None:
        """``taking_part``: whether it may be asked for anything; who only reads a model needs no keys."""
        self.options, self.taking_part = options, taking_part
        self.store = NodeStore(options.folder, run)
        self.prepare: Prepare = prepare
        """Reads the node's data; a node's process has it done in a process of its own."""
        self.coordinates, self.telling = 1, frozenset[str]()
        """Protected numbers in one client's upload, as far as seen."""

    def meet(self, word: Meet) -> Hello:
        """Prepare the node's data for a run, and say who is here."""
        job = {"settings": parse(word.settings), "catalogue": list(word.catalogue)}
        settings = accepted(self.options, job["settings"])
        Releases(self.options, method_of(settings)).allow(settings.secure)
        self.store.create()
        with self.store.locked():
            if not self.store.has("share.safetensors") or self.store.read_json("job.json") != job:
                share, names = self._prepared(settings, word.catalogue)
                refuse_too_large(self.options, method_of(settings), share.world)
                self.store.prune(set(), set())
                self.store.remove(PARTS)  # what was trained under other settings may be clipped to another norm
                self.store.write_json("job.json", job)
                self.store.write_json("names.json", asdict(names))
                self.store.write("share.safetensors", share)
            block = self.share.block
            hello = Hello(self.options.name, block.client_keys, np.diff(block.user_start))
            if self.options.key is None:
                return hello
            return replace(hello, proof=sign(self.options.key, hello.claim(word)))

    def _prepared(self, settings: RunSettings, catalogue: tuple[str, ...]) -> tuple[Share, Names]:
        if self.options.data is None:
            return self.prepare(self.options, settings, catalogue)
        with Terms(self.options.folder, self.options.data).held(settings, catalogue):
            return self.prepare(self.options, settings, catalogue)

    def answer(self, ask: Ask) -> Answer:
        """Evaluate, train, keep the new private state, and only then answer."""
        if not self.store.has("share.safetensors"):
            raise UnknownRun("this node has not met this run, or has lost its files")
        with self.store.locked():
            self._refuse_impossible(ask)
            digest = ask.digest()
            released = bool(ask.train) and not self.settings.secure  # secure sums are charged when they are made
            given = self.store.answer(digest)
            if given is not None:
                log.info("answering again, from the stored answer")
                if released:  # a node that died right after it had stored it has not marked it
                    self._mark_released(ask.train)
                return given
            answer = self._given(ask) or self._work(ask)
            if released:  # before anything is sent, or stored to be sent
                clients = self.share.block.client_keys[ask.positions]
                self.releases.charge(self.store.path.name, ask.train, clients, self.coordinates, self.telling)
            self.store.keep_answer(digest, answer, whose(ask))
            if released:
                self._mark_released(ask.train)
            # A server that dies before its checkpoint comes back one round earlier: keep the state before the base.
            earlier = max((r for r in self.store.states() if r < ask.base), default=ask.base)
            self.store.prune(
                {earlier, ask.base, ask.train}, {ask.selected, ask.evaluate, ask.train if ask.local else 0}
            )
            return answer

    def _mark_released(self, number: int) -> None:
        """The stored answer is a round's one release: sent again, never made again."""
        if self.releases.guarded:
            self.store.link("answer.safetensors", f"release-{number}.safetensors")
            self.releases.ledger.answered(self.store.path.name, number)

    @cached_property
    def releases(self) -> Releases:
        """What this run's uploads cost, and what the node's owner says to that."""
        return Releases(self.options, self.method)

    def _given(self, ask: Ask) -> Answer | None:
        """The uploads of a round that was answered before, whatever the message says now; None where it was not."""
        if not ask.train or self.settings.secure or not self.releases.guarded:
            return None
        charge = self.releases.ledger.read().find(self.store.path.name, ask.train)
        kept = self.store.released(ask.train)
        if charge is None or not (charge.answered or kept):
            return None
        if kept is None or kept[1] != whose(ask):
            raise Withheld(
                f"round {ask.train} of this run was answered; its noise is not drawn again for another question"
            )
        log.info("round %d was answered before: the same uploads again", ask.train)
        answer, _ = kept
        if not ask.evaluate:
            return answer
        measured = self._work(replace(ask, train=0, local=False))  # metrics carry no noise; they are made anew
        return replace(answer, valid=measured.valid, test=measured.test)

    def step(self, word: Step) -> Stepped:
        """A step of a secure sum of what was trained and evaluated last."""
        if not self.store.has("share.safetensors"):
            raise UnknownRun("this node has not met this run, or has lost its files")
        with self.store.locked():
            require(self.settings.secure, "a secure sum in a run without them")
            return self.summing.step(word)

    @cached_property
    def summing(self) -> Summing:
        each = self.settings.secure_by == "clients"
        made = Summing(self.options, self.store, foreign_to(self.method, self.settings, self.share), each=each)
        budget = self.settings.epsilon is not None
        made.guard = SumReleases(self.releases, self.share, self.options.secure_colluding, budget, Stream.system)
        return made

    def select(self, word: Selected) -> None:
        """The run is over: remember the selected round, for recommendations."""
        if not self.store.has("share.safetensors"):
            raise UnknownRun("this node has not met this run, or has lost its files")
        with self.store.locked():
            self.store.write_json("selected.json", {"round": word.selected})

    @cached_property
    def settings(self) -> RunSettings:
        return accepted(self.options, self.store.read_json("job.json")["settings"], taking_part=self.taking_part)

    @cached_property
    def method(self) -> Any:
        return method_of(self.settings)

    @cached_property
    def download(self) -> Received:
        """What this run's downloads look like."""
        world = self.share.world
        return Received.of(self.method, World(world.name, world.n_items, 1, 1), self.settings.seed)

    @cached_property
    def share(self) -> Share:
        share: Share = self.store.read("share.safetensors", Share)[0]
        return share

    @property
    def names(self) -> Names:
        return Names(**self.store.read_json("names.json"))

    def keys(self, number: int) -> Keys:
        """The randomness of a round: clients draw from a secret of this node, unless the run must be repeatable."""
        if self.options.repeatable:
            return Keys(self.settings.seed, number)
        if not self.store.has("secret.json"):
            self.store.write_json("secret.json", {"secret": secrets.token_hex(32)})
        return Keys(self.settings.seed, number, str(self.store.read_json("secret.json")["secret"]))

    def private(self, name: str) -> Any:
        """Private state out of one of the node's files."""
        return self.store.read(name, self.method.Private)[0]

    def _work(self, ask: Ask) -> Answer:
        share = self.share
        block = replace(share.block, clients=ask.first + np.arange(share.block.n_clients))
        download = wire.decode(self.method.Download, ask.download)
        users = np.diff(block.user_start)
        self.download.check(download, users if ask.whole else users[ask.positions])
        private = self._base(ask, block)
        size = max(1, self.settings.memory_mb * MIB // max(1, self.method.client_bytes(ask.world)))
        tally = Tally(share, self.method, self.settings)
        if ask.evaluate:
            tally.add_all(private, download, block, size)
            self._keep_evaluated(ask.evaluate, f"state-{ask.base}.safetensors", ask.download, tally)
        out = self._out()
        if ask.train:
            self._train(ask, block, private, download, size, tally, out)
        if isinstance(out, Collected):
            return self._keep_parts(ask, download, out, tally)
        measured = tally.answer()
        return self.releases.sendable(replace(out.answer(), valid=measured.valid, test=measured.test))

    def _train(
        self, ask: Ask, block: Block, private: Any, download: Any, size: int, tally: Tally, out: Outgoing
    ) -> None:
        """Train the clients that are asked for, block after block, and keep the new private state."""
        if ask.local:
            idle = np.setdiff1d(np.arange(block.n_clients), ask.positions)
            tally.add_all(private, download, block, size, idle)
        keys = self.keys(ask.train)
        # where only those who train were sent a download, it is stacked over them
        addressed = block if ask.whole else block.take(ask.positions)
        for positions in chunks(ask.positions, size):
            part = block.take(positions)
            places = positions if ask.whole else np.searchsorted(ask.positions, positions)
            received = gather(download, addressed, places)
            update = self.method.local_update(gather(private, block, positions), received, part, keys)
            update = self._finite(update, ask, positions)
            self.coordinates = max(self.coordinates, int(coordinates(update.upload, part).max(initial=0)))
            scatter(private, block, positions, update.private)
            self.telling |= telling(update.upload)
            sent = self.chain.apply(update.upload, part, keys)
            out.add(positions, sent, received, update.loss)
            if ask.local:
                local = self.method.model(received) if update.local is None else update.local
                tally.add(positions, self.method.score(update.private, local, part))
        self.store.write(f"state-{ask.train}.safetensors", private)
        if ask.local:
            self._keep_evaluated(ask.train, f"state-{ask.train}.safetensors", ask.download, tally)

    def _finite(self, update: Any, ask: Ask, positions: Int64) -> Any:
        """The update as it may leave: a value that is not finite would poison the sum, and an error would tell the
        server something of a client's data, for it chooses what training begins with. Private state stays as it was
        where it is not finite, so that nobody's becomes what the server knows."""
        if not finite([update.upload, update.private, update.loss]):
            before = gather(self._base(ask, self.share.block), self.share.block, positions)
            made_finite(update.upload)
            made_finite(update.private, before)
            log.warning(
                "round %d: training %s left numbers that are not finite; zeros stand in their place, and a smaller lr "
                "helps", ask.train, self.method.name,
            )  # fmt: skip
            return replace(update, loss=np.nan_to_num(update.loss, posinf=0.0, neginf=0.0))
        return update

    @cached_property
    def chain(self) -> Chain:
        """What is done to an upload on its way out."""
        return outgoing(self.method.settings, "keyed" if self.options.repeatable else "system")

    def _out(self) -> Outgoing:
        """Where this run's uploads go."""
        form = wire.Form.of(self.method.settings)

        def summands(sent: Any, received: Any) -> Summands:
            given: Summands = self.method.summands(self.chain.restore(wire.rounded(sent, form)), received)
            return given

        if self.settings.secure:
            each = self.settings.secure_by == "clients"
            return Collected(self.options.name, self.share.block.n_clients, each, summands, self.method.silent)
        if self.settings.node_sums:
            return OneSum(sum_shapes(self.method, self.settings.seed, self.share), summands)
        return EachClient(form)

    def _keep_parts(self, ask: Ask, download: Any, collected: Collected, tally: Tally) -> Answer:
        """What waits to be summed stays here; the answer says no more than that it waits."""
        if ask.evaluate or ask.local:
            for part, values in tally.values().items():
                told = {} if self.options.policy.withholds_metrics else values  # of nobody: zeros
                collected.add_metrics(part, self.share.block.user_start, told, sorted(tally.metrics.names))
        agreed = agreement(self.store.read_json("job.json")["settings"], download)
        number, made = str(sum_number(ask.evaluate, ask.train)), secrets.token_hex(8)
        self.store.write(PARTS, collected.waiting(), number=number, agreed=agreed, made=made)
        return Answer()

    def _refuse_impossible(self, ask: Ask) -> None:
        """A message that no server of this run would send; it is the server's word against the node's own files."""
        here, world, last = self.share.block, ask.world, self.settings.rounds
        fits = (
            world.n_items == here.n_items
            and ask.first + here.n_clients <= world.n_clients
            and here.n_users <= world.n_users
        )
        require(fits, "the world is not this run's")
        rounds = (ask.base, ask.selected, ask.evaluate, ask.train)
        require(max(rounds) <= last and (ask.base < ask.train or not ask.train), f"rounds {rounds} of {last}")
        require(ask.whole or not (ask.evaluate or ask.local), "a download for some clients, where all are evaluated")
        order = ask.positions
        # compared, not subtracted: differences of absurd numbers wrap around
        rises = bool((order[1:] > order[:-1]).all())
        inside = not len(order) or (rises and order[0] >= 0 and order[-1] < here.n_clients)
        require(inside, "positions that are not this node's clients, or not in order")

    def _base(self, ask: Ask, block: Block) -> Any:
        """Private state that the server counts on: of the last round it took, or fresh."""
        name = f"state-{ask.base}.safetensors"
        if self.store.has(name):
            return self.private(name)
        if ask.base:
            raise UnknownRun(f"the private state of round {ask.base} is not here any more")
        private = self.method.start_clients(ask.world, block, self.keys(0))
        self.store.write(name, private)
        return private

    def _keep_evaluated(self, number: int, state: str, download: bytes, tally: Tally) -> None:
        """The model of an evaluated round, for recommendations."""
        self.store.link(state, f"judged-{number}.safetensors")
        self.store.write_bytes(f"judged-{number}.download", download)
        self.store.write(f"judged-{number}.users", tally.values()["test"])


def numbers_in(value: Any) -> list[Any]:
    """The arrays of real numbers in an upload or in private state."""
    found = [content.values if isinstance(content, Rows) else content for _, content in opened(value)]
    return [numbers for numbers in found if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f"]


def made_finite(value: Any, before: Any = None) -> None:
    """Put what was there before, or zeros, in the place of what is not finite."""
    earlier = [None] * len(numbers_in(value)) if before is None else numbers_in(before)
    for numbers, old in zip(numbers_in(value), earlier, strict=True):
        fine = np.isfinite(numbers)
        numbers[~fine] = 0 if old is None or old.shape != numbers.shape else old[~fine]

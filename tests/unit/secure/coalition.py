"""What a server and some members that collude with it see, and the simulator of the security proof.

The view of a coalition: every message, what its members hold, and all that follows from them. Once every mask that it
can compute is taken off, what is left of an honest member's vector is ``x_u + sum_v (+-) m_uv`` over the honest
neighbours in the sum: the residual. Everything else in the view is drawn without looking at the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from secure_samples import Game

from fedrec.secure.identity import SIGNATURE_BYTES
from fedrec.secure.masks import mask, pair_seed, self_seed, sign_of
from fedrec.secure.messages import HEADER, Kind, Unmasking
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Integers, Words, word_type, wrap
from fedrec.secure.unmasking import checked_key, restored

Vectors = dict[int, Words]


@dataclass(frozen=True)
class View:
    """What the coalition is left with."""

    residuals: Vectors
    """Of honest members in the sum, all computable masks taken off."""
    edges: set[tuple[int, int]]
    """Honest pairs whose mask it cannot compute."""
    key_shares: dict[int, int]
    """How many shares of the mask key of each honest member in the sum it has."""
    shape: list[tuple[Kind, int, int]]
    """Step, member and length of every message."""


def observe(game: Game, colluding: set[int]) -> View:
    """Play a sum to its end with a server and members that share all they know."""
    held: dict[int, dict[int, bytes]] = {}
    for kind in Kind:
        game.step(kind)
        if kind is Kind.INPUT:  # before they forget it
            held = {place: dict(game.parts[place]._pairs) for place in colluding}
    plan, got = game.plan, game.server._got
    silent = [u for u in got.inputs if u not in got.unmaskings]
    secrets = restored(plan, got, "seed", silent) | {u: r.secret for u, r in got.unmaskings.items()}
    messages = {(kind, place): message for kind, place, message in game.transcript.sent}
    known = {(min(u, v), max(u, v)): seed for u, pairs in held.items() for v, seed in pairs.items()}
    key_shares = dict.fromkeys(set(got.inputs) - colluding, 0)
    for place, reveal in got.unmaskings.items():
        known |= {(min(place, v), max(place, v)): seed for v, (_, seed) in reveal.gone.items()}
    gone = [v for v in got.shares if v not in got.inputs]
    lost = [v for v in gone if set(plan.neighbours_of(v)) & set(silent)]
    for v, secret in restored(plan, got, "key", lost).items():
        for u in silent:
            if v in plan.neighbours_of(u):
                key = checked_key(plan, got, v, secret)
                known[min(u, v), max(u, v)] = pair_seed(key, got.advertised(u).masks, plan.digest, v, u)
    for (kind, _), message in messages.items():
        if kind is Kind.UNMASK:
            for v in Unmasking.from_bytes(message[HEADER.size : -SIGNATURE_BYTES]).gone:
                assert v not in key_shares
    for u in key_shares:
        key_shares[u] = len(colluding & set(plan.neighbours_of(u)))
    residuals: Vectors = {}
    edges: set[tuple[int, int]] = set()
    honest = set(key_shares)
    for u in honest:
        body = messages[Kind.INPUT, u][HEADER.size :]
        words = np.frombuffer(body, word_type(plan.layout.bits), count=plan.layout.length).copy()
        words -= noise(plan, self_seed(secrets[u], plan.digest, u))
        for v in plan.neighbours_of(u):
            pair = (min(u, v), max(u, v))
            if pair in known:
                words = words - noise(plan, known[pair]) if sign_of(u, v) > 0 else words + noise(plan, known[pair])
            elif v in honest:
                edges.add(pair)
        residuals[u] = words
    shape = [(kind, place, len(message)) for kind, place, message in game.transcript.sent]
    return View(residuals, edges, key_shares, shape)


def noise(plan: Plan, seed: bytes) -> Words:
    return mask(seed, plan.layout.length, plan.layout.bits, 0)[0]


def explained(plan: Plan, view: View, inputs: dict[int, Integers]) -> dict[tuple[int, int], Words] | None:
    """Masks of the honest pairs under which these inputs give this very view; None where there are none.

    Members are taken off one by one, each having an edge to one that stays, which takes over what is left to explain.
    Masks of edges that are not used are zero. There are such masks for every input with the same sum in each part, so
    under uniform masks all of them give the view with the same probability.
    """
    bits = plan.layout.bits
    rest = {u: view.residuals[u] - wrap(inputs[u], bits) for u in view.residuals}  # sum over v of (+-) m_uv
    masks: dict[tuple[int, int], Words] = {}
    left = set(rest)
    for u in leaves_first(left, view.edges):
        near = [v for v in sorted(left - {u}) if (min(u, v), max(u, v)) in view.edges]
        if near:
            v = near[0]
            masks[min(u, v), max(u, v)] = rest[u] if sign_of(u, v) > 0 else -rest[u]
            rest[v] = rest[v] + rest[u]
            left.remove(u)
        elif rest[u].any():
            return None
        else:
            left.remove(u)
    for u, residual in view.residuals.items():
        total = wrap(inputs[u], bits)
        for (a, b), values in masks.items():
            if u in (a, b):
                total = total + values if u == a else total - values
        assert np.array_equal(total, residual)
    return masks


def leaves_first(members: set[int], edges: set[tuple[int, int]]) -> list[int]:
    """An order in which each member, but for the last of a part, still has a neighbour behind it."""
    order: list[int] = []
    unseen = set(members)
    while unseen:
        todo = [min(unseen)]
        unseen -= set(todo)
        part = []
        while todo:
            u = todo.pop(0)
            part.append(u)
            near = sorted(v for v in unseen if (min(u, v), max(u, v)) in edges)
            unseen -= set(near)
            todo += near
        order += part[::-1]
    return order


def simulate(plan: Plan, honest: list[int], total: Integers, rng: np.random.Generator) -> Vectors:
    """The proof's simulator: residuals out of the honest members' sum alone, uniform but for their sum."""
    kind = word_type(plan.layout.bits)
    drawn: dict[int, NDArray[np.uint32] | NDArray[np.uint64]] = {}
    for u in honest[:-1]:
        drawn[u] = np.frombuffer(rng.bytes(kind.itemsize * plan.layout.length), kind)
    last = wrap(total, plan.layout.bits)
    for values in drawn.values():
        last = last - values
    drawn[honest[-1]] = last
    return drawn

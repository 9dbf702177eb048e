"""Which masks are left on a sum, and their seeds: revealed by members, or restored from shares of silent ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fedrec.secure.failures import TooFew, WrongSum
from fedrec.secure.masks import mask_key, pair_seed, self_seed, sign_of
from fedrec.secure.messages import Advertisement, Shares, Unmasking, body_of
from fedrec.secure.plan import Plan
from fedrec.secure.shares import combine_all, genuine


@dataclass
class Received:
    """What the server has of each member, by its place."""

    keys: dict[int, bytes] = field(default_factory=dict)
    """Signed advertisements."""
    shares: dict[int, Shares] = field(default_factory=dict)
    inputs: dict[int, bytes] = field(default_factory=dict)
    """Of those in the sum the signatures under the list of sharers; vectors are folded as they come."""
    unmaskings: dict[int, Unmasking] = field(default_factory=dict)

    def advertised(self, place: int) -> Advertisement:
        return Advertisement.from_bytes(body_of(self.keys[place]))


def masks_left(plan: Plan, got: Received, workers: int = 1) -> list[tuple[int, bytes]]:
    """Sign and seed of every mask that does not vanish in the sum of the inputs."""
    answered = got.unmaskings
    silent = [u for u in got.inputs if u not in answered]
    gone = [v for v in got.shares if v not in got.inputs]
    pairs = [(u, v) for v in gone for u in plan.neighbours_of(v) if u in got.inputs]
    lost = sorted({v for u, v in pairs if u not in answered})
    secrets = restored(plan, got, "seed", silent, workers) | {u: reveal.secret for u, reveal in answered.items()}
    keys = {v: checked_key(plan, got, v, secret) for v, secret in restored(plan, got, "key", lost, workers).items()}
    masks = [(1, self_seed(secrets[u], plan.digest, u)) for u in got.inputs]
    for u, v in pairs:
        if u in answered:
            seed = answered[u].gone[v][1]
        else:
            seed = pair_seed(keys[v], got.advertised(u).masks, plan.digest, v, u)
        masks.append((sign_of(u, v), seed))
    return masks


def restored(
    plan: Plan, got: Received, purpose: Literal["seed", "key"], owners: list[int], workers: int = 1
) -> dict[int, bytes]:
    """Secrets of members that did not reveal them, from their neighbours' shares."""
    jobs = []
    for owner in owners:
        entries = got.shares[owner].entries
        marks = [entry.seed_mark if purpose == "seed" else entry.key_mark for entry in entries]
        reveals = {n: got.unmaskings.get(entry.receiver) for n, entry in enumerate(entries, start=1)}
        found = {n: r.alive[owner] if purpose == "seed" else r.gone[owner][0] for n, r in reveals.items() if r}
        right = genuine(found, marks, plan.digest, purpose, owner)
        if len(right) < plan.rules.threshold:
            raise TooFew(
                f"{len(right)} shares are left of a secret of {plan.members[owner]!r}, "
                f"{plan.rules.threshold} are needed; this round has no sum",
                repeat=False,
            )
        jobs.append((right, plan.rules.threshold))
    return dict(zip(owners, combine_all(jobs, workers), strict=True))


def checked_key(plan: Plan, got: Received, place: int, secret: bytes) -> X25519PrivateKey:
    """The mask key made of a restored secret, if it is the one that its owner advertised."""
    key = mask_key(secret, plan.digest, place)
    if key.public_key().public_bytes_raw() != got.advertised(place).masks:
        raise WrongSum(f"the shares of {plan.members[place]!r} restore another key than it advertised")
    return key

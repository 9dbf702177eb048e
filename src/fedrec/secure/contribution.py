"""What one participant puts into a secure sum: from the summands of its clients to the whole numbers that are masked.

A participant is a client, or a node that first adds up its clients. It goes through four steps, here and nowhere else::

    parts = {name: sum over its clients of their summands}      core.sums, weights included, in 64 bits
    parts = Guard.bounded(parts)                                the largest contribution: clip the whole vector here
    vector = layout.encode(parts)                               whole numbers; beyond a field's bound is an error
    vector += Guard.noise(plan)                                 the participant's share of the noise (secure.noise)
    ... secure.participant.Participant.mask(sealed, vector)     or secure.simulate.Cohort.add(place, vector)

Both places of :class:`Guard` do nothing by default. A guard that gives a privacy guarantee overrides both: ``bounded``
scales all protected fields together into a ball, so that ``clip`` of :func:`fedrec.secure.accounting.distance` holds
for what is summed (weights included), and ``noise`` returns :func:`fedrec.secure.noise.noise_share`. The layout's
fields then carry the noise of the sum (``noise=`` of :func:`layout_of`), and a node checks them against its policy
before it joins. A release is charged (``Guard.charge``) before :func:`vector_of` makes what is sent, each time.

Bounds. Where clip is set, no number of a client's upload is larger than it. Where it is not, the bound is
:data:`FREE` (2^16) times weight and users, in 64-bit words: a step near 10^-10 for a thousand clients. A number beyond
its bound stops the run with a line; nothing is cut off or wraps around silently, but for the loss, which is a report
(:data:`MOST_LOSS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import SumField
from fedrec.data.ragged import Int64
from fedrec.errors import BadInput
from fedrec.secure.failures import Refusal
from fedrec.secure.layout import Field, Layout
from fedrec.secure.plan import Plan
from fedrec.secure.ring import Bits, Integers, Scale

Parts = Mapping[str, NDArray[np.float64]]

FREE = 2.0**16
"""The bound of a number of one client's upload where neither clip nor the method says one."""
MOST_LOSS = 2.0**10
"""Of one client; larger ones count as this."""
LOSS = "loss"
LOSSES = {LOSS: SumField((), bound=MOST_LOSS, protected=False)}
"""The sum of the clients' losses, beside the method's own."""
EVALUATED = ("valid", "test")
"""Metric sums, where a model is evaluated in the same exchange."""
FINE = 2.0**-16
"""32 bits are enough where a step is at most this part of the clip bound."""
SLACK = 1.001
"""Rounding to the wire's number format may take a clipped number a little beyond the bound."""


def layout_of(
    fields: Mapping[str, SumField],
    settings: PrivacySettings,
    *,
    users: int,
    clients: int,
    summands: int,
    everyone: int = 0,
    noise: Mapping[str, float] | None = None,
    bits: Bits | None = None,
) -> Layout:
    """The layout of a secure sum of a method's fields and the loss.

    ``users`` is the most that one client has, ``clients`` the most that one participant adds up, ``summands`` the most
    participants in a cohort, ``everyone`` those of all cohorts; ``noise`` gives the deviation of the noise in the
    whole sum of a field. ``bits``: of the words, where they are chosen already.
    """
    known = {**fields, **LOSSES}
    made = tuple(
        Field(name, one.shape, clients * bound_of(one, settings, users), (noise or {}).get(name, 0.0))
        for name, one in known.items()
    )
    bits = bits or _bits(made, known, settings, summands, clients)
    # sums of cohorts are added in 64 bits: where the ring has as many, there must be room for all of them
    return Layout(made, max(summands, everyone) if bits == 64 else summands, bits)


def bound_of(one: SumField, settings: PrivacySettings, users: int) -> float:
    """The largest magnitude of one client's number."""
    free = one.bound if one.bound is not None else FREE * one.weight * users
    if not one.protected:
        return free
    if settings.noise > 0:  # what a client adds to its upload itself knows no bound
        return FREE * one.weight * users
    return min(free, settings.clip * one.weight * SLACK) if settings.clip > 0 else free


def _bits(
    made: tuple[Field, ...], known: Mapping[str, SumField], settings: PrivacySettings, summands: int, clients: int
) -> Bits:
    """32 where all that is protected is clipped and still fine enough, else 64."""
    if not settings.clip > 0 or settings.noise > 0:
        return 64
    clipped = [one for one in made if known[one.name].protected]
    with suppress(BadInput):
        coarsest = max((Scale(one.bound, summands, 32, one.noise).step for one in clipped), default=0.0)
        return 32 if coarsest <= FINE * settings.clip * clients else 64
    return 64


def refuse_foreign(
    layout: Layout, fields: Mapping[str, SumField], settings: PrivacySettings, users: int, clients: int
) -> None:
    """Refuse a layout with other fields than a participant knows, other shapes, or less room than its numbers may need.

    A bound that the server chose would tell it who is beyond it: whose vector does not fit falls silent.
    """
    known = {**fields, **LOSSES}
    for field in layout.fields:
        own = known.get(field.name)
        if own is None or field.shape != own.shape:
            raise Refusal(f"the plan sums {field.name!r} of shape {field.shape}, which this participant does not have")
        if field.bound < clients * bound_of(own, settings, users):
            raise Refusal(f"the plan has less room for {field.name!r} than this participant's numbers may need")


def metric_fields(metrics: Iterable[str], users: int) -> dict[str, SumField]:
    """Metric sums as fields: of each part the number of users evaluated, then a sum for every metric by name."""
    size = 1 + len(set(metrics))
    return {part: SumField((size,), bound=float(users), protected=False) for part in EVALUATED}


class Guard:
    """What a participant does to its contribution for its own protection: nothing, unless overridden."""

    def charge(self, plan: Plan, clients: Mapping[str, Int64]) -> set[str]:
        """Before vectors of these participants are made, with the positions of those whose data is in each: who of them
        may go on."""
        return set(clients)

    def bounded(self, parts: Parts) -> Parts:
        """The contribution, scaled back where it is larger than it may be."""
        return parts

    def noise(self, plan: Plan) -> Integers | None:
        """The participant's share of the noise, in whole steps ``[layout.length]``."""
        return None


def vector_of(plan: Plan, parts: Parts, guard: Guard) -> Integers:
    """The whole numbers of one participant, noise included; to be masked and sent at most once."""
    vector = plan.layout.encode(guard.bounded(parts))
    share = guard.noise(plan)
    return vector if share is None else vector + share


def loss_of(losses: NDArray[np.floating]) -> NDArray[np.float64]:
    """The losses of some clients as they are summed: what is not a number counts as none."""
    return np.nan_to_num(np.clip(losses.astype(np.float64), -MOST_LOSS, MOST_LOSS))

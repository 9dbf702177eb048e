"""Whether there is room for the clients and users that nodes claim: in the server's memory, and in the words and the
noise of a sum.

A node may claim any number of them.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedrec.core.block import World
from fedrec.core.method import Keys, Method
from fedrec.core.state import flatten
from fedrec.core.sums import SumField
from fedrec.data.limits import size
from fedrec.deploy.server.roster import Roster
from fedrec.errors import BadInput
from fedrec.memory import MIB, available_mb
from fedrec.secure.layout import Layout

log = logging.getLogger("fedrec.deploy")

COARSEST = 2.0**-10
"""The largest step of a sum's numbers, in the unit of one client's weight: finer ones do not change what is learnt."""
LOUDER, NOTICED = 4.0, 1.5
"""Noise so many times as large for the claims of a few nodes is theirs, not the budget's; and what is worth a line."""
COPIES = 2
"""Of the server's state at a time: a round makes a new one and leaves the old one as it was."""


def state_of(method: Method[Any, Any, Any, Any], world: World, clients: int) -> Any:
    """The server's first state for so many clients."""
    return method.start_server(replace(world, n_users=clients, n_clients=clients), Keys(0, 0))


def growth(method: Method[Any, Any, Any, Any], world: World) -> int:
    """Bytes by which the server's first state for all clients is larger than for two: with them or with their pairs."""

    def stored(clients: int) -> int:
        return sum(array.nbytes for array in flatten(state_of(method, world, clients))[0].values())

    two, more = stored(2), world.n_clients - 2
    each = stored(3) - two
    each_pair = stored(4) - 2 * each - two
    return more * each + more * (more - 1) // 2 * each_pair


def room_mb(method: Method[Any, Any, Any, Any]) -> float:
    """What is free for the server's state, in MiB; tables of many clients may lie on disk."""
    free = available_mb()
    if "tables_dir" in type(method.settings).model_fields:
        place = Path(method.settings.tables_dir or tempfile.gettempdir()).absolute()
        there = next(folder for folder in (place, *place.parents) if folder.is_dir())
        free += shutil.disk_usage(there).free / MIB
    return free


def refuse_too_many(method: Method[Any, Any, Any, Any], roster: Roster, world: World) -> None:
    """Before memory is taken: there is room for what the clients' state will need, or who claims most is named."""
    needed, free = COPIES * growth(method, world), int(room_mb(method) * MIB)
    if needed > free:
        most = max(roster.places, key=lambda place: len(place.client_keys))
        raise BadInput(
            f"{method.name} keeps {size(needed)} for the {world.n_clients} clients that nodes say they have, and "
            f"{size(free)} are free here; {most.name} says {len(most.client_keys)}: if that is not so, revoke its key"
        )


def refuse_coarse(layout: Layout, fields: Mapping[str, SumField], roster: Roster) -> None:
    """A sum keeps room for what everybody may have: where so much is claimed that honest numbers would vanish in the
    rounding, who claims most is named."""
    for name, field in fields.items():
        # what is not protected are counts: whole numbers
        if layout.scales[name].step > field.weight * (COARSEST if field.protected else 1):
            most = max(roster.places, key=lambda place: len(place.client_keys) * int(place.users.max(initial=1)))
            claimed = f"{len(most.client_keys)} clients of up to {int(most.users.max(initial=1))} users"
            raise BadInput(
                f"secure sums of {name!r} would be made in steps of {layout.scales[name].step:.2g}, in which what "
                f"others send is lost: {most.name} says that it has {claimed}; if that is not so, revoke its key, else "
                "set clip"
            )


def refuse_drowned(
    noise: Callable[[int], Mapping[str, float]], bounds: Callable[[int], Mapping[str, float]], roster: Roster
) -> None:
    """Noise hides all that a client may add, and so grows with the users it is said to have: where some nodes claim so
    many that it would hide all that the others add together, they are named.

    ``noise`` and ``bounds``: of each sum, by the users of one client, the noise and the most in one of its numbers.
    """
    places = sorted(roster.places, key=lambda place: int(place.users.max(initial=1)), reverse=True)
    claims = [int(place.users.max(initial=1)) for place in places]
    loud = noise(claims[0])
    added = [dict.fromkeys(loud, 0.0)]
    for place in reversed(places):
        mean = max(1, round(float(place.users.mean())) if len(place.users) else 1)
        added.append({name: added[-1][name] + len(place.users) * most for name, most in bounds(mean).items()})
    for few in range(1, (len(places) + 1) // 2):
        if claims[few] == claims[0]:
            continue
        quiet, others = noise(claims[few]), added[len(places) - few]
        named = f"{', '.join(sorted(place.name for place in places[:few]))} {'says' if few == 1 else 'say'}"
        said = f"{named} that a client there has {claims[few - 1]} users or more, of others {claims[few]} at most"
        if any(loud[name] > max(LOUDER * quiet[name], others[name]) for name in loud):
            raise BadInput(
                f"{said}, and noise for so many would hide all that others send; if that is not so, revoke the key, "
                "else give these users clients of their own, or set a larger epsilon"
            )
        if few == 1 and any(loud[name] > NOTICED * quiet[name] for name in loud):
            louder = max(loud[name] / quiet[name] for name in loud if quiet[name])
            log.warning("%s: the noise is %.3g times as large for it", said, louder)

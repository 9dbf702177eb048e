"""A federation whose nodes add up their clients: the server gets one sum from each node instead of many uploads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedrec.core.method import Keys, Reply
from fedrec.core.misfit import Misfit
from fedrec.core.sums import Folding
from fedrec.deploy.messages.letters import Answer, Ask
from fedrec.deploy.messages.totals import unpack_totals
from fedrec.deploy.server.exchange import Part
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.roster import Place
from fedrec.secure.contribution import bound_of


class NodeSums(Federation):
    """As its parent, but for what an answer holds: the totals of the node's clients, which are added and finished."""

    def _parts(self, place: Place, ask: Ask, answer: Answer) -> tuple[Part, ...]:
        if len(answer.uploads) > 1:
            raise Misfit(f"{len(answer.uploads)} sums, not one")
        users = int(place.users.max(initial=1))
        fields = self.method.sum_fields(self.server, users)
        bounds = {n: len(ask.positions) * bound_of(one, self.method.settings, users) for n, one in fields.items()}
        clients = place.first + ask.positions
        return tuple(Part(clients, unpack_totals(data, fields, bounds), len(data)) for data in answer.uploads)

    def _guarded(self, before: Any, replies: Iterator[Reply[Any]], keys: Keys) -> Any:
        """No single upload is seen, so there is nothing for a defence to look at."""
        folding = Folding(self.method.sum_fields(before, 1))
        for reply in replies:
            folding.add_totals(reply.clients, reply.upload)
        return self.method.finish(before, folding.sums(), keys)

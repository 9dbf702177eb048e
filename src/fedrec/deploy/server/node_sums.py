"""A federation whose nodes add up their clients: the server gets one sum from each node instead of many uploads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedrec.core.method import Keys, Reply
from fedrec.core.sums import Sums
from fedrec.deploy.messages.inspection import Misfit
from fedrec.deploy.messages.letters import Answer, Ask
from fedrec.deploy.messages.totals import unpack_totals
from fedrec.deploy.server.exchange import Part
from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.roster import Place


class NodeSums(Federation):
    """As its parent, but for what an answer holds: the totals of the node's clients, which are added and finished."""

    def _parts(self, place: Place, ask: Ask, answer: Answer) -> tuple[Part, ...]:
        if len(answer.uploads) > 1:
            raise Misfit(f"{len(answer.uploads)} sums, not one")
        positions, fields = ask.positions, self.method.sum_fields(self.server, int(place.users.max(initial=1)))
        return tuple(
            Part(place.first + positions, unpack_totals(data, fields, len(positions)), len(data))
            for data in answer.uploads
        )

    def _guarded(self, before: Any, replies: Iterator[Reply[Any]], keys: Keys) -> Any:
        """No single upload is seen, so there is nothing for a defence to look at."""
        totals = {name: np.zeros(field.shape) for name, field in self.method.sum_fields(before, 1).items()}
        clients = [np.zeros(0, np.int64)]
        for reply in replies:
            for name, part in reply.upload.items():
                totals[name] += part
            clients.append(reply.clients)
        return self.method.finish(before, Sums(totals, np.concatenate(clients)), keys)

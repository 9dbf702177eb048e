"""Which kind of federation a run's settings ask for."""

from __future__ import annotations

from fedrec.deploy.server.federation import Federation
from fedrec.deploy.server.node_sums import NodeSums
from fedrec.deploy.server.summing import SecureFederation
from fedrec.runs.settings import RunSettings


def kind_for(settings: RunSettings) -> type[Federation]:
    """Uploads one by one, sums of nodes, or secure sums."""
    if settings.secure:
        return SecureFederation
    return NodeSums if settings.node_sums else Federation

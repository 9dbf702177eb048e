"""How a federation deals with nodes that are slow, gone or wrong."""

from __future__ import annotations

from pydantic import Field

from fedrec.core.settings import Settings


class Rules(Settings):
    """Deadlines and the least share of nodes; written beside a run's settings."""

    nodes: int = Field(1, ge=1, description="nodes that must be there before the first round")
    wait: float = Field(120.0, gt=0, description="seconds to wait for them, and for nodes to come back")
    deadline: float = Field(300.0, gt=0, description="seconds to wait for a node's answer")
    step: float = Field(60.0, gt=0, description="the same for a step of a secure sum")
    least: float = Field(0.5, gt=0, le=1, description="share of the asked nodes that a round needs in order to count")
    attempts: int = Field(3, ge=1, description="times a round is tried before the run stops")
    poll: float = Field(0.2, gt=0, description="seconds between two checks for answers")

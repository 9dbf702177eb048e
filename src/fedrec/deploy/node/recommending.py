"""Items for a user, on the node that owns the user: from the node's own files, with no message sent."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.messages import Float32, gather
from fedrec.data.ragged import Int64, segments
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions, Share
from fedrec.errors import BadInput
from fedrec.runs.recommendations import Recommendation, best_items


class NodeModel:
    """The model of a run's selected round, as far as a node holds it: for its own users."""

    def __init__(self, folder: Path, run: str | None = None) -> None:
        node = Node(NodeOptions("", folder), run or latest_finished(folder), taking_part=False)
        if not node.store.has("selected.json"):
            raise BadInput(f"the run {node.store.path.name} is not over, or this node was away at its end")
        self.round = int(node.store.read_json("selected.json")["round"])
        name = f"judged-{self.round}.safetensors"
        if not node.store.has(name):
            raise BadInput(f"this node was away when round {self.round} was evaluated, so it has no model of it")
        self.node, self.method, self.names = node, node.method, node.names
        self.download = wire.decode(node.method.Download, node.store.read_bytes(f"judged-{self.round}.download"))
        self.private: Any = node.private(name)

    @cached_property
    def share(self) -> Share:
        return self.node.share

    def scores(self, clients: Int64) -> Float32:
        """Scores ``[users, n_items]`` of the users of some of the node's clients."""
        block = self.share.block
        model = self.method.model(gather(self.download, block, clients))
        found: Float32 = self.method.score(gather(self.private, block, clients), model, block.take(clients))
        return found

    def scores_of_new(self, block: Block) -> Float32:
        raise BadInput("a node answers for its own users; ask for one of them by id")


def recommend(folder: Path, user: str, k: int = 10, run: str | None = None) -> list[Recommendation]:
    """The ``k`` best items for one of the node's users, by the model of the run's selected round."""
    model = NodeModel(folder, run)
    names, share = model.names, model.share
    if user not in names.users:
        raise BadInput(f"this node has no user {user!r}; ask the user's own node")
    position = names.users.index(user)
    client = int(np.searchsorted(share.block.user_start, position, side="right")) - 1
    one = np.array([client])
    own = model.scores(one)[position - segments(share.block.user_start, one)[0]]
    return best_items(own, share.owned[position], names.items, names.titles, k)


def latest_finished(folder: Path) -> str:
    """The run that ended last on this node: it serves while another one trains."""
    over = sorted(folder.glob("*/selected.json"), key=lambda path: path.stat().st_mtime)
    if over:
        return over[-1].parent.name
    if next(folder.glob("*/job.json"), None) is not None:
        raise BadInput(f"no run has come to its end on this node yet ({folder}); wait for the first one")
    raise BadInput(f"{folder} is not a node's folder, or the node has met no run yet")

"""Items for a user, on the node that owns the user: from the node's own files, with no message sent."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedrec.core import wire
from fedrec.core.messages import gather
from fedrec.data.ragged import segments
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.share import NodeOptions
from fedrec.errors import BadInput
from fedrec.runs.recommendations import Recommendation, best_items


def recommend(folder: Path, user: str, k: int = 10, run: str | None = None) -> list[Recommendation]:
    """The ``k`` best items for one of the node's users, by the model of the run's selected round."""
    node = Node(NodeOptions("", folder), run or latest_finished(folder))
    if not node.store.has("selected.json"):
        raise BadInput(f"the run {node.store.path.name} is not over, or this node was away at its end")
    number = int(node.store.read_json("selected.json")["round"])
    name = f"judged-{number}.safetensors"
    if not node.store.has(name):
        raise BadInput(f"this node was away when round {number} was evaluated, so it has no model of it")
    names, share = node.names, node.share
    if user not in names.users:
        raise BadInput(f"this node has no user {user!r}; ask the user's own node")
    position = names.users.index(user)
    client = int(np.searchsorted(share.block.user_start, position, side="right")) - 1
    one = np.array([client])
    download = wire.decode(node.method.Download, node.store.read_bytes(f"judged-{number}.download"))
    private = gather(node.private(name), share.block, one)
    model = node.method.model(gather(download, share.block, one))
    scores = node.method.score(private, model, share.block.take(one))
    own = scores[position - segments(share.block.user_start, one)[0]]
    return best_items(own, share.owned[position], names.items, names.titles, k)


def latest_finished(folder: Path) -> str:
    """The run that ended last on this node: it serves while another one trains."""
    over = sorted(folder.glob("*/selected.json"), key=lambda path: path.stat().st_mtime)
    if over:
        return over[-1].parent.name
    if next(folder.glob("*/job.json"), None) is not None:
        raise BadInput(f"no run has come to its end on this node yet ({folder}); wait for the first one")
    raise BadInput(f"{folder} is not a node's folder, or the node has met no run yet")

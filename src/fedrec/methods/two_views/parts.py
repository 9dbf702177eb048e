"""What each of a client's two views says by itself: scores of the shared and of the private part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedrec.backbones.tables import ItemTable
from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.errors import BadInput
from fedrec.methods.two_views.fediar import FedIar
from fedrec.methods.two_views.reading import Reader
from fedrec.methods.two_views.views import TwoViews


def parts(method: Any, private: Any, model: Any, block: Block) -> dict[str, Float32]:
    """Scores ``[users, n_items]`` of both views together (``full``), of the ``shared`` and of the ``private`` one.

    Biases, which rank nothing, are in all three. Before FedIAR's clients have tables of their own, the private part is
    missing.
    """
    full = method.score(private, model, block)
    owners = block.client_of_user
    if isinstance(method, FedIar) and method.settings.scorer == "affine":
        found = {"full": full, "shared": method.score(replace(private, own=np.zeros_like(private.own)), model, block)}
        if not private.own.any():
            return found
        theta = private.users[:, method.settings.dim :]
        return {**found, "private": ItemTable(private.tables).scores(theta, owners) + private.bias[:, None]}
    if isinstance(method, TwoViews) and method.backbone.kernel is not None:
        read = Reader.of(method, private, model, block)
        turned = read.turned_back("private")
        own = ItemTable(private.tables).scores(turned, owners) + private.bias[:, None]
        shared = ItemTable(model.items, model.changes).scores(read.turned_back("shared"), owners)
        return {"full": full, "shared": shared + private.bias[:, None], "private": own}
    raise BadInput(
        f"{method.name} with these settings does not score as a sum of two views; give fedrap, fed3cr or fediar with a "
        "dot product or an affine score function"
    )

"""Serving somebody who was not in training: what a new client receives, and what it makes of its own history."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from fedrec.core.block import Block, World
from fedrec.core.messages import Float32, Rows, personal_fields
from fedrec.core.method import FOLD_FROM, Keys, Method
from fedrec.errors import BadInput

AT_ONCE = 256
"""Clients whose personal downloads are added up at once."""


def new_download(method: Method[Any, Any, Any, Any], server: Any, world: World) -> Any:
    """What one new client receives: what the method says, or shared fields as they are and personal ones on average."""
    own = method.new_client(server)
    if own is not None:
        return own
    first = method.download(server, np.zeros(1, np.int64))
    personal = personal_fields(first)
    if not personal:
        return first
    totals: dict[str, Any] = {}
    for start in range(0, world.n_clients, AT_ONCE):
        some = method.download(server, np.arange(start, min(start + AT_ONCE, world.n_clients)))
        for name in personal:
            totals[name] = _added(totals.get(name), getattr(some, name), method.name)
    return dataclasses.replace(first, **{name: _mean(totals[name], world.n_clients) for name in personal})


def folded(
    method: Method[Any, Any, Any, Any],
    download: Any,
    world: World,
    block: Block,
    seed: int,
    model: Callable[[Any], Any] | None = None,
) -> Float32:
    """Scores ``[users, n_items]`` of new clients that each receive ``download`` (of :func:`new_download`).

    ``model`` makes of it what they score with: the method's own, unless somebody keeps it.
    """
    received = _repeated(download, block.n_clients)
    private = method.fold_in(received, world, block, Keys(seed, FOLD_FROM))
    return method.score(private, (model or method.model)(received), block)


def _added(total: Any, content: Any, method: str) -> Any:
    if content is None:
        return None
    if isinstance(content, Rows):  # changes against a table: somebody new has none
        return Rows(np.zeros(2, np.int64), content.ids[:0], content.values[:0], content.n_items)
    if isinstance(content, dict):
        return {key: _added((total or {}).get(key), part, method) for key, part in content.items()}
    listed = isinstance(content, np.ndarray) and content.dtype.kind != "f" and content.ndim > 1  # numbers of things
    if listed or not isinstance(content, np.ndarray):
        raise BadInput(f"{method} sends every client something personal, which somebody new does not have")
    if content.dtype.kind != "f":  # numbers of clients, marks: zero says that nothing is known of this one
        return np.zeros((1, *content.shape[1:]), content.dtype)
    part = content.sum(axis=0, keepdims=True, dtype=np.float64)
    return part if total is None else total + part


def _mean(total: Any, count: int) -> Any:
    if isinstance(total, dict):
        return {key: _mean(part, count) for key, part in total.items()}
    if total is None or isinstance(total, Rows) or total.dtype.kind != "f":
        return total
    return (total / count).astype(np.float32)


def _repeated(download: Any, count: int) -> Any:
    """The download of one client for ``count`` clients: views of the same numbers."""
    if count == 1 or not personal_fields(download):
        return download

    def many(content: Any) -> Any:
        if isinstance(content, dict):
            return {key: many(part) for key, part in content.items()}
        if isinstance(content, Rows):
            return Rows(np.zeros(count + 1, np.int64), content.ids, content.values, content.n_items)
        return None if content is None else np.broadcast_to(content, (count, *content.shape[1:]))

    return dataclasses.replace(download, **{name: many(getattr(download, name)) for name in personal_fields(download)})

"""FedJAX as a worker: ``fedjax.for_each_client`` and the running weighted mean of ``fedjax.algorithms.fed_avg``.

    python with_fedjax.py WORK.npz jit|pmap [grad|rows]

``pmap`` has a CPU device per core. ``grad`` steps as FedJAX's own algorithms do, with ``jax.grad`` and its optimisers;
``rows`` writes plain SGD by hand, so that only the batch's rows of the table move. Batches are made beforehand, padded
with a mask to one of a few sizes (``ClientDataset.padded_batch``), so that little is compiled.
"""

from __future__ import annotations

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
if "pmap" in sys.argv:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={len(os.sched_getaffinity(0))}"

from typing import Any

import fedjax
import jax
import jax.numpy as jnp
import numpy as np

from talk import Array, Round, Work, serve

SIZES = 4
"""Sizes of a batch that are compiled: the whole one, half of it, a quarter, an eighth."""


def loss(params: Any, batch: Any) -> Any:
    """Mean binary cross-entropy over the samples of a padded batch."""
    logits = params["items"][batch["item"]] @ params["user"]
    each = jnp.maximum(logits, 0) - logits * batch["label"] + jnp.log1p(jnp.exp(-jnp.abs(logits)))
    return jnp.sum(each * batch["__mask__"]) / jnp.sum(batch["__mask__"])


def by_gradient(work: Work) -> tuple[Any, Any]:
    """How a client starts and steps: automatic gradients and an optimiser of FedJAX's."""
    optimiser = getattr(fedjax.optimizers, work.optimizer)(work.lr)
    gradient = jax.grad(loss)

    def start(table: Any, user: Any) -> Any:
        params = {"items": table, "user": user}
        return {"params": params, "optimiser": optimiser.init(params)}

    def step(state: Any, batch: Any) -> Any:
        state_of, params = optimiser.apply(gradient(state["params"], batch), state["optimiser"], state["params"])
        return {"params": params, "optimiser": state_of}

    return start, step


def by_rows(work: Work) -> tuple[Any, Any]:
    """How a client starts and steps: plain SGD, written out for the rows of the batch."""
    if work.optimizer != "sgd":
        raise SystemExit("rows is plain SGD")

    def start(table: Any, user: Any) -> Any:
        return {"params": {"items": table, "user": user}}

    def step(state: Any, batch: Any) -> Any:
        items, user = state["params"]["items"], state["params"]["user"]
        own = items[batch["item"]]
        slope = (jax.nn.sigmoid(own @ user) - batch["label"]) * batch["__mask__"] / jnp.sum(batch["__mask__"])
        moved = items.at[batch["item"]].add(-work.lr * slope[:, None] * user)
        return {"params": {"items": moved, "user": user - work.lr * slope @ own}}

    return start, step


def prepare(work: Work) -> Round:
    fedjax.set_for_each_client_backend("pmap" if "pmap" in sys.argv else "jit")
    start, step = (by_rows if "rows" in sys.argv else by_gradient)(work)
    train = fedjax.for_each_client(start, step, lambda table, state: state["params"]["items"] - table)
    sizes_of_batches = 1 if "pmap" in sys.argv else SIZES  # pmap's clients step together, with batches of one size
    hparams = fedjax.PaddedBatchHParams(batch_size=work.batch, num_batch_size_buckets=sizes_of_batches)
    clients = [
        (
            c,
            [
                batch
                for item, label in work.epochs(c)
                for batch in fedjax.ClientDataset({"item": item, "label": label}).padded_batch(hparams)
            ],
            work.users[c],
        )
        for c in range(work.clients)
    ]
    sizes = work.sizes

    def one_round() -> Array:
        table = jnp.asarray(work.table)
        total = fedjax.tree_util.tree_zeros_like(table)
        for c, change in train(table, clients):
            total = fedjax.tree_util.tree_add(total, fedjax.tree_util.tree_weight(change, float(sizes[c])))
        return np.asarray(table + fedjax.tree_util.tree_inverse_weight(total, float(sizes.sum())))

    return one_round


if __name__ == "__main__":
    serve(prepare)

"""The one primitive that trains a block of clients: samples in, changed users, rows and networks out."""

from __future__ import annotations

from fedrec.backbones.base import Backbone
from fedrec.backbones.ncf import NeuralCollaborativeFiltering
from fedrec.core.block import Block
from fedrec.core.messages import Array, Float32
from fedrec.errors import BadInput
from fedrec.extras import installed
from fedrec.keyed import U64
from fedrec.learn.sample_arrays import Samples
from fedrec.learn.trained import LocalSettings, Trained, Work, check_fit


def train_block(
    block: Block,
    samples: Samples,
    users: Float32,
    table: Float32,
    settings: LocalSettings,
    keys: U64,
    backbone: Backbone,
    networks: dict[str, Array] | None = None,
    device: str = "cpu",
    proximal: float = 0.0,
    lr_items: float | None = None,
    lr_users: float | None = None,
    threads: int | None = None,
) -> Trained:
    """Train every client of a block on its samples.

    ``users`` ``[users, d]``; ``table`` ``[n_items, d]`` shared by all, or ``[clients, n_items, d]`` one
    each (read through views, never copied whole); ``keys`` ``[clients]`` streams for the order of
    mini-batches; ``proximal`` FedProx's mu; ``lr_items`` and ``lr_users`` replace ``settings.lr`` for
    item rows and user rows. The optimiser starts fresh, as torch's Adam or SGD; nothing given is written.
    """
    check_fit(block, samples, users, table)
    if samples.pairs != (settings.objective == "bpr"):
        made = "bpr" if samples.pairs else "bce"
        raise BadInput(f"samples were drawn for {made}; draw them with objective={settings.objective}")
    work = Work(
        block, samples, users, table, settings, keys, backbone, networks or {}, device, proximal,
        settings.lr if lr_users is None else lr_users, settings.lr if lr_items is None else lr_items, threads,
    )  # fmt: skip
    engine = engine_of(settings.engine, backbone, device, proximal)
    if engine == "vectors":
        from fedrec.learn.kernel.fused import train_fused

        return train_fused(work)
    if engine == "layers":
        from fedrec.learn.kernel.ncf import train_layers

        return train_layers(work)
    from fedrec.learn.torch.batched import train_batched

    return train_batched(work)


def engine_of(engine: str, backbone: Backbone, device: str, proximal: float) -> str:
    """Which engine trains: the kernel of vectors or of layers where one can and may, else torch."""
    kernel = "vectors" if backbone.kernel is not None else ""
    # who scores in a way of its own has no kernel, and the kernel of layers has no pull towards the download
    if type(backbone).score is NeuralCollaborativeFiltering.score and not proximal:
        kernel = "layers"
    compiles = installed("numba")
    fits = kernel and device == "cpu" and compiles
    if engine == "kernel" and not fits:
        pull = f" with proximal {proximal}" if proximal else ""
        why = f"device {device}" if device != "cpu" else f"backbone {backbone.name}{pull}" if compiles else "no numba"
        raise BadInput(f"engine=kernel cannot train here ({why}); use engine=auto")
    return kernel if fits and engine in ("auto", "kernel") else "torch"

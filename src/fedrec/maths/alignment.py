"""Bringing a client's item table near to a global similarity (FedCIA Eq. 6), in two ways.

``E E' = C`` fixes E up to a rotation. The best table of width d is ``V_d L_d^1/2 R`` with the top eigenpairs of C
and any rotation R; the one nearest to the client's own table has the Procrustes rotation, so the user vectors
that were learnt with the old table keep their meaning. The published way is gradient steps from the old table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedrec.core.messages import Float32
from fedrec.threads import thread_count

if TYPE_CHECKING:
    from torch import Tensor


SINGULAR = 1e-13
"""Smallest share of the largest eigenvalue of M'M from which the polar factor of M is taken through it: few of the
digits of 64 bits are left for the directions that matter least. Below it the slower SVD finds some rotation."""


def polar(matrix: Float32) -> Float32:
    """The orthogonal factor of ``M = R P``, ``M (M'M)^-1/2``: half the time of a singular value decomposition."""
    wide = matrix.astype(np.float64)
    values, vectors = np.linalg.eigh(wide.T @ wide)  # ascending
    if values[0] > SINGULAR * values[-1]:
        return np.asarray(((wide @ vectors) / np.sqrt(values)) @ vectors.T, np.float32)
    inner, _, outer = np.linalg.svd(matrix)
    return np.asarray(inner @ outer, np.float32)


def rotation(factors: Float32, table: Float32, device: str = "cpu") -> Float32:
    """The orthogonal R ``[d, d]`` with the smallest ``|factors R - table|`` (orthogonal Procrustes)."""
    left, right = np.ascontiguousarray(factors), np.ascontiguousarray(table)  # one layout, so the same last bits
    if device == "cpu":
        return polar(left.T @ right)
    import torch

    first, _, last = torch.linalg.svd(torch.from_numpy(left).to(device).mT @ torch.from_numpy(right).to(device))
    found: Float32 = (first @ last).cpu().numpy()
    return found


class Recent:
    """Rotations towards the global similarity that was asked for last, each worked out once.

    A table is aligned when it is evaluated and, unchanged, when its client's next round begins; the rotation is what
    takes the time, and neither private state nor a download is the place to keep it: a megabyte per client would go
    to every checkpoint, or over the wire. Kept by content, so that a changed table is never taken for the old one,
    and up to ``most`` bytes: what does not fit is worked out again.
    """

    def __init__(self, most: int = 128 << 20) -> None:
        self.most, self.towards = most, b""
        self.known: dict[bytes, Float32] = {}

    def ask(self, factors: Float32) -> None:
        """From here on rotations are asked for towards this similarity."""
        towards = _digest(factors)
        if towards != self.towards:
            self.towards, self.known = towards, {}

    def rotation(self, factors: Float32, table: Float32, device: str) -> Float32:
        """``rotation`` of the leading columns of ``factors``, which were asked for, to ``table``."""
        key, d, known = _digest(table), table.shape[1], self.known
        if key in known:
            return known[key]
        found = rotation(factors[:, :d], table, device)
        if sum(one.nbytes for one in list(known.values())) + found.nbytes <= self.most:
            known[key] = found
        return found


RECENT = Recent()


def _digest(matrix: Float32) -> bytes:
    shape = str(matrix.shape).encode()
    return hashlib.blake2b(np.ascontiguousarray(matrix).data, digest_size=16, key=shape).digest()


def closed_form(factors: Float32, table: Float32, device: str = "cpu") -> Float32:
    """``V_d L_d^1/2 R`` ``[m, d]``; ``factors`` ``[m, >= d]``, its leading columns are taken."""
    return closed_forms(factors, [table], device)[0]


def closed_forms(factors: Float32, tables: Sequence[Float32], device: str = "cpu") -> list[Float32]:
    """``closed_form`` of several clients' tables, which may differ in width; on the CPU, a thread for each at once."""
    RECENT.ask(factors)

    def aligned(table: Float32) -> Float32:
        own = np.ascontiguousarray(factors[:, : table.shape[1]])
        return own @ RECENT.rotation(factors, table, device)

    if device != "cpu":
        return [aligned(table) for table in tables]
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # matrices of d x d: threads within one wait for each other longer than they work
        threads = min(thread_count(), len(tables))
        if threads < 2:
            return [aligned(table) for table in tables]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(aligned, tables))


def gradient_steps(
    table: Float32,
    left: Float32,
    right: Float32 | None,
    steps: int,
    rate: float,
    loss: Literal["norm", "mse"] = "norm",
    device: str = "cpu",
) -> Float32:
    """SGD from the client's table ``[m, d]`` on ``|E E' - C|_F`` (the public code), or its square's mean (Eq. 6).

    C is ``left`` itself ``[m, m]``, or ``left right'`` where ``right`` is given. The gradients
    ``2 (E E' - C) E / |E E' - C|`` and ``4 (E E' - C) E / m^2`` need ``C E`` and ``E'E`` only: the norm follows
    from ``|E'E|^2 - 2 tr(E'CE) + |C|^2``.
    """
    import torch

    here = torch.from_numpy(np.ascontiguousarray(table)).to(device)
    first = torch.from_numpy(np.ascontiguousarray(left)).to(device)
    second = None if right is None else torch.from_numpy(np.ascontiguousarray(right)).to(device)
    size = _sum(first, first) if second is None else _sum(first.mT @ first, second.mT @ second)  # |C|^2
    for _ in range(steps):
        moved = first @ here if second is None else first @ (second.mT @ here)  # C E
        gram = here.mT @ here
        if loss == "mse":
            factor = 4.0 / len(table) ** 2
        else:
            square = _sum(gram, gram) - 2.0 * _sum(here, moved) + size
            factor = 2.0 / max(square, 1e-12 * size, 1e-30) ** 0.5  # a difference of large numbers may dip below zero
        here = here - rate * factor * (here @ gram - moved)
    return here.cpu().numpy()


def _sum(one: Tensor, other: Tensor) -> float:
    return float((one.double() * other.double()).sum())

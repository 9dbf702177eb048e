"""Composite aggregation: who counts how much for whom, and the mixture of tables (FedCA section 5.1.1).

Server side, in torch on any device. Nothing here loops over pairs of clients and nothing is larger than
``[n, n]`` or a slice of the tables. Tables are ``[clients, n_items, d]``: numpy, and slices of them travel to
the device; or a tensor that is there already (:func:`on_device`). Imports torch: import this module where it is
used, not at start-up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fedrec.core import disk_array
from fedrec.core.messages import Array
from fedrec.data.ragged import Int64
from fedrec.maths.gram import COLUMNS, ROWS, SPARSE, add_upper
from fedrec.maths.simplex import project
from fedrec.maths.subspaces import padded

Tables = Array | Tensor

ANGLE_ROWS = 96
"""Clients in a block of pairs where rows have the length of the client's list, as short as it may be."""
AT_ONCE = 1 << 24
"""Entries of a pairwise matrix that are handled at once where temporaries are needed."""
CODE_SAME = 0.9
"""Similarities above this become 1 in FedCA's public code."""


def on_device(tables: Array, device: str) -> Tables:
    """The tables on the device where there is room for them and the work on them, else as they are."""
    if device == "cpu":
        return tables
    free, _ = torch.cuda.mem_get_info()
    room = tables.nbytes + 24 * len(tables) ** 2 + (1 << 30)
    return torch.from_numpy(np.ascontiguousarray(tables)).to(device) if room < free else tables


def products(
    tables: Tables, clients: Int64 | None, device: str, change: Callable[[slice, Tensor], Tensor] | None = None
) -> Tensor:
    """Products ``[n, n]`` of whole tables, or of what ``change(place, part)`` makes of each slice, in place."""
    count = len(tables) if clients is None else len(clients)
    gram = torch.zeros((count, count), dtype=torch.float32, device=device)
    for place, part in slices(tables, clients, device, fresh=change is not None):
        add_products(gram, (part if change is None else change(place, part)).reshape(count, -1))
    mirror(gram)
    return gram


def squared_distances(tables: Tables, clients: Int64 | None = None, device: str = "cpu") -> Tensor:
    """``||Q_u - Q_v||^2`` of whole tables ``[n, n]``, through the Gram matrix of the centred tables.

    Distances do not change when the mean table is taken off, and what is left is small: so the cancellation
    in ``|a|^2 + |b|^2 - 2 a.b`` costs no digits that matter.
    """
    gram = products(tables, clients, device, lambda _, part: part.sub_(part.mean(0)))
    norms = gram.diagonal().clone()
    squares = gram.mul_(-2).add_(norms[:, None]).add_(norms[None, :]).clamp_(min=0)
    squares.fill_diagonal_(0)
    return squares


def similarity(squares: Tensor) -> Tensor:
    """Eq. (6): ``sigma(Q_u, Q_v) = 1 / (1 + ||Q_u - Q_v||^2)``, from squared distances; in place."""
    return squares.add_(1).reciprocal_()


def similarity_as_coded(tables: Tables, first: Array, clients: Int64 | None = None, device: str = "cpu") -> Tensor:
    """FedCA's public code: distances between one-component PCA projections of the tables.

    Each table ``[n_items, d]`` is projected on its first principal component, the projection of the initial
    table ``first`` is taken off, ``1 / (1 + distance)``, and what exceeds 0.9 becomes 1.
    """
    start = principal_scores(first[None], None, device)[0]
    scores = principal_scores(tables, clients, device) - start  # [n, n_items]
    found = squared_distances(scores.unsqueeze(2), None, device).sqrt_().add_(1).reciprocal_()
    found[found > CODE_SAME] = 1.0
    return found


def principal_scores(tables: Tables, clients: Int64 | None = None, device: str = "cpu") -> Tensor:
    """``[n, n_items]`` coordinates of the items along each table's first principal component."""
    chosen = np.arange(len(tables)) if clients is None else clients
    n_items, dim = tables.shape[1:]
    found = torch.empty((len(chosen), n_items), dtype=torch.float32, device=device)
    step = max(1, AT_ONCE // (n_items * dim))
    for begin in range(0, len(chosen), step):
        part = torch.as_tensor(tables[chosen[begin : begin + step]], device=device)
        part = part - part.mean(1, keepdim=True)
        vectors = torch.linalg.eigh((part.mT @ part).double()).eigenvectors[:, :, -1]  # [b, d]
        largest = vectors.gather(1, vectors.abs().argmax(1, keepdim=True))
        vectors = vectors * torch.where(largest < 0, -1.0, 1.0)
        found[begin : begin + step] = (part @ vectors.float().unsqueeze(2)).squeeze(2)
    return found


def mean_angles(vectors: Array, start: Int64, device: str = "cpu") -> Tensor:
    """Eq. (7): ``phi(X_u, X_v) = (1/k) sum_l arccos(x_u^l . x_v^l)`` of every pair ``[n, n]``.

    ``vectors`` ``[rows, k]`` ragged by ``start``; the shorter of two clients is padded with zeros, so only
    the rows that both have count. Clients are taken in order of length: a block meets longer ones through
    its own rows only, and the padded zeros are never multiplied.
    """
    counts = np.diff(start)
    n, k = len(counts), vectors.shape[1]
    order = np.argsort(counts, kind="stable")
    total = torch.zeros((n, n), dtype=torch.float32, device=device)
    for column in range(k):
        rows = torch.from_numpy(padded(vectors[:, column], start, counts, order)).to(device)  # [n, longest]
        for begin in range(0, n, ANGLE_ROWS):
            end = min(begin + ANGLE_ROWS, n)
            width = int(counts[order[end - 1]])
            inner = rows[begin:end, :width] @ rows[begin:, :width].T
            total[begin:end, begin:] += inner.clamp_(-1, 1).arccos_()
    mirror(total)
    total /= k
    back = torch.from_numpy(np.argsort(order, kind="stable")).to(device)
    return total[back][:, back]


def matched_angles(components: Array, device: str = "cpu") -> Tensor:
    """Mean angle ``[n, n]`` between the components ``[n, k, d]`` of two clients, greedily matched.

    As in FedCA's public code: of all pairs of components the two at the smallest angle (without regard to
    sign) are matched first, then the next two of what is left.
    """
    n, k, dim = components.shape
    flat = torch.from_numpy(np.ascontiguousarray(components.reshape(n * k, dim))).to(device)
    found = torch.empty((n, n), dtype=torch.float32, device=device)
    step = max(1, AT_ONCE // (n * k * k))
    for begin in range(0, n, step):
        end = min(begin + step, n)
        inner = (flat[begin * k : end * k] @ flat.T).abs_().clamp_(max=1)
        inner = inner.reshape(end - begin, k, n, k).permute(0, 2, 1, 3).reshape(end - begin, n, k * k)
        angle = torch.zeros((end - begin, n), device=device)
        taken = torch.zeros_like(inner, dtype=torch.bool)
        for _ in range(k):
            best, place = inner.masked_fill(taken, -1.0).max(2)
            angle += best.arccos()
            pair = torch.arange(k * k, device=device)
            taken |= (pair // k == (place // k)[..., None]) | (pair % k == (place % k)[..., None])
        found[begin:end] = angle / k
    return found


def complementarity(angles: Tensor, kind: Literal["cos", "sin", "raw"] = "cos") -> Tensor:
    """The factor of ``-w_uv`` in Eq. (7): ``cos(phi)``, or Table 11's ``sin(phi)``; in place.

    `raw` differs in what clients send (:func:`~fedrec.maths.subspaces.unit_columns`), not here.
    """
    return angles.sin_() if kind == "sin" else angles.cos_()


def composite_weights(
    similarity: Tensor | Array | None,
    complementarity: Tensor | Array | None,
    sizes: Tensor | Array,
    alpha: float,
    beta: float,
    *,
    normalise: Literal["eq8", "eq5"] = "eq8",
    roles: Literal["paper", "code"] = "paper",
    device: str = "cpu",
) -> Tensor:
    """W ``[n, n]``: row ``u`` holds the weights ``w_u`` of everybody's table for client ``u``.

    ``similarity`` s and ``complementarity`` c ``[n, n]``, or some of their rows, which W has then; ``sizes`` ``[n]``
    is scaled to the proxy ``p``, which sums to one. Missing (None) terms count as zero.

    Eq. (8): minimise ``x.x - (2 p + 2 alpha s_u + beta c_u).x`` on the simplex, that is, project
    ``p + alpha s_u + beta c_u / 2``. Eq. (5) has ``(1 + alpha) x.x`` instead: the point divided by
    ``1 + alpha``. ``roles="code"``: the public code swaps alpha and beta and doubles both linear terms:
    ``p + alpha c_u + beta s_u``.
    """
    s_factor, c_factor = (alpha, beta / 2) if roles == "paper" else (beta, alpha)
    scale = 1 + s_factor if normalise == "eq5" else 1.0
    proxy = torch.as_tensor(sizes, device=device).double()
    proxy = (proxy / proxy.sum(-1, keepdim=True)).reshape(1, -1)
    n = proxy.shape[1]
    terms = [
        (factor, torch.as_tensor(term, device=device))
        for factor, term in ((s_factor, similarity), (c_factor, complementarity))
        if factor and term is not None
    ]
    count = len(terms[0][1]) if terms else n
    weights = torch.empty((count, n), dtype=torch.float32, device=device)
    step = max(1, AT_ONCE // n)
    for begin in range(0, count, step):
        rows = slice(begin, min(begin + step, count))
        point = proxy.expand(rows.stop - rows.start, n).clone()
        for factor, term in terms:
            point.add_(term[rows], alpha=factor)
        weights[rows] = project(point.div_(scale)).float()
    return weights


def mix(
    tables: Tables, weights: Tensor | Array, clients: Int64 | None = None, out: Array | None = None, device: str = "cpu"
) -> Array:
    """Personal mixtures ``Q_u^g = sum_v w_uv Q_v`` (section 5.1.3), any shape behind the client axis.

    ``weights`` ``[n, n]`` are for the tables of ``clients`` (all by default); the others stay as they are.
    With ``out=tables`` the mixtures replace the tables and no second stack is needed: every slice is read
    before it is written.
    """
    if out is None:
        out = np.empty(tuple(tables.shape), np.float32)
        if clients is not None:
            out[...] = torch.as_tensor(tables).cpu().numpy()
    if not out.flags.c_contiguous:
        raise ValueError("the mixtures need an array that lies in one run of memory")
    factor = torch.as_tensor(weights, device=device)
    thin = device == "cpu" and int((factor != 0).sum()) < SPARSE * factor.numel()
    if thin:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR")  # torch calls its support beta
            factor = factor.to_sparse_csr()
    flat, into = tables.reshape(len(tables), -1, 1), out.reshape(len(out), -1, 1)
    # a narrow slice stays in cache while rows are picked from it
    for place, part in slices(flat, clients, device, COLUMNS // 8 if thin else COLUMNS, fresh=thin):
        mixed = (factor @ part.squeeze(2)).unsqueeze(2)
        if isinstance(flat, Tensor):
            flat[slice(None) if clients is None else clients, place] = mixed
        else:
            disk_array.put_columns(into, place, clients, mixed.cpu().numpy())
    if isinstance(flat, Tensor):  # the device's own copy was overwritten; it comes back in one go
        torch.from_numpy(into).copy_(flat)
    return out


def slices(
    tables: Tables, clients: Int64 | None, device: str, columns: int | None = None, *, fresh: bool = True
) -> Iterator[tuple[slice, Tensor]]:
    """Slices of all tables on the device: the items' range and ``[n, items, d]``, a copy that may be written if
    ``fresh``, else a view where that can be."""
    n_items, dim = tables.shape[1:]
    step = max(1, (columns or COLUMNS) // dim)
    for begin in range(0, n_items, step):
        place = slice(begin, min(begin + step, n_items))
        if isinstance(tables, Tensor):
            part = tables[:, place] if clients is None else tables[clients, place]
            yield place, part.clone() if fresh and clients is None else part
        else:
            own = disk_array.columns(tables, place, clients)
            shared = np.may_share_memory(own, tables)
            writeable = own.flags.writeable and all(step > 0 for step in own.strides)
            yield place, torch.from_numpy(own.copy() if (fresh and shared) or not writeable else own).to(device)


def add_products(gram: Tensor, flat: Tensor) -> None:
    """``gram += flat flat^T``, on and above the diagonal only."""
    if gram.device.type == "cpu":
        add_upper(gram.numpy(), flat.numpy())
        return
    rows = ROWS if len(flat) > 2 * ROWS else len(flat)
    for begin in range(0, len(flat), rows):
        end = begin + rows
        gram[begin:end, begin:].addmm_(flat[begin:end], flat[begin:].T)


def mirror(matrix: Tensor) -> None:
    """Copy what lies above the diagonal below it, block by block, in place."""
    n = len(matrix)
    for begin in range(0, n, ROWS):
        end = min(begin + ROWS, n)
        own = matrix[begin:end, begin:end]
        own.copy_(own.triu() + own.triu(1).T)
        matrix[end:, begin:end] = matrix[begin:end, end:].T

"""Pairs and mixtures of tables that list few rows, without ever writing a whole table out (numba).

Client ``c`` lists the rows ``ids[c]``, ascending, ``n_items`` where there is none; ``values[c]`` are their
differences from a table that all share, zero where there is none.
"""

from __future__ import annotations

import numpy as np

from fedrec.compiled import njit


@njit(nogil=True, cache=True, error_model="numpy")
def pair_squares(clients, ids, values, norms, n_items, others, found):  # type: ignore[no-untyped-def]
    """``||Q_u - Q_v||^2`` of some clients and their candidates, by merging ascending ids."""
    length, dim = ids.shape[1], values.shape[2]
    for u in clients:
        for j in range(others.shape[1]):
            v = others[u, j]
            a, b, inner = 0, 0, 0.0
            while a < length and b < length and ids[u, a] < n_items and ids[v, b] < n_items:
                if ids[u, a] == ids[v, b]:
                    part = np.float32(0)
                    for t in range(dim):
                        part += values[u, a, t] * values[v, b, t]
                    inner += part
                    a += 1
                    b += 1
                elif ids[u, a] < ids[v, b]:
                    a += 1
                else:
                    b += 1
            found[u, j] = max(0.0, norms[u] + norms[v] - 2 * inner) if u != v else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def pair_angles(clients, vectors, start, others, found):  # type: ignore[no-untyped-def]
    """Eq. (7)'s mean angle of some clients and their candidates."""
    k = vectors.shape[1]
    for u in clients:
        for j in range(others.shape[1]):
            v = others[u, j]
            both = min(start[u + 1] - start[u], start[v + 1] - start[v])
            total = 0.0
            for l in range(k):
                inner = 0.0
                for i in range(both):
                    inner += vectors[start[u] + i, l] * vectors[start[v] + i, l]
                total += np.arccos(min(1.0, max(-1.0, inner)))
            found[u, j] = total / k


@njit(nogil=True, cache=True, error_model="numpy")
def mix_rows(clients, ids, values, n_items, others, weights, out_ids, out_values):  # type: ignore[no-untyped-def]
    """``sum_v w_uv Q_v`` of some clients; of all rows that occur, those that differ most stay."""
    length, dim = ids.shape[1], values.shape[2]
    keep = out_ids.shape[1]
    sums = np.zeros((n_items, dim), np.float32)
    seen = np.full(n_items, -1, np.int64)
    listed = np.empty(n_items, np.int32)
    for u in clients:
        count = 0
        for j in range(others.shape[1]):
            weight, v = weights[u, j], others[u, j]
            if weight == 0:
                continue
            for a in range(length):
                item = ids[v, a]
                if item >= n_items:
                    break
                if seen[item] != u:
                    seen[item] = u
                    listed[count] = item
                    count += 1
                    for t in range(dim):
                        sums[item, t] = weight * values[v, a, t]
                else:
                    for t in range(dim):
                        sums[item, t] += weight * values[v, a, t]
        chosen = listed[:count].copy()
        if count > keep:
            size = np.empty(count, np.float32)
            for i in range(count):
                size[i] = 0
                for t in range(dim):
                    size[i] -= sums[chosen[i], t] * sums[chosen[i], t]
            chosen = chosen[np.argsort(size, kind="mergesort")[:keep]]
        chosen.sort()
        out_ids[u] = n_items
        out_values[u] = 0
        for i in range(len(chosen)):
            out_ids[u, i] = chosen[i]
            for t in range(dim):
                out_values[u, i, t] = sums[chosen[i], t]

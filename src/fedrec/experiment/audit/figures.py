"""What a guess is worth: precision, recall and AUC beside chance and popularity, and the exposure of an item."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrec.attacks.contract import Float64, Found

Figures = dict[str, float]


def items_figures(found: Sequence[Found | None], own: Sequence[NDArray[np.int32]], popularity: Float64) -> Figures:
    """Means over clients that have items; ``own`` are their items, ``popularity`` ``[n_items]`` everybody's counts.

    An attack that names no set is given the size: then precision and recall are one figure. ``whose`` is how well
    guesses tell who of these clients has an item: what is merely popular does not help there, and 0.5 is chance.
    """
    rows, scores, truths = [], [], []
    for guess, items in zip(found, own, strict=True):
        if guess is None or guess.scores is None or not len(items):
            continue
        truth = np.zeros(len(popularity), bool)
        truth[items] = True
        chosen = best(guess.scores, len(items)) if guess.chosen is None else guess.chosen
        hits = float((chosen & truth).sum())
        usual = best(popularity, len(items))
        scores.append(guess.scores)
        truths.append(truth)
        rows.append(
            (
                hits / max(1, int(chosen.sum())), hits / len(items), auc(guess.scores, truth),
                len(items) / len(truth), float((usual & truth).sum()) / len(items), auc(popularity, truth),
            )
        )  # fmt: skip
    if not rows:
        return {}
    names = ("precision", "recall", "auc", "chance", "popular_precision", "popular_auc")
    means = dict(zip(names, (float(value) for value in np.mean(rows, axis=0)), strict=True))
    return {**means, "whose": whose(np.array(scores), np.array(truths)), "clients": float(len(rows))}


def whose(scores: Float64, truth: NDArray[np.bool_]) -> float:
    """Over items that some clients have and others have not: the chance that an owner is scored above another client.

    ``[clients, n_items]``; scores count by their rank with each client, so that scales do not matter; ties count half.
    """
    from scipy.stats import rankdata

    known = truth.any(0) & ~truth.all(0)
    if not known.any():
        return float("nan")
    ranks, owned = rankdata(rankdata(scores, axis=1)[:, known], axis=0), truth[:, known]
    owners = owned.sum(0)
    above = (ranks * owned).sum(0) - owners * (owners + 1) / 2
    return float((above / (owners * (len(truth) - owners))).mean())


def size_figures(found: Sequence[Found | None], sizes: Sequence[int]) -> Figures:
    """How near guesses of sizes are: rank correlation (its size), and the share within a tenth."""
    pairs = [(f.size, n) for f, n in zip(found, sizes, strict=True) if f is not None and f.size is not None]
    if len(pairs) < 3:
        return {}
    from scipy.stats import spearmanr

    guessed, true = np.array(pairs, float).T
    alike = np.ptp(guessed) == 0 or np.ptp(true) == 0
    rank = 0.0 if alike else float(abs(spearmanr(guessed, true).statistic))
    return {"size_rank": rank, "size_within_tenth": float((np.abs(guessed - true) <= 0.1 * true).mean())}


def best(scores: Float64, count: int) -> NDArray[np.bool_]:
    """``[n_items]`` the ``count`` highest; ties by number."""
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-scores, kind="stable")[:count]] = True
    return chosen


def auc(scores: Float64, truth: NDArray[np.bool_]) -> float:
    """The chance that one of the client's items is scored above another item; ties count half."""
    from scipy.stats import rankdata

    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def exposed(scores: NDArray[np.floating], seen: Sequence[NDArray[np.int32]], target: int, k: int = 10) -> float:
    """ER@k: the share of users with ``target`` among their k best items that they do not have; owners do not count."""
    hits = []
    for row, items in zip(scores, seen, strict=True):
        if target in items:
            continue
        left = row.astype(np.float64).copy()
        left[items] = -np.inf
        above = int((left > left[target]).sum()) + 0.5 * (int((left == left[target]).sum()) - 1)
        hits.append(float(above < k))
    return float(np.mean(hits)) if hits else float("nan")

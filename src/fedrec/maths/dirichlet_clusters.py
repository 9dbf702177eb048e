"""Dirichlet-process clustering of items (FedIAR Eq. 9-15): a truncated mixture, warm-started between rounds.

scikit-learn's variational mixture has the stick-breaking weights (Eq. 10, 14-15), the Normal-Wishart prior on means
and precisions, and the responsibilities of Eq. 13, with the right expectation of log phi_m in them. Its fitted state is
a handful of arrays, which the server keeps, so that the next round starts where this one ended and a resumed run equals
one that was never stopped.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

STATE = ("mean_precision_", "means_", "degrees_of_freedom_", "covariances_", "precisions_cholesky_")


@dataclass(frozen=True)
class Clusters:
    """Who belongs together, and what the next round starts from."""

    cluster: NDArray[np.int64]  # [n] c_i = argmax of the clustering potential
    state: dict[str, NDArray[np.float64]]


def cluster_items(
    table: NDArray[np.floating],
    most: int,
    alpha: float,
    seed: int,
    before: dict[str, NDArray[np.float64]] | None = None,
    iterations: int = 30,
) -> Clusters:
    """Cluster the rows of a table ``[n, d]`` into at most ``most`` (M) clusters.

    ``alpha`` is the concentration; ``before`` the state of an earlier call, which is then improved for a few
    iterations instead of starting with k-means.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    values = np.asarray(table, np.float64)
    scale = float(values.std()) or 1.0
    values = (values - values.mean(0)) / scale  # a common scale: clusters do not depend on the size of embeddings
    model = BayesianGaussianMixture(
        n_components=min(most, len(values)),
        covariance_type="diag",
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=alpha,
        max_iter=max(1, iterations // 5) if before else iterations,
        tol=1e-3,
        random_state=seed % (1 << 32),
        warm_start=True,
    )
    if before:
        restore(model, before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the next round goes on from here
        cluster = model.fit_predict(values)
    state = {name: np.array(getattr(model, name), np.float64) for name in STATE}
    state["weight_ones"], state["weight_rest"] = map(np.array, model.weight_concentration_)
    return Clusters(np.asarray(cluster, np.int64), state)


def restore(model: Any, state: dict[str, NDArray[np.float64]]) -> None:
    """Make a fresh mixture continue from a state."""
    for name in STATE:
        setattr(model, name, np.array(state[name]))
    model.weight_concentration_ = (np.array(state["weight_ones"]), np.array(state["weight_rest"]))
    model.converged_, model.lower_bound_ = False, -np.inf

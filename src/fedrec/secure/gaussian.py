"""The exact privacy of Gaussian noise (Balle and Wang 2018), from ``dp_accounting``."""

from __future__ import annotations

import numpy as np


def epsilon_of(sigma: float, delta: float) -> float:
    """Epsilon at delta of one release of sensitivity 1 with this deviation."""
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

    with np.errstate(divide="ignore"):  # where nothing is left to hide, its search takes log(0)
        return float(get_epsilon_gaussian(sigma, delta))


def sigma_of(epsilon: float, delta: float) -> float:
    """The least deviation with which one release of sensitivity 1 stays within epsilon at delta."""
    from dp_accounting.gaussian_mechanism import get_sigma_gaussian

    with np.errstate(divide="ignore"):
        return float(get_sigma_gaussian(epsilon, delta))

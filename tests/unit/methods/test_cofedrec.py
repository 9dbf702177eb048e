"""CoFedRec: how it groups users."""

from __future__ import annotations

import numpy as np

from fedrec.methods.cofedrec import cluster


def test_cofedrec_groups_users_by_their_changes_of_one_category() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    values = np.eye(3)[truth] * 5 + 0.1 * rng.normal(size=(60, 3))
    found = cluster(values, 3, 4)
    assert all(len(np.unique(found[truth == g])) == 1 for g in range(3))
    order = rng.permutation(60)
    np.testing.assert_array_equal(cluster(values[order], 3, 4), found[order])

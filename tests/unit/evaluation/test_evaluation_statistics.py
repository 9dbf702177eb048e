"""Statistics against values by hand and scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from fedrec.evaluation import statistics
from fedrec.evaluation.statistics import compare, holm, paired_over_seeds, paired_over_users, summarise


def test_summary() -> None:
    found = summarise([0.1, 0.2, 0.4])
    assert found.mean == pytest.approx(0.7 / 3)
    assert found.spread == pytest.approx(0.1527525)
    assert str(found) == "0.2333 ± 0.1528"
    assert str(summarise([0.5])) == "0.5000"
    assert np.isnan(summarise([0.5]).spread)
    assert np.isnan(summarise([]).mean)


def test_over_seeds_is_the_paired_t_test() -> None:
    left, right = [0.41, 0.42, 0.44, 0.40], [0.39, 0.41, 0.41, 0.40]
    assert paired_over_seeds(left, right) == pytest.approx(stats.ttest_rel(left, right).pvalue)
    assert paired_over_seeds([1.0, 2.0], [0.0, 0.0]) is None
    assert paired_over_seeds([1.0] * 3, [1.0] * 3) == 1.0
    assert paired_over_seeds([2.0] * 3, [1.0] * 3) == 0.0


def test_over_users_is_the_permutation_test() -> None:
    difference = np.array([0.3, -0.1, 0.4, 0.2, 0.25, 0.0, np.nan, 0.5, -0.05, 0.15])
    own = difference[~np.isnan(difference)]
    sums = [abs(np.dot(own, signs)) for signs in itertools.product((1, -1), repeat=len(own))]
    exact = np.mean(np.array(sums) >= abs(own.sum()) - 1e-12)
    assert paired_over_users(difference) == pytest.approx(exact, abs=0.01)
    assert paired_over_users(np.zeros(5)) == 1.0
    assert paired_over_users(difference) == paired_over_users(difference)


def test_many_users_go_by_the_normal_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    difference = np.random.default_rng(0).normal(0.06, 1.0, 900)
    flipped = paired_over_users(difference)
    monkeypatch.setattr(statistics, "_NORMAL_FROM", 10)
    assert paired_over_users(difference) == pytest.approx(flipped, abs=0.02)


def test_permutation_test_keeps_its_level() -> None:
    numbers = np.random.default_rng(1)
    below = [paired_over_users(numbers.normal(size=30), flips=199) <= 0.05 for _ in range(400)]
    assert 0.015 < np.mean(below) < 0.09


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_compare() -> None:
    numbers = np.random.default_rng(2)
    base = numbers.uniform(size=(3, 200))
    base[:, 7] = np.nan
    better = base + numbers.normal(0.05, 0.1, base.shape)
    same = base + numbers.normal(0.0, 0.1, base.shape)
    found = compare("base", {"base": list(base), "better": list(better), "same": list(same)})
    assert [c.method for c in found] == ["better", "same"]
    first, second = found
    assert first.significant
    assert not second.significant
    assert first.difference == pytest.approx(np.nanmean(better - base))
    assert first.low < first.difference < first.high
    assert (first.seeds, first.users) == (3, 199)
    assert first.p_adjusted == pytest.approx(min(1.0, 2 * first.p_users))
    assert second.p_adjusted >= second.p_users
    expected = stats.ttest_rel(np.nanmean(better, axis=1), np.nanmean(base, axis=1)).pvalue
    assert first.p_seeds == pytest.approx(expected)


def test_compare_with_one_seed_and_with_nothing_to_pair() -> None:
    base = np.zeros((1, 50))
    better = np.tile(np.array([0.0, 1.0]), 25)[None, :]
    (found,) = compare("base", {"base": list(base), "better": list(better)})
    assert found.p_seeds is None
    assert found.significant
    with pytest.raises(ValueError, match="cannot pair"):
        compare("base", {"base": list(base), "short": [np.zeros(3)]})
    (alone,) = compare("a", {"a": [np.array([np.nan])], "b": [np.array([np.nan])]})
    assert alone.users == 0
    assert not alone.significant

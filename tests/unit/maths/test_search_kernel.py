"""The search for candidates in tiles on the CPU, against whole rows of pairs in torch."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from fedrec.maths import neighbours
from fedrec.maths.neighbours import FewRows, candidates, mix_few
from fedrec.maths.search_kernel import arccos, sine


@pytest.mark.parametrize("kind", ["cos", "sin", "raw"])
@pytest.mark.parametrize("terms", ["both", "similar", "complementary"])
def test_tiles_find_what_whole_rows_find(
    kind: Literal["cos", "sin", "raw"], terms: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    n, k, width = 90, 3, 8
    counts = rng.integers(3, 9, n)  # lists of one item are at one of two angles: many are alike
    start = np.concatenate([[0], np.cumsum(counts)])
    vectors = rng.normal(size=(start[-1], k)).astype(np.float32)
    vectors /= np.sqrt(np.repeat(np.add.reduceat(vectors**2, start[:-1]), counts, axis=0))
    sketches = rng.normal(size=(n, width)).astype(np.float32) if terms != "complementary" else None
    rows, cuts = (None, None) if terms == "similar" else (vectors, start)
    weight = 0.0 if terms == "similar" else 0.2

    def found() -> list[set[int]]:
        chosen = candidates(sketches, rows, cuts, counts / counts.sum(), 0.5, weight, 7, kind)
        assert (chosen[:, 0] == np.arange(n)).all()  # oneself first
        return [set(row) for row in chosen]

    monkeypatch.setattr(neighbours, "TILE", (16, 25))
    in_tiles = found()
    monkeypatch.setattr(neighbours, "_best_in_tiles", neighbours._best_in_rows)
    assert in_tiles == found()


def test_polynomials_are_those_functions() -> None:
    for x in np.linspace(-1, 1, 201).astype(np.float32):
        assert arccos(x) == pytest.approx(math.acos(x), abs=1e-6)
        assert sine(x * np.float32(math.pi / 2)) == pytest.approx(math.sin(x * math.pi / 2), abs=1e-6)


def test_of_rows_that_differ_equally_the_first_stay() -> None:
    ids = np.array([[0, 1, 2, 3]] * 2, np.int32)
    values = np.ones((2, 4, 1), np.float32)
    values[:, 3] = 2
    mixed = mix_few(FewRows(ids, values, 5), np.array([[0, 1], [1, 0]]), np.full((2, 2), 0.5, np.float32), 2)
    np.testing.assert_array_equal(mixed.ids, [[0, 3]] * 2)
    np.testing.assert_array_equal(mixed.values[:, :, 0], [[1, 2]] * 2)

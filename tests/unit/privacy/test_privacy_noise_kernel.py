"""The compiled noise against the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec import keyed
from fedrec.core.block import Block
from fedrec.core.method import Keys
from fedrec.privacy import noise
from fedrec.privacy.draws import KeyedDraws
from fedrec.privacy.noise import Noise


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_kernel_gives_what_numpy_gives(
    kind: type[np.floating[Any]], block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    start = np.array([0, 2, 2, 5, 6, 9])  # a client without rows among them
    before = np.random.default_rng(3).normal(size=(9, 1001)).astype(kind)
    plain, compiled = before.copy(), before.copy()
    draws = KeyedDraws(Keys(7, 3), block, "noise table", start)
    Noise(0.3)._add(plain, draws)
    monkeypatch.setattr(noise, "LARGE", 1)
    Noise(0.3)._add(compiled, draws)
    assert np.abs(plain - before).mean() == pytest.approx(0.3, rel=0.05)  # E|Laplace(0, b)| = b
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-6)
    first = 0.3 * keyed.laplace(draws.streams[:1], 2 * 1001).reshape(2, 1001)
    np.testing.assert_allclose(compiled[:2] - before[:2], first, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1000, 1001])  # draws come in pairs
def test_the_gaussian_kernel_gives_what_numpy_gives(
    kind: type[np.floating[Any]], width: int, block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    start = np.array([0, 2, 2, 5, 6, 9])
    before = np.random.default_rng(3).normal(size=(9, width)).astype(kind)
    plain, compiled = before.copy(), before.copy()
    draws = KeyedDraws(Keys(7, 3), block, "noise table", start)
    Noise(0.3, "gaussian")._add(plain, draws)
    monkeypatch.setattr(noise, "LARGE", 1)
    Noise(0.3, "gaussian")._add(compiled, draws)
    assert np.std(plain - before) == pytest.approx(0.3, rel=0.05)
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-6)

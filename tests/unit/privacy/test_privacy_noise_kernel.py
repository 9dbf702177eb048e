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


def before_plain_and_compiled(law: Any, kind: Any, width: int, draws: KeyedDraws, patch: pytest.MonkeyPatch) -> Any:
    """Numbers, and the same with noise that numpy added and that the kernel added."""
    pytest.importorskip("numba")
    before = np.random.default_rng(3).normal(size=(9, width)).astype(kind)
    plain, compiled = before.copy(), before.copy()
    Noise(0.3, law)._add(plain, draws)
    patch.setattr(noise, "LARGE", 1)
    Noise(0.3, law)._add(compiled, draws)
    return before, plain, compiled


@pytest.fixture
def draws(block: Block) -> KeyedDraws:
    start = np.array([0, 2, 2, 5, 6, 9])  # a client without rows among them
    return KeyedDraws(Keys(7, 3), block, "noise table", start)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_kernel_gives_what_numpy_gives(
    kind: type[np.floating[Any]], draws: KeyedDraws, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, plain, compiled = before_plain_and_compiled("laplace", kind, 1001, draws, monkeypatch)
    assert np.abs(plain - before).mean() == pytest.approx(0.3, rel=0.05)  # E|Laplace(0, b)| = b
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-6)
    first = 0.3 * keyed.laplace(draws.streams[:1], 2 * 1001).reshape(2, 1001)
    np.testing.assert_allclose(compiled[:2] - before[:2], first, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1000, 1001])  # draws come in pairs
def test_the_gaussian_kernel_gives_what_numpy_gives(
    kind: type[np.floating[Any]], width: int, draws: KeyedDraws, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, plain, compiled = before_plain_and_compiled("gaussian", kind, width, draws, monkeypatch)
    assert np.std(plain - before) == pytest.approx(0.3, rel=0.05)
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-6)

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


def test_logarithms_of_the_kernel_are_those_of_numpy() -> None:
    pytest.importorskip("numba")
    from fedrec.privacy.noise_kernel import to_logarithms

    ends = [1.0, np.nextafter(1, 0), 0.5, np.sqrt(0.5), np.nextafter(np.sqrt(0.5), 0), 2.0**-53, 1e-300]
    values = np.concatenate([ends, np.random.default_rng(0).random(2000), np.geomspace(1e-16, 1, 500)])
    expected = np.log(values)
    to_logarithms(values, values.view(np.int64), np.empty(len(values), np.int64))
    np.testing.assert_allclose(values, expected, rtol=1e-15, atol=1e-16)


def test_numbers_that_do_not_lie_in_one_run_get_their_noise(draws: KeyedDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.zeros((2000, 9)).T
    monkeypatch.setattr(noise, "LARGE", 1)
    Noise(0.3)._add(numbers, draws)
    np.testing.assert_allclose(numbers[:2], 0.3 * keyed.laplace(draws.streams[:1], 4000).reshape(2, 2000), atol=1e-12)

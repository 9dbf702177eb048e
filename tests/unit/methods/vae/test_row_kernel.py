"""Adam steps of private layers by the kernel, beside plain Adam in double precision."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fedrec.methods.vae.own_encoder import OwnLayers, equal_parts

EPOCHS, RATE = 4, 1e-2


def trained(
    rows: int, width: int, kernel: bool, size: float = 1.0, epochs: int = EPOCHS
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Weights, last outputs and last gradients of the inputs of three users' layers after some epochs."""
    users, drawn = 3, np.random.default_rng(rows * 1000 + width)
    kind = torch.float32 if kernel else torch.float64
    weights = torch.from_numpy(drawn.normal(size=(users * rows, width)).astype(np.float32)).to(kind)
    layers = OwnLayers(equal_parts(users, rows), weights, epochs, RATE, kernel=kernel)
    out, back = weights.new_zeros(users, width), weights.new_zeros(users * rows)
    for epoch in range(epochs):
        inputs = drawn.normal(size=users * rows).astype(np.float32)
        inputs[drawn.random(users * rows) < 0.4] = 0  # dropped
        inputs[:rows] *= 0  # a user whose inputs are all dropped
        delta = (size * drawn.normal(size=(users, width))).astype(np.float32)
        delta[:, ::5] = 0
        out = layers.forward(torch.from_numpy(inputs).to(kind), epoch)
        back = layers.backward(torch.from_numpy(delta).to(kind), epoch)
    return weights.double().numpy(), out.double().numpy(), back.double().numpy()


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("width", [1, 31, 32, 33, 70, 512])
def test_rows_and_widths_of_every_kind(rows: int, width: int) -> None:
    for found, expected in zip(trained(rows, width, True), trained(rows, width, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e-12, 1e-8, 1e-4, 1e4, 1e8])
def test_gradients_of_every_size(size: float) -> None:
    moved, expected = trained(5, 64, True, size)[0], trained(5, 64, False, size)[0]
    np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-6)


def test_squares_that_overflow_move_nothing_and_what_is_no_number_stays_visible() -> None:
    before = trained(5, 64, True, epochs=0)[0]
    assert np.array_equal(trained(5, 64, True, 1e25, epochs=1)[0], before)
    for size in (np.inf, np.nan):
        with np.errstate(invalid="ignore"):
            assert np.isnan(trained(5, 64, True, size)[0]).any()


def test_rows_without_inputs_stay_as_they_are() -> None:
    assert np.array_equal(trained(5, 64, True)[0][:5], trained(5, 64, True, epochs=0)[0][:5])


def test_a_processor_without_estimates_takes_the_same_steps(tmp_path: Path) -> None:
    """Compiled for any processor of its kind: what an older one would do."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import numpy, test_row_kernel\n"
        "numpy.save(sys.argv[2], test_row_kernel.trained(5, 70, True)[0])"
    )
    made = tmp_path / "weights.npy"
    subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(made)], check=True,
        env={**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    np.testing.assert_allclose(np.load(made), trained(5, 70, True)[0], rtol=0, atol=1e-6)

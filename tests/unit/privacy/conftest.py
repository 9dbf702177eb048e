"""A small upload with every kind of field, and the block it belongs to."""

from __future__ import annotations

import numpy as np
import pytest

from fedrec.core.block import Block
from privacy_samples import Sample, make_block, make_sample


@pytest.fixture
def block() -> Block:
    return make_block([1, 3, 2, 0, 1])


@pytest.fixture
def sample() -> Sample:
    return make_sample([1, 3, 2, 0, 1], np.random.default_rng(5))

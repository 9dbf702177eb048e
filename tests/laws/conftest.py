"""Worlds for the laws, and the methods and participation patterns that every law is tried with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the laws share small_runs.py

from small_runs import PATTERNS

from fedrec.data.load import load
from fedrec.methods.registry import federated


@pytest.fixture(scope="session")
def demo() -> Any:
    return load("demo")


@pytest.fixture(scope="session")
def tiny(demo: Any) -> Any:
    """Thirty users of the demo world."""
    from fedrec.data.filters import keep_users

    stay = np.zeros(demo.n_users, bool)
    stay[:30] = True
    return keep_users(demo, stay)


def pytest_generate_tests(metafunc: Any) -> None:
    if "method" in metafunc.fixturenames:
        metafunc.parametrize("method", federated())
    if "pattern" in metafunc.fixturenames:
        metafunc.parametrize("pattern", list(PATTERNS))

"""The methods that every law is tried with: all federated ones, or those of ``FEDREC_LAWS_METHOD`` (``make laws``)."""

from __future__ import annotations

import os

import pytest

from fedrec.methods.registry import federated, find


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "method" in metafunc.fixturenames:
        metafunc.parametrize("method", chosen())


def chosen() -> list[str]:
    """Names with commas between them; an unknown one ends the tests with the nearest known one."""
    given = [name.strip() for name in os.environ.get("FEDREC_LAWS_METHOD", "").split(",") if name.strip()]
    for name in given:
        find(name)
    return given or federated()

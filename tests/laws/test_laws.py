"""Every law that the package knows, for every federated method."""

from __future__ import annotations

import os

import pytest

from fedrec.laws.checking import LAWS, Check

CHECKS = [
    pytest.param(check, id=f"law-{law.number}-{check.__name__.replace('_', '-')}")
    for law in LAWS
    for check in law.checks
    if law.number != 2 or os.environ.get("FEDREC_LAWS_METHOD")  # tests/deploy tries it
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_law_holds(check: Check, method: str) -> None:
    check(method)


def test_laws_are_numbered_as_in_the_design() -> None:
    assert [law.number for law in LAWS] == [1, 2, 3, 4, 5, 6, 7, 8, 10]

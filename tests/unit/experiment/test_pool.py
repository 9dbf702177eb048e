"""What processes of a pool find in their environment."""

from __future__ import annotations

import os

import pytest

from fedrec.experiment.pool import thread_limits


def test_a_process_has_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    for name in thread_limits(1):
        monkeypatch.delenv(name, raising=False)
    assert set(thread_limits(4).values()) == {"4"}
    assert set(thread_limits(32).values()) == {"1"}


def test_fewer_threads_that_the_caller_set_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("FEDREC_THREADS", "1")
    limits = thread_limits(2)
    assert limits["FEDREC_THREADS"] == "1"
    assert limits["OMP_NUM_THREADS"] == "8"


@pytest.mark.parametrize("text", ["16", "0", "", "4,2", "many"])
def test_a_number_for_the_whole_machine_does_not_raise_a_share(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert thread_limits(4)["OMP_NUM_THREADS"] == "4"

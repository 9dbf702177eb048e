"""Flower's server as this project starts it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fedrec.deploy.flower.superlink import wait_for_the_database


def test_calls_wait_a_minute_for_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flwr.supercore import sql_mixin

    flower: Any = sql_mixin
    monkeypatch.setattr(flower, "SQLITE_PRAGMAS", flower.SQLITE_PRAGMAS)  # put back afterwards
    wait_for_the_database()
    connection = sqlite3.connect(tmp_path / "state.db")
    flower._set_sqlite_pragmas(connection, None)
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",), "the others stay"

"""Fixtures of the data tests."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from data_files import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below the test's folder: text or bytes, packed where the name ends in .gz."""

    def put(name: str, content: str | bytes, encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode(encoding) if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    return put


@pytest.fixture
def real_data() -> Path:
    """The folder with the public data sets, where this machine has one."""
    where = os.environ.get("FEDREC_DATA")
    if not where or not Path(where).is_dir():
        pytest.skip("FEDREC_DATA does not point to a folder of public data sets")
    return Path(where)

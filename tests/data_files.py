"""What the fixture ``write`` is, and what is said of data that is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from fedrec.data.load import load
from fedrec.errors import BadInput


class Write(Protocol):
    """Writes a file below the test's folder: text or bytes, packed where the name ends in .gz."""

    def __call__(self, name: str, content: str | bytes, encoding: str = "utf-8") -> Path: ...


def refused(source: Any, **options: Any) -> str:
    """The one line with which a file, a folder or a table is refused."""
    with pytest.raises(BadInput) as caught:
        load(source, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) <= 300
    return str(caught.value)

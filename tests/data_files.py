"""What the fixture ``write`` is."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Write(Protocol):
    """Writes a file below the test's folder: text or bytes, packed where the name ends in .gz."""

    def __call__(self, name: str, content: str | bytes, encoding: str = "utf-8") -> Path: ...

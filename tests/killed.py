"""Kills without a signal: an exception that nothing catches, and nothing clears up after."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Killed(BaseException):
    """In place of a signal."""


@contextmanager
def killed_before(name: str) -> Iterator[None]:
    """What happens inside is killed when a file of this name is whole, but not yet in its place."""
    replace = os.replace

    def dies(source: Any, target: Any) -> None:
        if Path(target).name == name:
            raise Killed
        replace(source, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "replace", dies)
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # who is killed clears nothing up
        with pytest.raises(Killed):
            yield

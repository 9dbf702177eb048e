"""A fuzz target that goes wrong in every way."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Literal


class Toy:
    """Raises, takes too much memory, or dies, once in a while."""

    def __init__(self) -> None:
        self.doing = "toy"

    def prepare(self, folder: Path) -> None:
        assert not list(folder.iterdir())

    def attempt(self, draw: random.Random) -> Literal["accepted", "refused"]:
        way = draw.randrange(60)
        if way == 0:
            raise KeyError("unclean")
        if way == 1:
            bytearray(1 << 30)
        if way == 2:
            os._exit(3)
        return "refused" if way % 2 else "accepted"

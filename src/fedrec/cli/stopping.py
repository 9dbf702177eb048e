"""How an interrupt or a termination signal ends a command: with one line, and a status of its own."""

from __future__ import annotations

import signal
from typing import Any

from click import Context
from typer.core import TyperGroup

from fedrec.interrupts import Terminated


class Stopped(Exception):
    """Either of them, as it reaches the entry point: Typer ends a command on its own at a KeyboardInterrupt."""

    def __init__(self, why: KeyboardInterrupt) -> None:
        super().__init__(str(why) or ("terminated" if isinstance(why, Terminated) else "interrupted"))
        self.status = 128 + (signal.SIGTERM if isinstance(why, Terminated) else signal.SIGINT)


class Verbs(TyperGroup):
    """The command line's verbs, whose interrupts reach the entry point."""

    def invoke(self, ctx: Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as why:
            raise Stopped(why) from None

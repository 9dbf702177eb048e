"""When and on what kind of machine a report was made; no name of a machine or of a person."""

from __future__ import annotations

import os
import platform
from datetime import datetime


def here() -> str:
    """``Made 2026-11-16 15:40 on Linux x86_64, 2 processors.``"""
    system = " ".join(part for part in (platform.system(), platform.machine()) if part) or "an unknown system"
    count = os.cpu_count() or 1
    when = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z")
    return f"Made {when} on {system}, {count} processor{'s'[: count != 1]}."

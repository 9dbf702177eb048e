"""How much a data file may ask for, so that a small file cannot take all memory, and how errors stay short."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fedrec.errors import BadInput

MIB = 1 << 20
VARIABLE = "FEDREC_MAX_BYTES"
"""Environment variable: the largest data file, unpacked, in bytes ('20G' is understood)."""
LARGEST = 8 << 30
"""Bytes of one data file, unpacked, or of one download, when nobody says otherwise."""
ALWAYS = 64 * MIB
"""A packed file may unpack to this much whatever its own size."""
RATIO = 100
"""Beyond that, to so many times its own size; text packs 3 to 20 times."""
LINE = MIB
"""Bytes in one line of a table."""
LONG_LINE = 16 * MIB
"""Bytes in one line of a file with a line per user."""
BLANK = MIB
"""Bytes of white space before the first character that counts."""
COLUMNS = 1024
ID = 256
"""Characters in one id."""
ID_TABLE = 256 * MIB
"""Bytes of a table of ids, all as wide as the widest, that are always allowed."""
ID_WASTE = 32
"""Beyond that, so many times the bytes of the ids themselves."""
MESSAGE = 300
"""Characters of an error about data."""

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def chosen() -> int | None:
    """The limit that a person set, or None."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    match = re.fullmatch(r"([0-9]{1,15})\s*([kmgt]?)(?:i?b)?", text.lower())
    if match is None or int(match[1]) == 0:
        raise BadInput(f"{VARIABLE}={brief(text)} is not a size; write bytes, or 500M or 20G")
    return int(match[1]) * _UNITS[match[2]]


def largest() -> int:
    """Bytes of a file that is read or fetched as it is."""
    return chosen() or LARGEST


def unpacked(packed: int) -> int:
    """Bytes to which a file of this many packed bytes may unpack."""
    return chosen() or min(LARGEST, max(ALWAYS, RATIO * packed))


def too_large(what: str | Path, limit: int) -> BadInput:
    """The refusal of a file that is, or becomes, larger than the limit."""
    return BadInput(f"{what} holds more than {size(limit)}; if this is correct, raise the limit with {VARIABLE}=20G")


def unreadable(what: str | Path, said: str) -> BadInput:
    """The refusal of what a library cannot read, with the first line of what it says."""
    return BadInput(f"cannot read {what}: {brief(said.splitlines()[0], 100)[1:-1]}")


def size(count: int) -> str:
    """Bytes for people.

    >>> size(3 << 30), size(64 << 20), size(5)
    ('3.0 GiB', '64 MiB', '5 bytes')
    """
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GiB"
    return f"{count // MIB} MiB" if count >= MIB else f"{count} bytes"


def brief(value: object, most: int = 40) -> str:
    """A value in quotes, cut where it is long, on one line.

    >>> brief("abc"), brief("x" * 50, 5)
    ("'abc'", "'xxxxx...'")
    """
    text = str(value)
    return repr(text if len(text) <= most else text[:most] + "...")


def names(found: list[str] | tuple[str, ...], most: int = 8) -> str:
    """A list of column or file names, cut where it is long."""
    shown = ", ".join(brief(name.strip(), 24)[1:-1] for name in found[:most])
    return shown + (f" and {len(found) - most} more" if len(found) > most else "")


def ends(value: object, most: int) -> str:
    """A text whose middle is left out where it is long: a path ends with what matters, an error too.

    >>> ends("abc", 9), ends("/home/somebody/data", 11)
    ('abc', '/hom...data')
    """
    text = " ".join(str(value).split())
    half = (most - 3) // 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]}"


def short(problem: BadInput) -> BadInput:
    """The same error in at most ``MESSAGE`` characters: the middle of a long one (a long path) is left out."""
    text = " ".join(str(problem).split())
    if len(text) <= MESSAGE and text == str(problem):
        return problem
    if len(text) > MESSAGE:
        text = f"{text[:140]} ... {text[-(MESSAGE - 145) :]}"
    return BadInput(text)

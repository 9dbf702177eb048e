"""Words out of data and folders as a terminal may show them: whoever wrote them does not get to steer it."""

from __future__ import annotations

import unicodedata

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Turn the direction of all that follows."""
SPACES = "\t\n\v\f\r\x85\u2028\u2029"
"""Would begin a line of their own, or leave gaps."""
_TABLE = {ord(one): " " for one in SPACES} | {ord(one): "\ufffd" for one in BIDI}


def shown(text: object) -> str:
    """One line without control characters; files are written as the data has it.

    >>> shown("Alien \\x1b[31m(1979)\\n"), shown("Am\u00e9lie \u05d0")
    ('Alien \ufffd[31m(1979) ', 'Am\u00e9lie \u05d0')
    """
    line = str(text).translate(_TABLE)
    if line.isprintable():
        return line
    return "".join("\ufffd" if unicodedata.category(one) in ("Cc", "Cs") else one for one in line)

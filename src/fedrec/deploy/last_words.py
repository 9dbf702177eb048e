"""Why a program ended, as one line out of its log: Flower's logs have colours, frames and whole tracebacks."""

from __future__ import annotations

import re

from fedrec.report.text.shown import shown

MOST_LINES, MOST_LETTERS = 3, 400
SILENT = "it gave no reason"

_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")
"""Colours and their like, titles of windows, and other codes for a terminal."""
_FRAME = re.compile("[\u2500-\u257f]+")
_PASSING = re.compile(
    r"(INFO|DEBUG)\b|Using SuperLink:|Successfully started run|Traceback \(|During handling of |The above exception "
)
"""Lines that give no reason."""


def without_codes(line: str) -> str:
    """A line as a terminal shows it, without colours."""
    return _CODE.sub("", line)


def last_words(log: str) -> str:
    """The last lines that say something, each once; of a traceback what was raised.

    >>> last_words("INFO: up\\nTraceback (most recent call last):\\n  File x\\nValueError: \\x1b[91mno\\x1b[0m\\n")
    'ValueError: no'
    """
    found: dict[str, None] = {}
    for line in log.splitlines():
        plain = without_codes(line)
        text = " ".join(_FRAME.sub(" ", plain).split())
        if text and not plain[0].isspace() and not _PASSING.match(text):  # indented: where a traceback has been
            found.pop(text, None)
            found[text] = None
    words = shown(" ".join(list(found)[-MOST_LINES:])).removesuffix(".")
    return (words if len(words) <= MOST_LETTERS else f"{words[:MOST_LETTERS]}...") or SILENT

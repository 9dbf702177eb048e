"""Links between pages that stand elsewhere in the site than in the repository."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def relinked(text: str, path: str, places: Mapping[str, str]) -> str:
    """A page's text with its links as the site needs them; those that lead nowhere are left for the builder to find.

    >>> relinked("[it](../SECURITY.md#who)", "docs/index.md", {"docs/index.md": "index.md", "SECURITY.md": "p/s.md"})
    '[it](p/s.md#who)'
    """
    here = posixpath.dirname(path)
    there = posixpath.dirname(places[path])

    def moved(found: re.Match[str]) -> str:
        before, link, after = found.groups()
        target = posixpath.normpath(posixpath.join(here, link))
        if ":" in link or target not in places:
            return found[0]
        return before + posixpath.relpath(places[target], there or ".") + after

    pieces = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if piece.startswith("```") else LINK.sub(moved, piece) for piece in pieces)

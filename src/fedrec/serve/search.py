"""Items by title: all words must occur, in any case and without their accents; beginnings come first."""

from __future__ import annotations

import unicodedata
from functools import cached_property
from typing import Any

MOST_FOUND = 100
LONGEST = 200
"""Letters of a search."""


class Search:
    """Titles (ids where there are none) that can be searched."""

    def __init__(self, item_ids: Any, titles: Any) -> None:
        self.item_ids, self.titles = item_ids, titles

    @cached_property
    def _folded(self) -> list[str]:
        return [folded(str(text)) for text in (self.item_ids if self.titles is None else self.titles)]

    def find(self, text: str, most: int = 20) -> list[dict[str, str | None]]:
        """Items whose title has all words of a text; an item of exactly this id before all others."""
        whole = folded(text[:LONGEST])
        words = whole.split()
        if not words:
            return []
        found = []
        for number, title in enumerate(self._folded):
            if str(self.item_ids[number]) == text:
                found.append((False, False, False, number))
            elif all(word in title for word in words):
                found.append((True, not title.startswith(whole), not f" {title}".count(f" {words[0]}"), number))
        found.sort()
        places = [order[-1] for order in found[:most]]
        return [
            {"item": str(self.item_ids[place]), "title": None if self.titles is None else str(self.titles[place])}
            for place in places
        ]


def folded(text: str) -> str:
    """Small letters without accents.

    >>> folded("Amélie (2001)")
    'amelie (2001)'
    """
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))

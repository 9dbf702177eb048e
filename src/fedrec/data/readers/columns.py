"""Which column means what, by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedrec.errors import BadInput

KNOWN: dict[str, tuple[str, ...]] = {
    "user": ("user", "user_id", "userid", "uid", "reviewerid", "visitor_id"),
    "item": (
        "item", "item_id", "itemid", "iid", "movie_id", "movieid", "movie", "artist_id", "artistid",
        "product_id", "productid", "asin", "isbn", "business_id", "venue_id", "venueid", "book_id",
        "bookid", "video_id",
    ),
    "rating": ("rating", "ratings", "score", "stars", "weight", "value"),
    "time": ("timestamp", "time", "unixtime", "unixreviewtime", "datetime", "date"),
    "title": ("title", "item_title", "movie_title"),
    "client": ("client", "client_id", "clientid"),
}  # fmt: skip

BY_POSITION = ("user", "item", "rating", "time")


def meaning(name: str) -> str | None:
    """'user', 'item', 'rating', 'time', 'title', 'client' or None.

    >>> meaning("User ID"), meaning("item_id:token"), meaning("colour")
    ('user', 'item', None)
    """
    plain = name.split(":")[0].strip().strip('"').lower().replace(" ", "_").replace("-", "_")
    return next((what for what, words in KNOWN.items() if plain in words), None)


def is_header(cells: Sequence[str]) -> bool:
    """Whether these cells name columns: at least one is a known name."""
    return any(meaning(cell) is not None for cell in cells)


def by_name(cells: Sequence[str], path: Path) -> list[str]:
    """A name for each column: its meaning where it has one, its own name otherwise."""
    names: list[str] = []
    for cell in cells:
        what = meaning(cell)
        names.append(what if what is not None and what not in names else f"other:{len(names)}:{cell}")
    require(names, cells, path)
    return names


def require(names: Sequence[str], found: Sequence[str], path: Path) -> None:
    """Refuse a table without users or items."""
    for what in ("user", "item"):
        if what not in names:
            shown = ", ".join(cell.strip() for cell in found)
            raise BadInput(f"{path} has no {what} column; columns found: {shown}; name one of them {what!r}")


def by_position(count: int, path: Path) -> list[str]:
    """Names for a file without a header: user item [rating [timestamp]]."""
    if not 2 <= count <= len(BY_POSITION):
        raise BadInput(
            f"{path} has {count} columns and no header; without one it must be 'user item', "
            "'user item rating' or 'user item rating timestamp'"
        )
    return list(BY_POSITION[:count])

"""Which column means what: by its name, or as a person says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedrec.data import limits
from fedrec.errors import BadInput, unknown

KNOWN: dict[str, tuple[str, ...]] = {
    "user": (
        "user", "userid", "uid", "username", "reviewerid", "visitorid", "customer", "customerid", "custid",
        "memberid", "accountid", "buyerid", "shopperid", "listenerid", "readerid", "patientid", "playerid",
    ),
    "item": (
        "item", "itemid", "iid", "movie", "movieid", "artistid", "product", "productid", "productcode", "sku",
        "asin", "parentasin", "isbn", "businessid", "venueid", "bookid", "videoid", "articleid", "stockcode",
        "trackid", "songid", "newsid", "gameid", "appid", "recipeid", "contentid", "goodsid", "materialnumber",
    ),
    "rating": (
        "rating", "ratings", "score", "stars", "weight", "value", "overall", "bookrating", "starrating", "userrating",
    ),
    "time": (
        "timestamp", "time", "unixtime", "unixreviewtime", "unixtimestamp", "datetime", "date", "ts", "createdat",
        "purchasedat", "purchasedate", "orderdate", "invoicedate", "reviewdate", "eventtime", "eventtimestamp",
        "ratedat", "viewedat", "playedat",
    ),
    "title": ("title", "itemtitle", "movietitle"),
    "client": ("client", "clientid"),
}  # fmt: skip
"""Names without case, blanks and signs; of two in one header, the first here is taken."""

BY_POSITION = ("user", "item", "rating", "time")


def meaning(name: str) -> str | None:
    """'user', 'item', 'rating', 'time', 'title', 'client' or None.

    >>> meaning("User ID"), meaning("item_id:token"), meaning("CustomerID"), meaning("colour")
    ('user', 'item', 'user', None)
    """
    plain = _plain(name)
    return next((what for what, words in KNOWN.items() if plain in words), None)


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name[:80].split(":")[0].lower())


def parse(text: str | None) -> dict[str, str]:
    """What ``--columns user=CustomerID,item=SKU`` says: meaning to column name.

    >>> parse("user=CustomerID, item=SKU")
    {'user': 'CustomerID', 'item': 'SKU'}
    >>> parse('user="Name, first",item=SKU')
    {'user': 'Name, first', 'item': 'SKU'}
    """
    pairs: list[tuple[str, str]] = []
    for pair in (part for part in re.findall(r'(?:"[^"]*"|[^,])+', text or "") if part.strip()):
        what, sign, name = (part.strip() for part in pair.partition("="))
        name = name[1:-1].strip() if len(name) > 1 and name[0] == name[-1] == '"' else name
        if not sign or not name:
            raise BadInput(f"--columns {limits.brief(pair)} says nothing; write user=NAME,item=NAME")
        pairs.append((what, name))
    return _checked(pairs)


def given(found: Mapping[str, str] | str | None) -> dict[str, str]:
    """Meaning to column name, of text or a mapping."""
    if found is None or isinstance(found, str):
        return parse(found)
    if not isinstance(found, Mapping):
        raise BadInput(f"columns={limits.brief(found)} says nothing; write 'user=NAME,item=NAME' or {{'user': 'NAME'}}")
    for what, name in found.items():
        if not (isinstance(what, str) and isinstance(name, str) and name.strip()):
            raise BadInput(f"columns: {limits.brief(what)} is {limits.brief(name)}; give the name of a column, as text")
    return _checked(list(found.items()))


def _checked(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for what, name in pairs:
        if what not in KNOWN:
            raise unknown("meaning in --columns", what, KNOWN)
        if what in chosen:
            raise BadInput(f"--columns names {what} twice; name it once")
        if name in chosen.values():
            raise BadInput(f"--columns uses {limits.brief(name)} twice; a column has one meaning")
        chosen[what] = name
    return chosen


def is_header(cells: Sequence[str], chosen: Mapping[str, str] | None = None) -> bool:
    """Whether these cells name columns: at least one is a known name, or one that a person gave."""
    wanted = {name.strip().lower() for name in (chosen or {}).values()}
    return any(cell.strip().lower() in wanted or meaning(cell) is not None for cell in cells)


def by_name(cells: Sequence[str], path: Path | str, chosen: Mapping[str, str] | None = None) -> list[str]:
    """A name for each column: its meaning where it has one, 'other:NUMBER' otherwise; users and items must be there."""
    if len(cells) > limits.COLUMNS:
        raise BadInput(f"{path} has {len(cells)} columns; at most {limits.COLUMNS} are read")
    at = {_find(name, cells, path): what for what, name in (chosen or {}).items()}
    found = [(meaning(cell), index) for index, cell in enumerate(cells)]
    for what in KNOWN:
        those = [index for known, index in found if known == what and index not in at]
        if those and what not in at.values():
            at[_plainest(what, those, cells)] = what
    names = [at.get(index, f"other:{index}") for index in range(len(cells))]
    for what in ("user", "item"):
        if what not in names:
            raise BadInput(
                f"{path} has no {what} column; columns found: {limits.names(list(cells))}; say which is it with "
                f"--columns {what}=NAME"
            )
    return names


def _plainest(what: str, those: Sequence[int], cells: Sequence[str]) -> int:
    """Of columns with one meaning, that whose name says it most plainly: 'userid', not 'username'; of times, the first,
    since a time may be one of day beside a date."""
    if what == "time":
        return those[0]
    return min(those, key=lambda index: (KNOWN[what].index(_plain(cells[index])), index))


def _find(name: str, cells: Sequence[str], path: Path | str) -> int:
    """The column that a person means: by its exact name, else whatever its case."""
    exact = [index for index, cell in enumerate(cells) if cell.strip() == name]
    there = exact or [index for index, cell in enumerate(cells) if cell.strip().lower() == name.lower()]
    if len(there) == 1:
        return there[0]
    if there:
        raise BadInput(f"{path} has {len(there)} columns called {limits.brief(name)}; rename one")
    raise BadInput(f"{path} has no column {limits.brief(name)}; columns found: {limits.names(list(cells))}")


def by_position(count: int, path: Path) -> list[str]:
    """Names for a file without a header: user item [rating [timestamp]]."""
    if not 2 <= count <= len(BY_POSITION):
        raise BadInput(
            f"{path} has {count} columns and no header; without one it must be 'user item', "
            "'user item rating' or 'user item rating timestamp'; if line 1 is a header, say which columns are which "
            "with --columns user=NAME,item=NAME"
            + ("; of one line per user, put blanks between its items" if count > len(BY_POSITION) else "")
        )
    return list(BY_POSITION[:count])

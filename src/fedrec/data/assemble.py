"""From rows of text to dense, ordered interactions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fedrec.data import limits
from fedrec.data.interactions import Interactions, numeric_order, renumbered
from fedrec.data.ragged import Int32, Int64, Ragged, listed
from fedrec.data.readers.rows import Rows
from fedrec.data.readers.values import FARTHEST, ROUNDED
from fedrec.data.understood import ORDER_ONLY, Understood
from fedrec.errors import BadInput

NOTHING = frozenset((
    "\\N", "NULL", "Null", "null", "NaN", "nan", "None", "none", "NA", "<NA>", "N/A", "n/a", "#N/A", "(null)",
    "undefined",
))  # fmt: skip
"""How databases, spreadsheets and languages write that there is no value."""
FIXED_WIDTH = 8
"""Ids all of one length, at least this long (ISBN, ASIN, hashes), may mix digits and letters."""


def assemble(rows: Rows, name: str, min_rating: float | None = None) -> Interactions:
    """Number users and items, merge repeats, order by user and time.

    Of a repeated pair the earliest row stays; the last, in a person's own file with times, whatever its rating. A
    rating above 0 is an interaction; with ``min_rating``, one of at least that. Ids are numbered in numeric order where
    all are whole numbers, else in text order, so the numbering depends on the ids alone.
    """
    users, user_ids = _dense(rows.users, "user", rows)
    items, item_ids = _dense(rows.items, "item", rows)
    clients = client_ids = None
    if rows.clients is not None:
        clients, client_ids = _dense(rows.clients, "client", rows)
    rated = _rated(rows, name, min_rating)
    ordered = np.lexsort((*([] if rows.times is None else [rows.times]), users))
    last = rows.given and rows.times is not None
    if last:  # who rated twice has changed their mind
        order = _one_of_each_pair(ordered, rows, users, items, len(item_ids), last)
        merged, order = len(rows) - len(order), order[rated[order]]
        below = len(rows) - merged - len(order)
    else:
        below, kept = int((~rated).sum()), ordered[rated[ordered]]
        order = _one_of_each_pair(kept, rows, users, items, len(item_ids), last)
        merged = len(kept) - len(order)
    if not len(order):
        raise BadInput(f"{name}: no user's last rating of an item is {_least(min_rating)}")
    understood = replace(
        rows.understood or Understood(name, "", len(rows)),
        least_rating=min_rating,
        below_rating=below,
        merged=merged,
        kept_repeat="last" if last else "earliest",
    )

    used_users, numbers = renumbered(users[order])
    used_items, chosen = renumbered(items[order])
    low = None if below == 0 else _low(users[~rated], items[~rated], used_users, used_items, (numbers, chosen))
    users, items, user_ids, item_ids = numbers, chosen, user_ids[used_users], item_ids[used_items]
    titles, said = _titles(rows, item_ids)
    if rows.given:
        said = [*_nobody(user_ids, users, "user"), *_nobody(item_ids, items, "item"), *said]
    client_of_user = None
    if clients is not None and client_ids is not None:
        client_of_user = _client_of_user(clients[order], users, user_ids, client_ids, order, rows)
        used_clients, client_of_user = renumbered(client_of_user)
        client_ids = client_ids[used_clients]
    return Interactions(
        name=name,
        users=users,
        items=items,
        user_ids=user_ids,
        item_ids=item_ids,
        times=None if rows.times is None else _whole(rows.times[order]),
        titles=titles,
        client_of_user=client_of_user,
        client_ids=client_ids,
        part=None if rows.part is None else rows.part[order],
        rated_low=low,
        notes=(*rows.notes, *understood.passed_over(), *said),
        understood=None if rows.understood is None else understood,
    )


def _whole(times: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Times as whole numbers in the same order: of moments with parts of a second a millionth of the unit, in which
    :func:`unit_of` reads them right; of what is an order only (days with parts, shares), the places."""
    whole = times.astype(np.int64)
    if (whole == times).all():
        return whole
    if float(times.max()) < ORDER_ONLY:
        return np.unique(times, return_inverse=True)[1].astype(np.int64)
    parts = np.rint(times * 1e6)
    return parts.astype(np.int64) if float(np.abs(parts).max()) < FARTHEST else whole


def _rated(rows: Rows, name: str, min_rating: float | None) -> NDArray[np.bool_]:
    """Which rows are interactions by their rating."""
    if rows.ratings is None:
        if min_rating is not None:
            raise BadInput(f"{name} has no ratings, so a least rating says nothing; leave --min-rating out")
        return np.ones(len(rows), np.bool_)
    rated = np.asarray(rows.ratings > 0 if min_rating is None else rows.ratings >= min_rating)
    if not rated.any() and min_rating is None:
        raise BadInput(f"{name}: no row has a rating above 0; a rating above 0 is an interaction")
    if not rated.any():
        raise BadInput(f"{name}: no row has a rating of {min_rating:g} or more (the most is {rows.ratings.max():g})")
    return rated


def _least(min_rating: float | None) -> str:
    return "above 0" if min_rating is None else f"{min_rating:g} or more"


def _low(
    users: NDArray[np.int32], items: NDArray[np.int32], used_users: Int64, used_items: Int64, kept: tuple[Int32, Int32]
) -> Ragged:
    """Items that each user who is left rated too low, of those that are left; a pair that counts is none of them."""
    user, item = (_place_among(ids, used) for ids, used in ((users, used_users), (items, used_items)))
    there, wide = (user >= 0) & (item >= 0), np.int64(len(used_items))
    there[there] = ~np.isin(user[there] * wide + item[there], kept[0] * wide + kept[1])
    return listed(user[there], item[there], len(used_users))


def _place_among(ids: NDArray[np.int32], used: Int64) -> Int64:
    """The place of each id among those in use, -1 where it is not in use."""
    place = np.minimum(np.searchsorted(used, ids), len(used) - 1)
    return np.where(used[place] == ids, place, -1)


def _dense(column: pa.ChunkedArray, what: str, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    """An index per row, and the ids it points to, in order."""
    coded = pc.dictionary_encode(pc.utf8_trim_whitespace(column)).combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # combine_chunks of no chunks
        coded = coded.chunk(0)
    codes = coded.indices.to_numpy(zero_copy_only=False)
    _refuse_wide(coded.dictionary, codes, what, rows)
    ids = np.array(coded.dictionary.to_pylist(), dtype=np.str_)
    whole = np.asarray(pc.match_substring_regex(coded.dictionary, r"^-?[0-9]+$").to_numpy(zero_copy_only=False))
    if rows.given:
        _refuse_rounded(coded.dictionary, codes, what, rows)
    if rows.given and whole.any() and not whole.all():
        _refuse_mixed(codes, ids, whole.astype(bool), what, rows)
    order = numeric_order(ids) if whole.all() else np.argsort(ids, kind="stable")
    rank = np.empty(len(ids), np.int32)
    rank[order] = np.arange(len(ids), dtype=np.int32)
    return rank[codes], ids[order]


def _refuse_wide(distinct: pa.Array, codes: NDArray[np.int32], what: str, rows: Rows) -> None:
    """Refuse ids that would take too much memory: all are stored as wide as the widest."""
    lengths = np.asarray(pc.utf8_length(distinct).to_numpy(zero_copy_only=False), dtype=np.int64)
    widest = int(lengths.argmax())

    def place() -> str:
        return rows.place(int(np.argmax(codes == widest)))

    if lengths[widest] > limits.ID:
        raise BadInput(f"{place()}: the {what} id is longer than {limits.ID} characters")
    table = 4 * int(lengths[widest]) * len(lengths)
    if table > max(limits.ID_TABLE, limits.ID_WASTE * int(lengths.sum())):
        raise BadInput(
            f"{place()}: a {what} id of {int(lengths[widest])} characters where {len(lengths)} others have "
            f"{lengths.mean():.0f} on average would take {limits.size(table)}; shorten it"
        )


def _refuse_rounded(distinct: pa.Array, codes: NDArray[np.int32], what: str, rows: Rows) -> None:
    """Refuse ids like 4.00638E+12: many were one after a spreadsheet rounded them."""
    rounded = np.asarray(pc.match_substring_regex(distinct, ROUNDED).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if rounded.any():
        row = int(np.argmax(rounded[codes]))
        raise BadInput(
            f"{rows.place(row)}: the {what} id has been rounded by a spreadsheet (1.23E+12), so that several are one; "
            "export it as text"
        )


def _nobody(ids: NDArray[np.str_], chosen: NDArray[np.int32], what: str) -> list[str]:
    """What is said of ids that may be how a program wrote that there is none."""
    found = []
    for name in sorted(NOTHING.intersection(ids.tolist())):
        count = int((chosen == np.flatnonzero(ids == name)[0]).sum())
        found.append(f"{count} rows have the {what} {name}: if that stands for none, leave them out")
    return found


def _refuse_mixed(
    codes: NDArray[np.int32], ids: NDArray[np.str_], whole: NDArray[np.bool_], what: str, rows: Rows
) -> None:
    lengths = np.char.str_len(ids)
    if lengths[0] >= FIXED_WIDTH and (lengths == lengths[0]).all():
        return
    numeric = whole[codes]
    usual = numeric.mean() > 0.5 or (numeric.mean() == 0.5 and bool(numeric[0]))
    row = int(np.argmax(numeric != usual))
    kinds = ("text", "a number") if usual else ("a number", "text")
    header = " (if that line is a header, name its columns user and item)" if row == 0 else ""
    raise BadInput(
        f"{rows.place(row)}: the {what} id is {kinds[0]} where the column has "
        f"{'numbers' if usual else 'text'}; use one kind of id in a column{header}"
    )


def _one_of_each_pair(
    order: NDArray[np.int64], rows: Rows, users: NDArray[np.int32], items: NDArray[np.int32], n_items: int, last: bool
) -> NDArray[np.int64]:
    """The rows to keep, still in order: the first or last of each pair; a pair in two parts is refused."""
    pair = users[order].astype(np.int64) * n_items + items[order]
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    if len(first) == len(order):
        return order
    if rows.part is not None:
        part = rows.part[order]
        torn = np.flatnonzero(part != part[first][which])
        if len(torn):
            raise BadInput(
                f"{rows.place(int(order[torn].min()))}: this user and item are in two parts of the split; a pair "
                "belongs to one of train, valid, test"
            )
    if last:
        _, from_end = np.unique(pair[::-1], return_index=True)
        first = len(order) - 1 - from_end
    return np.asarray(order[np.sort(first)])


def _titles(rows: Rows, item_ids: NDArray[np.str_]) -> tuple[NDArray[np.object_] | None, list[str]]:
    if rows.titles is None:
        return None, []
    known = [rows.titles.get(item) for item in item_ids.tolist()]
    missing = sum(title is None for title in known)
    if missing == len(known):
        return None, ["the file of titles lists none of the items, so titles are left out"]
    titles = [item if title is None else title for item, title in zip(item_ids.tolist(), known, strict=True)]
    return np.array(titles, dtype=object), [
        f"{missing} items have no title; their id is shown instead"
    ] if missing else []


def _client_of_user(
    clients: NDArray[np.int32],
    users: NDArray[np.int32],
    user_ids: NDArray[np.str_],
    client_ids: NDArray[np.str_],
    order: NDArray[np.int64],
    rows: Rows,
) -> NDArray[np.int32]:
    """The client of each user; a user with two is refused."""
    of_user = np.zeros(len(user_ids), np.int32)
    of_user[users[::-1]] = clients[::-1]  # the first row of a user decides
    torn = np.flatnonzero(of_user[users] != clients)
    if len(torn):
        at = int(torn[np.argmin(order[torn])])
        one, other = (limits.brief(client_ids[client]) for client in (of_user[users[at]], clients[at]))
        raise BadInput(
            f"{rows.place(int(order[at]))}: this user belongs to client {one} and to {other}; a user has one client"
        )
    return of_user

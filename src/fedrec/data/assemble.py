"""From rows of text to dense, ordered interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedrec.data.interactions import Interactions
from fedrec.data.readers.rows import Rows
from fedrec.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

FIXED_WIDTH = 8
"""Ids all of one length, at least this long (ISBN, ASIN, hashes), may mix digits and letters."""


def assemble(rows: Rows, name: str) -> Interactions:
    """Number users and items, merge repeats (the earliest time stays), order by user and time.

    Ids are numbered in numeric order where all are whole numbers, else in text order, so the numbering
    depends on the ids alone.
    """
    notes = list(rows.notes)
    users, user_ids = _dense(rows.users, "user", rows)
    items, item_ids = _dense(rows.items, "item", rows)
    clients = client_ids = None
    if rows.clients is not None:
        clients, client_ids = _dense(rows.clients, "client", rows)
    if rows.given:
        _refuse_duplicates(rows, users, items, clients, user_ids, item_ids)

    keep = np.arange(len(rows))
    if rows.ratings is not None:
        keep = np.flatnonzero(rows.ratings > 0)
        if len(keep) < len(rows):
            notes.append(f"{len(rows) - len(keep)} rows with a rating of 0 or less are no interactions")
        if len(keep) == 0:
            raise BadInput(f"{name}: no row has a rating above 0; a rating above 0 is an interaction")
    order = keep[np.lexsort((keep, *([] if rows.times is None else [rows.times[keep]]), users[keep]))]
    order = _first_of_each_pair(order, rows, users, items, len(item_ids), user_ids, item_ids)
    if len(order) < len(keep):
        notes.append(f"{len(keep) - len(order)} repeats of a user-item pair merged, the earliest kept")

    users, items = users[order], items[order]
    used_users, users = _renumber(users, len(user_ids))
    used_items, items = _renumber(items, len(item_ids))
    user_ids, item_ids = user_ids[used_users], item_ids[used_items]
    titles, said = _titles(rows, item_ids)
    notes.extend(said)
    client_of_user = None
    if clients is not None and client_ids is not None:
        client_of_user = _client_of_user(clients[order], users, user_ids, client_ids, order, rows)
        used_clients, client_of_user = _renumber(client_of_user, len(client_ids))
        client_ids = client_ids[used_clients]
    return Interactions(
        name=name,
        users=users,
        items=items,
        user_ids=user_ids,
        item_ids=item_ids,
        times=None if rows.times is None else rows.times[order].astype(np.int64),
        titles=titles,
        client_of_user=client_of_user,
        client_ids=client_ids,
        part=None if rows.part is None else rows.part[order],
        notes=tuple(notes),
    )


def _dense(column: pa.ChunkedArray, what: str, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    """An index per row, and the ids it points to, in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.dictionary_encode(pc.utf8_trim_whitespace(column)).combine_chunks()
    if isinstance(coded, pa.ChunkedArray):  # combine_chunks of no chunks
        coded = coded.chunk(0)
    codes = coded.indices.to_numpy(zero_copy_only=False)
    ids = np.array(coded.dictionary.to_pylist(), dtype=np.str_)
    empty = np.flatnonzero(ids == "")
    if len(empty):
        raise BadInput(f"{rows.place(int(np.argmax(codes == empty[0])))}: no {what} id")
    whole = np.asarray(pc.match_substring_regex(coded.dictionary, r"^-?[0-9]+$").to_numpy(zero_copy_only=False))
    if rows.given and whole.any() and not whole.all():
        _refuse_mixed(codes, ids, whole.astype(bool), what, rows)
    order = numeric_order(ids) if whole.all() else np.argsort(ids, kind="stable")
    rank = np.empty(len(ids), np.int32)
    rank[order] = np.arange(len(ids), dtype=np.int32)
    return rank[codes], ids[order]


def numeric_order(ids: NDArray[np.str_]) -> NDArray[np.int64]:
    """The order of ids that are whole numbers; equal numbers ('7', '07') in text order."""
    if ids.dtype.itemsize // 4 <= 18:  # fits 64 bits
        return np.lexsort((ids, ids.astype(np.int64)))
    return np.array(sorted(range(len(ids)), key=lambda i: (int(ids[i]), ids[i])), dtype=np.int64)


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
    header = " (if that line is a header, name the columns user, item, rating, timestamp)" if row == 0 else ""
    raise BadInput(
        f"{rows.place(row)}: {what} id {str(ids[codes[row]])!r} is {kinds[0]} where the column has "
        f"{'numbers' if usual else 'text'}; use one kind of id in a column{header}"
    )


def _refuse_duplicates(
    rows: Rows,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    clients: NDArray[np.int32] | None,
    user_ids: NDArray[np.str_],
    item_ids: NDArray[np.str_],
) -> None:
    """Exact repeats in a person's own file are a mistake, not data."""
    pair = users.astype(np.int64) * len(item_ids) + items
    ordered = np.sort(pair)
    if (ordered[1:] != ordered[:-1]).all():
        return
    columns = [column for column in (rows.part, rows.times, rows.ratings, clients, pair) if column is not None]
    order = np.lexsort([np.arange(len(pair)), *columns])
    same = np.ones(len(pair) - 1, dtype=bool)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    if same.any():
        row = int(order[1:][same].min())
        raise BadInput(
            f"duplicate row (user {str(user_ids[users[row]])!r}, item {str(item_ids[items[row]])!r}) in "
            f"{rows.place(row)}; pass each pair once"
        )


def _first_of_each_pair(
    order: NDArray[np.int64],
    rows: Rows,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    n_items: int,
    user_ids: NDArray[np.str_],
    item_ids: NDArray[np.str_],
) -> NDArray[np.int64]:
    """The rows to keep, still in order: the first of each pair; a pair in two parts is refused."""
    pair = users[order].astype(np.int64) * n_items + items[order]
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    if len(first) == len(order):
        return order
    if rows.part is not None:
        part = rows.part[order]
        torn = np.flatnonzero(part != part[first][which])
        if len(torn):
            row = int(order[torn].min())
            user, item = str(user_ids[users[row]]), str(item_ids[items[row]])
            raise BadInput(
                f"{rows.place(row)}: user {user!r} and item {item!r} "
                "stand in two parts of the split; a pair belongs to one of train, valid, test"
            )
    return np.asarray(order[np.sort(first)])


def _renumber(codes: NDArray[np.int32], count: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The codes in use, and the codes renumbered to those."""
    used = np.flatnonzero(np.bincount(codes, minlength=count))
    new = np.full(count, -1, np.int32)
    new[used] = np.arange(len(used), dtype=np.int32)
    return used, new[codes]


def _titles(rows: Rows, item_ids: NDArray[np.str_]) -> tuple[NDArray[np.object_] | None, list[str]]:
    if rows.titles is None:
        return None, []
    known = [rows.titles.get(item) for item in item_ids.tolist()]
    missing = sum(title is None for title in known)
    if missing == len(known):
        return None, ["the file of titles knows none of the items, so titles are left out"]
    titles = np.empty(len(known), dtype=object)
    titles[:] = [item if title is None else title for item, title in zip(item_ids.tolist(), known, strict=True)]
    return titles, [f"{missing} items have no title; their id stands for it"] if missing else []


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
        user = users[at]
        one, other = str(client_ids[of_user[user]]), str(client_ids[clients[at]])
        raise BadInput(
            f"{rows.place(int(order[at]))}: user {str(user_ids[user])!r} belongs to client {one!r} and to "
            f"{other!r}; a user has one client"
        )
    return of_user

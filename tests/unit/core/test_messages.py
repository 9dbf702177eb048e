"""Cutting stacked values into clients and putting them together again."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrec.core.block import Block
from fedrec.core.messages import (
    Download,
    Model,
    Private,
    Rows,
    Upload,
    concatenate,
    gather,
    held,
    per_client,
    per_interaction,
    per_user,
    scatter,
    shared,
)
from fedrec.data.ragged import Ragged, offsets


@dataclass(frozen=True)
class Everything(Private):
    table: np.ndarray = shared()
    clients: np.ndarray = per_client()
    users: np.ndarray = per_user()
    items: np.ndarray = per_interaction()
    layers: dict[str, np.ndarray] = per_client()


@dataclass(frozen=True)
class Sent(Upload):
    rows: Rows = per_client()
    number: np.ndarray = per_client()


@dataclass(frozen=True)
class Received(Download):
    table: np.ndarray = shared()


def block_of(users_per_client: list[int], items_per_user: list[int]) -> Block:
    users = sum(users_per_client)
    counts = np.array(items_per_user[:users], np.int64)
    train = Ragged(offsets(counts), np.arange(counts.sum(), dtype=np.int32) % 9)
    return Block(
        9,
        np.arange(len(users_per_client)),
        np.arange(len(users_per_client), dtype=np.uint64),
        offsets(np.array(users_per_client)),
        np.arange(users, dtype=np.uint64),
        train,
        train,
    )


def everything(block: Block) -> Everything:
    n = len(block.train.values)
    return Everything(
        np.arange(5.0),
        np.arange(block.n_clients * 2.0).reshape(-1, 2),
        np.arange(block.n_users * 3.0).reshape(-1, 3),
        np.arange(float(n)),
        {"w": np.arange(float(block.n_clients))},
    )


Drawn = tuple[list[int], list[int], Random]

worlds = st.lists(st.integers(0, 3), min_size=1, max_size=6).flatmap(
    lambda sizes: st.tuples(
        st.just(sizes), st.lists(st.integers(0, 4), min_size=sum(sizes), max_size=sum(sizes)), st.randoms()
    )
)


@given(worlds)
def test_what_is_gathered_and_scattered_back_is_unchanged(world: Drawn) -> None:
    sizes, items, random = world
    block = block_of(sizes, items)
    positions = np.array(sorted(random.sample(range(len(sizes)), random.randint(0, len(sizes)))), np.int64)
    value, untouched = everything(block), everything(block)
    part = gather(value, block, positions)
    cut = block.take(positions)
    assert len(part.clients) == len(positions)
    assert len(part.users) == cut.n_users
    assert len(part.items) == len(cut.train.values)
    changed = Everything(
        part.table, part.clients + 100, part.users + 100, part.items + 100, {"w": part.layers["w"] + 100}
    )
    scatter(value, block, positions, changed)
    others = np.setdiff1d(np.arange(len(sizes)), positions)
    np.testing.assert_array_equal(gather(value, block, others).users, gather(untouched, block, others).users)
    np.testing.assert_array_equal(
        gather(value, block, positions).items, gather(untouched, block, positions).items + 100
    )
    np.testing.assert_array_equal(value.layers["w"][positions], untouched.layers["w"][positions] + 100)


@given(worlds)
def test_a_value_cut_into_clients_and_joined_is_the_value(world: Drawn) -> None:
    sizes, items, _ = world
    block = block_of(sizes, items)
    value = everything(block)
    joined = concatenate([gather(value, block, np.array([c])) for c in range(len(sizes))])
    np.testing.assert_array_equal(joined.users, value.users)
    np.testing.assert_array_equal(joined.items, value.items)
    np.testing.assert_array_equal(joined.layers["w"], value.layers["w"])


def test_consecutive_clients_are_views_not_copies() -> None:
    block = block_of([1, 1, 1], [2, 2, 2])
    value = everything(block)
    part = gather(value, block, np.array([1, 2]))
    assert np.shares_memory(part.users, value.users)
    part.users[:] = -1
    assert (value.users[1:] == -1).all()


def test_clients_apart_are_copies_and_writing_them_needs_a_scatter() -> None:
    block = block_of([1, 1, 1, 1], [2, 1, 3, 1])
    value = everything(block)
    positions = np.array([0, 2])
    part = gather(value, block, positions)
    assert not np.shares_memory(part.clients, value.clients)
    assert not np.shares_memory(part.layers["w"], value.layers["w"])
    before = value.clients.copy()
    part.clients[:] = -7
    part.layers["w"][:] = -8
    np.testing.assert_array_equal(value.clients, before)
    scatter(value, block, positions, part)
    assert (value.clients[positions] == -7).all()
    assert (value.layers["w"][positions] == -8).all()
    np.testing.assert_array_equal(value.clients[[1, 3]], before[[1, 3]])


def test_what_is_written_into_a_view_is_kept_and_its_new_fields_are_scattered() -> None:
    block = block_of([1, 2, 1, 1], [2, 1, 3, 1, 2])
    value = everything(block)
    before = everything(block)
    positions = np.array([1, 2])
    part = gather(value, block, positions)
    part.clients[:] = -7  # in place, as methods with large tables write
    users = part.users * 0 - 3  # a fresh array, as other methods give back
    scatter(value, block, positions, replace(part, users=users))
    assert (value.clients[1:3] == -7).all()
    assert (value.users[1:4] == -3).all()
    np.testing.assert_array_equal(value.clients[[0, 3]], before.clients[[0, 3]])
    np.testing.assert_array_equal(value.users[[0, 4]], before.users[[0, 4]])
    np.testing.assert_array_equal(value.items, before.items)


def test_rows_are_whole_tables_when_made_dense() -> None:
    rows = Rows(np.array([0, 2, 2, 3]), np.array([0, 3, 1], np.int32), np.array([[1.0], [2], [3]], np.float32), 4)
    np.testing.assert_array_equal(rows.dense()[:, :, 0], [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])
    np.testing.assert_array_equal(rows.take(np.array([2, 0])).dense()[:, :, 0], [[0, 3, 0, 0], [1, 0, 0, 2]])
    sent = Sent(rows, np.array([7, 8, 9]))
    block = block_of([1, 1, 1], [1, 1, 1])
    back = concatenate([gather(sent, block, np.array([c])) for c in range(3)])
    np.testing.assert_array_equal(back.rows.dense(), rows.dense())


@pytest.mark.parametrize("sizes", [[1, 1], [2, 1]])
def test_a_block_knows_whether_clients_are_single_users(sizes: list[int]) -> None:
    assert block_of(sizes, [1] * 3).single == (sizes == [1, 1])


def test_what_a_client_holds_goes_to_another_process() -> None:
    """The class is made of the message's, so it was found by no name."""
    mine = held(Received(np.arange(3)))
    again = pickle.loads(pickle.dumps(mine))
    assert issubclass(type(again), Model)
    assert type(again) is type(mine)
    assert again.table.tolist() == [0, 1, 2]

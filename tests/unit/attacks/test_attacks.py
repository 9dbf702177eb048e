"""Attacks on messages and populations with a known answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedrec.attacks.contract import Exchanged, Facts, Poison, Reader, Seen
from fedrec.attacks.crafted import only_item, with_row
from fedrec.attacks.registry import BUILT_IN, find, forget, names, poisons, readers, register
from fedrec.core.block import World
from fedrec.core.messages import Array, Float32, Limit, Rows, Upload, per_client, per_user, shared
from fedrec.core.method import Keys
from fedrec.data.ragged import offsets
from fedrec.errors import BadInput
from fedrec.maths.packed import pack

M = 12
ITEMS, NEGATIVES = np.array([1, 5]), np.array([0, 3, 7, 8, 10])
VECTOR = np.array([0.6, -0.8, 0.1])
WORLD = World("known", M, 1, 1)


@dataclass(frozen=True)
class Changes(Upload):
    rows: Rows = per_client()
    sizes: Array = per_client(protect=False, low=0, high=Limit.OWNED)


@dataclass(frozen=True)
class Similar(Upload):
    similarity: Float32 = per_client()


@dataclass(frozen=True)
class Listed(Upload):
    ids: Array = per_client(low=0, high=Limit.ITEM)


@dataclass(frozen=True)
class Layer(Upload):
    out: Float32 = per_user()  # [users, inputs + 1, items]


@dataclass(frozen=True)
class Whole(Upload):
    tables: Float32 = per_client()


def table(seed: int = 0, negatives: Any = NEGATIVES) -> Float32:
    """A change as matrix factorisation makes it: items along the user's vector, negatives the other way."""
    change = np.zeros((M, 3), np.float32)
    length = np.random.default_rng(seed).uniform(0.5, 1, M)
    change[ITEMS] = 3 * length[ITEMS, None] * VECTOR
    change[negatives] = -length[negatives, None] * VECTOR
    return change


def rows_of(change: Float32) -> Rows:
    ids = np.flatnonzero(change.any(1)).astype(np.int32)
    return Rows(offsets(np.array([len(ids)])), ids, change[ids], len(change))


def seen(*uploads: Any, downloads: Any = None, **settings: Any) -> Seen:
    method: Any = SimpleNamespace(settings=SimpleNamespace(**{"negatives": 2, **settings}))
    given = downloads or [SimpleNamespace()] * len(uploads)
    rounds = [Exchanged(n + 1, d, u, 0.5) for n, (u, d) in enumerate(zip(uploads, given, strict=True))]
    return Seen(method, WORLD, 0, 1, tuple(rounds))


def sent(change: Float32) -> Changes:
    return Changes(rows_of(change), np.array([len(ITEMS)]))


def guess(name: str, what: Seen) -> Any:
    kind = find(name)
    assert issubclass(kind, Reader)
    return kind().read([what])[0]


def test_rows_that_are_not_zero_are_items_and_negatives() -> None:
    found = guess("touched", seen(sent(table())))
    assert np.flatnonzero(found.chosen).tolist() == sorted([*ITEMS, *NEGATIVES])


def test_the_largest_rows_are_the_items() -> None:
    found = guess("norms", seen(sent(table())))
    assert set(np.argsort(-found.scores)[:2]) == set(ITEMS)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_smaller_side_of_the_first_direction_are_the_items(sign: float) -> None:
    found = guess("sign", seen(sent(np.asarray(sign * table(), np.float32))))
    assert np.flatnonzero(found.chosen).tolist() == ITEMS.tolist()


def test_of_a_whole_table_the_start_is_taken_off() -> None:
    """FedCA: the second round starts from the blend of the client's last table and what it was sent."""
    draws = np.random.default_rng(1)
    first, second = draws.normal(size=(2, M, 3)).astype(np.float32)
    one = first + table(1)
    two = 0.3 * one + 0.7 * second + table(2)
    downloads = [SimpleNamespace(tables=first[None]), SimpleNamespace(tables=second[None])]
    uploads = [Whole(one[None].astype(np.float32)), Whole(two[None].astype(np.float32))]
    for rounds in (1, 2):
        found = guess("sign", seen(*uploads[:rounds], downloads=downloads[:rounds], rho=0.3))
        assert np.flatnonzero(found.scores > 0.2).tolist() == ITEMS.tolist()


def test_ids_and_output_biases_name_items() -> None:
    assert np.flatnonzero(guess("named", seen(Listed(ITEMS))).chosen).tolist() == ITEMS.tolist()
    layer = np.random.default_rng(0).normal(size=(1, 4, M)).astype(np.float32)
    layer[:, -1] = 0.01  # pi - r_u
    layer[:, -1, ITEMS] -= 1
    assert np.flatnonzero(guess("named", seen(Layer(layer))).chosen).tolist() == ITEMS.tolist()
    assert guess("named", seen(sent(table()))) is None


def test_what_is_touched_every_round_are_the_items() -> None:
    others = [[0, 3, 7], [2, 3, 9], [4, 6, 11]]
    found = guess("intersection", seen(*(sent(table(n, some)) for n, some in enumerate(others))))
    assert np.flatnonzero(found.chosen).tolist() == ITEMS.tolist()


def test_noise_averages_out() -> None:
    draws = np.random.default_rng(0)
    noisy = [sent(table() + draws.normal(scale=0.5, size=(M, 3)).astype(np.float32)) for _ in range(12)]
    scores = guess("averaging", seen(*noisy)).scores
    assert set(np.argsort(-scores)[:2]) == set(ITEMS)


def test_similarities_are_read_item_by_item() -> None:
    change = np.zeros((M, 2))
    change[ITEMS] = 1
    found = guess("norms", seen(Similar(pack(change @ change.T)[None].astype(np.float32))))
    assert set(np.argsort(-found.scores)[:2]) == set(ITEMS)


def test_sizes_are_read_or_counted() -> None:
    assert guess("size", seen(sent(table()))).size == 2
    assert guess("size", seen(Whole(table()[None]), negatives=2.5)).size == 2  # 7 rows, 2.5 drawn for each item


def test_a_participant_sees_what_others_moved() -> None:
    from fedrec.methods._shared.personal import PersonalDownload

    start = np.random.default_rng(0).normal(size=(1, M, 3)).astype(np.float32)
    downloads = [PersonalDownload(start, {}), PersonalDownload(start + table(), {})]
    found = guess("mixture", seen(sent(table()), sent(table()), downloads=downloads))
    assert np.flatnonzero(found.scores > 0).tolist() == ITEMS.tolist()
    everybody_s = [sent(table())] * 2  # no field of a client's own table
    assert guess("mixture", seen(sent(table()), sent(table()), downloads=everybody_s)) is None


def poison(name: str, adaptive: bool = False) -> Any:
    kind = find(name)
    assert issubclass(kind, Poison)
    return kind(Facts(WORLD, target=7, popular=np.array([5, 1, 0]), seed=0, adaptive=adaptive))


KEYS = Keys(0, 1)
DOWNLOAD = SimpleNamespace()


def test_a_booster_sends_the_target_s_row_a_hundred_times() -> None:
    out = poison("boost").sent(sent(table()), None, 1, KEYS)
    assert out.rows.ids.tolist() == [7]
    assert out.rows.values[0] == pytest.approx(100 * table()[7], rel=1e-6)
    assert poison("boost").history(np.array([3, 1], np.int32)).tolist() == [1, 3, 7]


def test_alignment_pulls_the_target_to_the_popular() -> None:
    from fedrec.methods._shared.embedding import ItemDownload

    items = np.random.default_rng(0).normal(size=(M, 3)).astype(np.float32)
    out = poison("pipattack", adaptive=True).sent(sent(table()), ItemDownload(items, {}), 1, KEYS)
    kept = np.flatnonzero(out.rows.dense()[0].any(1))
    assert kept.tolist() == [7]
    assert out.rows.dense()[0, 7] == pytest.approx(items[[5, 1, 0]].mean(0) - items[7], rel=1e-5)
    assert poison("pipattack").sent(Listed(ITEMS), DOWNLOAD_WITHOUT, 1, KEYS) is None


def test_replacement_sends_what_is_missing_to_a_row_that_outbids_the_popular() -> None:
    from fedrec.methods._shared.embedding import ItemDownload

    items = np.random.default_rng(0).normal(size=(M, 3)).astype(np.float32)
    missing = 20 * items[[5, 1, 0]].mean(0) - items[7]
    for adaptive, times in ((False, 100), (True, 1)):
        out = poison("replacement", adaptive=adaptive).sent(sent(table()), ItemDownload(items, {}), 1, KEYS)
        assert np.flatnonzero(out.rows.dense()[0].any(1)).tolist() == [7]
        assert out.rows.dense()[0, 7] == pytest.approx(times * missing, rel=1e-5)
    assert poison("replacement").sent(Listed(ITEMS), DOWNLOAD_WITHOUT, 1, KEYS) is None


DOWNLOAD_WITHOUT = Listed(ITEMS)


def test_pieck_finds_the_popular_items_in_what_moves() -> None:
    attack = poison("pieck")
    before = np.zeros((M, 3), np.float32)
    attack.popular(before)
    after = before.copy()
    after[[2, 9]] = 5
    assert set(attack.popular(after)[:2]) == {2, 9}


def test_untargeted_uploads() -> None:
    honest = sent(table())
    assert poison("flip").sent(honest, None, 1, KEYS).rows.values == pytest.approx(-10 * honest.rows.values)
    assert poison("sizes").sent(honest, None, 1, KEYS).sizes.tolist() == [M]
    assert not poison("free-rider").sent(honest, None, 1, KEYS).rows.values.any()
    noisy = poison("noise", adaptive=True).sent(honest, None, 1, KEYS).rows.values
    assert np.std(noisy) == pytest.approx(np.sqrt((honest.rows.values**2).mean()), rel=0.6)
    assert poison("fedattack").trains_on(np.arange(M)[::-1].astype(float), ITEMS).tolist() == [10, 11]


def test_pairs_of_one_item_are_kept() -> None:
    size = M * (M + 1) // 2
    rows = Rows(np.array([0, size]), np.arange(size, dtype=np.int32), np.ones((size, 1), np.float32), size)
    kept = only_item(replace(sent(table()), rows=rows), 7, M)
    assert len(kept.rows.ids) == M
    assert with_row(Listed(ITEMS), 7, VECTOR, M) is None


def test_every_attack_is_registered_with_a_card() -> None:
    assert set(readers()) | set(poisons()) == set(BUILT_IN)
    for name in names():
        kind = find(name)
        assert kind.name == name
        assert all((kind.card.title, kind.card.paper, kind.card.sees))
        assert (kind.card.who == "clients") == issubclass(kind, Poison)
    with pytest.raises(BadInput, match="did you mean 'sign'"):
        find("sgin")


def test_an_attack_of_one_s_own_is_registered() -> None:
    class Mine(find("sign")):  # type: ignore[misc]
        name = "mine"

    register(Mine)
    assert find("mine") is Mine
    forget("mine")
    assert "mine" not in names()


@dataclass(frozen=True)
class Shown(Upload):
    """A download that everybody receives: a score for each item."""

    scores: Float32 = shared()


class Ranking(SimpleNamespace):
    """Ranks by what it received, whatever the history."""

    settings = SimpleNamespace(negatives=2, dtype="float32")

    def fold_in(self, download: Shown, *_: Any) -> Shown:
        return download

    def model(self, download: Shown) -> Shown:
        return download

    def score(self, _: Any, model: Shown, block: Any) -> Float32:
        return np.tile(model.scores, (block.n_users, 1))


def told(ranks: Sequence[int | None], cut: int = 20) -> Seen:
    """Rounds in each of which the item 9 stands at a rank (from 0), in an order of its own."""
    draws, rounds = np.random.default_rng(3), []
    for number, rank in enumerate(ranks):
        others = draws.permutation([item for item in range(M) if item not in ITEMS and item != 9])
        at = len(others) if rank is None else rank
        order = [*ITEMS, *np.insert(others, at, 9)]  # what the client has is never ranked
        scores = np.zeros(M, np.float32)
        scores[order] = np.arange(M)[::-1]
        value = 0.0 if rank is None else 1 / np.log2(rank + 2)
        rounds.append(Exchanged(number + 1, Shown(scores), sent(table()), metrics={f"NDCG@{cut}": value}))
    return Seen(Ranking(), WORLD, 0, 1, tuple(rounds))  # type: ignore[arg-type]


def test_the_reported_rank_names_the_held_out_item() -> None:
    for ranks in ([0], [3], [7, 2]):
        assert np.argmax(guess("metrics", told(ranks)).scores) == 9
    below = told([None], cut=5)
    scores = guess("metrics", below).scores
    standing = [item for item in np.argsort(-below.rounds[0].download.scores) if item not in ITEMS]
    assert set(np.argsort(-scores)[:5]) == set(standing[5:])  # what stands above the cut is out
    assert set(np.argsort(-scores)[-2:]) == set(ITEMS)


def test_metrics_of_several_users_or_none_at_all_name_nothing() -> None:
    assert guess("metrics", replace(told([3]), users=2)) is None
    assert guess("metrics", seen(sent(table()))) is None


@dataclass(frozen=True)
class Few(Upload):
    """Some rows of a table, beside the numbers of their items; ``M`` where there is none."""

    ids: Array = per_client(protect=False, low=0, high=Limit.ITEMS)
    values: Float32 = per_client()


def few(change: Any, room: int) -> Few:
    ids = np.full((1, room), M, np.int32)
    values = np.zeros((1, room, change.shape[1]), np.float32)
    listed = np.flatnonzero(change.any(1))
    ids[0, : len(listed)], values[0, : len(listed)] = listed, change[listed]
    return Few(ids, values)


@pytest.mark.parametrize("room", [8, M])
def test_rows_beside_the_numbers_of_their_items_are_read(room: int) -> None:
    what = seen(few(table(), room))
    assert np.flatnonzero(guess("touched", what).chosen).tolist() == sorted([*ITEMS, *NEGATIVES])
    assert np.flatnonzero(guess("sign", what).chosen).tolist() == ITEMS.tolist()
    assert set(np.argsort(-guess("norms", what).scores)[:2]) == set(ITEMS)


def test_of_rows_beside_their_numbers_the_start_is_taken_off() -> None:
    """FedCA for many clients: the second round starts from the blend of what the client sent and what it was sent."""
    first, mixed = table(1), np.random.default_rng(2).normal(size=(M, 3)).astype(np.float32)
    second = 0.3 * first + 0.7 * mixed + table(2)
    downloads = [few(np.zeros((M, 3)), M), few(mixed, M)]
    found = guess("sign", seen(few(first, M), few(second, M), downloads=downloads, rho=0.3))
    assert np.flatnonzero(found.scores > 0.2).tolist() == ITEMS.tolist()

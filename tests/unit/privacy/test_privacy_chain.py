"""The chain as a whole: links in order, undone in reverse, one client at a time or all at once."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fedrec.core import wire
from fedrec.core.block import Block
from fedrec.core.messages import Rows, Upload, gather, shared
from fedrec.core.method import Keys
from fedrec.core.settings import PrivacySettings
from fedrec.privacy.chain import describe, outgoing
from fedrec.privacy.fields import coordinates, open_fields, protected
from privacy_samples import Sample, make_block, make_sample

USERS = [1, 3, 2, 0, 1]
EVERY_CHAIN = [
    {},
    {"clip": 1.0},
    {"clip": 1.0, "clip_norm": "l1", "noise": 0.1},
    {"clip": 1.0, "noise": 0.1, "noise_kind": "gaussian"},
    *({"compress": kind, "compress_keep": 0.3} for kind in ("topk", "lowrank", "int8")),
    *({"noise": 0.2, "compress": kind, "compress_keep": 0.3} for kind in ("topk", "lowrank", "int8")),
    {"compress": "int8", "upload_form": "rows"},
]


def table(upload: Sample) -> NDArray[np.float32]:
    return upload.items.dense()


def assert_same(left: Sample, right: Sample) -> None:
    np.testing.assert_allclose(table(left), table(right), rtol=1e-5, atol=1e-6)
    for name in ("network", "people", "weight", "counts"):
        np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given", EVERY_CHAIN, ids=str)
def test_a_block_equals_blocks_of_one(given: dict[str, Any]) -> None:
    block, upload, keys = make_block(USERS), make_sample(USERS, np.random.default_rng(1)), Keys(3, 2)
    chain = outgoing(PrivacySettings(**given))
    together = chain.restore(chain.apply(upload, block, keys))
    for client in range(block.n_clients):
        one = np.array([client])
        alone = chain.restore(chain.apply(gather(upload, block, one), block.take(one), keys))
        assert_same(gather(together, block, one), alone)


@pytest.mark.parametrize("given", EVERY_CHAIN, ids=str)
def test_types_open_fields_and_input_are_kept(given: dict[str, Any], block: Block, sample: Sample) -> None:
    before = dataclasses.replace(
        sample,
        items=dataclasses.replace(sample.items, values=sample.items.values.copy()),
        network=sample.network.copy(),
        people=sample.people.copy(),
    )
    chain = outgoing(PrivacySettings(**given))
    sent = chain.apply(sample, block, Keys(0, 1))
    back = chain.restore(sent)
    assert_same(before, sample)  # the input is not written
    assert type(sent) is type(back) is Sample
    assert isinstance(back.items, Rows)
    assert back.items.n_clients == block.n_clients
    assert back.network.shape == sample.network.shape
    assert back.people.shape == sample.people.shape
    assert back.network.dtype == back.items.values.dtype == np.float32
    np.testing.assert_array_equal(sent.weight, sample.weight)
    np.testing.assert_array_equal(sent.counts, sample.counts)


def test_restore_without_compression_loses_nothing(block: Block, sample: Sample) -> None:
    chain = outgoing(PrivacySettings(clip=1.0, noise=0.1))
    sent = chain.apply(sample, block, Keys(0, 1))
    assert chain.restore(sent) is sent
    nothing = outgoing(PrivacySettings())
    assert nothing.apply(sample, block, Keys(0, 1)) is sample


def test_links_come_in_the_sound_order() -> None:
    chain = outgoing(PrivacySettings(clip=1, noise=0.1, compress="topk"))
    assert [type(link).__name__ for link in chain.links] == ["Clip", "Noise", "KeepLargest"]


def test_what_is_protected_and_what_is_not(block: Block, sample: Sample) -> None:
    assert [part.name for part in protected(sample, block)] == ["items", "network", "people"]
    assert open_fields(sample) == ("weight", "counts")
    # 7 items x 3 + 2 x 2 + 2 for each user
    np.testing.assert_array_equal(coordinates(sample, block), [27, 31, 29, 25, 27])


def test_a_field_that_cannot_be_protected_stops_the_chain(block: Block) -> None:
    @dataclasses.dataclass(frozen=True)
    class Wrong(Upload):
        everything: Any = shared()

    with pytest.raises(TypeError, match="everything"):
        protected(Wrong({"a": 1.0}), block)
    with pytest.raises(TypeError, match="shared"):
        protected(Wrong(np.zeros(3, np.float32)), block)


def test_a_wrong_length_is_noticed(block: Block, sample: Sample) -> None:
    with pytest.raises(ValueError, match="people"):
        protected(dataclasses.replace(sample, people=sample.people[:-1]), block)


def test_bytes_follow_the_compressed_form() -> None:
    users = [1] * 4
    rng = np.random.default_rng(0)
    block = make_block(users)
    upload = make_sample(users, rng)

    def size(**given: Any) -> int:
        settings = PrivacySettings(**given)
        return wire.payload(outgoing(settings).apply(upload, block, Keys(0, 1)), wire.Form.of(settings))

    plain = size()
    open_bytes = 4 * 4 + 4 * 8
    assert plain == 4 * (21 + 4 + 2) * 4 + open_bytes
    # int8: one byte a number, one step of 4 bytes a client and field
    assert size(compress="int8") == 4 * 27 + 3 * 4 * 4 + open_bytes
    # rank 1 of [7, 3]: 7 + 3 numbers; the 2 x 2 matrix is larger in two factors and stays
    assert size(compress="lowrank") == 4 * (7 + 3 + 4 + 2) * 4 + open_bytes
    # top-k after noise: 3 of 27 numbers a client, each with its index, beside starts and shapes
    kept = size(compress="topk", noise=0.1)
    assert kept == 4 * 3 * 8 + 3 * 5 * 8 + (2 + 2 + 1) * 8 + open_bytes


def test_describe_says_what_is_done() -> None:
    assert describe(PrivacySettings()) == ("no clip, no noise, no compression; sent as whole tables in float32")
    line = describe(PrivacySettings(clip=2, noise=0.5, noise_kind="gaussian", compress="int8"))
    assert line == (
        "clip to L2 norm 2, then Gaussian noise of deviation 0.5 on every coordinate, then 8 bits a number; "
        "sent as whole tables in float32"
    )
    assert "which items a client has touched" in describe(PrivacySettings(upload_form="rows"))
    assert "which items a client has touched" in describe(PrivacySettings(compress="topk"))
    assert "which items a client has touched" not in describe(PrivacySettings(compress="topk", noise=0.1))

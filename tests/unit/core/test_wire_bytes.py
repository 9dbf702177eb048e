"""Byte counts come from the encoding, and equal the papers' where they give them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fedrec.core import wire
from fedrec.core.messages import Rows, Upload, per_client
from fedrec.methods._shared.embedding import ItemDownload, ItemUpload
from fedrec.privacy.compressed import FORMS


def one_client(n_items: int, touched: int = 3, dim: int = 16) -> ItemUpload:
    ids = np.arange(touched, dtype=np.int32)
    return ItemUpload(Rows(np.array([0, touched]), ids, np.ones((touched, dim), np.float32), n_items), {})


@pytest.mark.parametrize(
    ("items", "kilobytes"), [(1682, "210.25"), (2071, "258.88"), (3952, "494.00"), (19738, "2467.25")]
)
def test_an_item_table_has_the_bytes_of_fedca_table_7(items: int, kilobytes: str) -> None:
    """FedCA Table 7, FCF: m x 16 numbers of 64 bits each way (its ML-1M entry, 494.20, is 494.00 by that rule)."""
    form = wire.Form("dense", "float64")
    assert f"{wire.payload(one_client(items), form) / 1024:.2f}" == kilobytes
    download = ItemDownload(np.zeros((items, 16), np.float32), {})
    assert f"{wire.payload(download, form) / 1024:.2f}" == kilobytes


def test_changed_rows_are_smaller_and_carry_their_ids() -> None:
    upload = one_client(1682, touched=3)
    assert wire.payload(upload, wire.Form("rows", "float32")) == 3 * 16 * 4 + 3 * 4


def test_half_precision_rounds_what_the_receiver_sees() -> None:
    upload = one_client(4)
    odd = ItemUpload(
        Rows(upload.rows.start, upload.rows.ids, upload.rows.values + 1e-5, 4), {"w": np.full((1, 2), 0.1)}
    )
    form = wire.Form("dense", "float16")
    seen, sent = wire.rounded(odd, form), wire.decode(ItemUpload, wire.encode(odd, form))
    np.testing.assert_array_equal(seen.rows.dense(), sent.rows.dense())
    np.testing.assert_array_equal(seen.networks["w"].astype(np.float32), sent.networks["w"])


@pytest.mark.parametrize("compress", ["topk", "lowrank", "int8"])
def test_compressed_uploads_cross_the_wire(compress: str) -> None:
    from fedrec.core.block import Block
    from fedrec.core.method import Keys
    from fedrec.core.settings import PrivacySettings
    from fedrec.data.ragged import Ragged
    from fedrec.privacy.chain import outgoing

    train = Ragged(np.array([0, 1]), np.array([0], np.int32))
    block = Block(
        50, np.arange(1), np.arange(1, dtype=np.uint64), np.array([0, 1]), np.arange(1, dtype=np.uint64), train, train
    )
    values = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    upload = ItemUpload(Rows(np.array([0, 20]), np.arange(20, dtype=np.int32), values, 50), {"w": values[None, :3]})
    chain = outgoing(PrivacySettings(compress=compress, compress_keep=0.5))
    sent = chain.apply(upload, block, Keys(0, 1))
    back = wire.decode(ItemUpload, wire.encode(sent), forms=FORMS)
    here, there = chain.restore(sent), chain.restore(back)
    np.testing.assert_allclose(here.rows.dense(), there.rows.dense(), atol=1e-6)
    np.testing.assert_allclose(here.networks["w"], there.networks["w"], atol=1e-6)


@dataclass(frozen=True)
class Odd(Upload):
    thing: object = per_client()


def test_a_field_that_is_no_array_is_refused() -> None:
    with pytest.raises(wire.WireError, match="thing"):
        wire.encode(Odd(object()))

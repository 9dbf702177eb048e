"""Training two views: gradients written out against torch's own of the papers' objectives, rows, chunks, threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import two_views_made
from two_views_made import FULL, VARIANTS, assert_alike, made_block, parameters, trained

from fedrec.data.ragged import Ragged, offsets
from fedrec.methods.two_views import fedrap
from fedrec.methods.two_views.rooms import Scratch
from fedrec.methods.two_views.tables_kernel import BLOCK


@pytest.mark.parametrize("scorer", ["mf", "affine"])
@pytest.mark.parametrize("name", list(VARIANTS))
def test_gradients_written_out_equal_torchs_own(name: str, scorer: str) -> None:
    block = made_block()
    fast, fast_private = trained(block, VARIANTS[name], scorer)
    plain, plain_private = trained(block, VARIANTS[name], scorer, "torch")
    assert_alike((fast, fast_private), (plain, plain_private), rtol=2e-4, atol=2e-5, loss=1e-4)
    assert np.abs(fast.shared).max() > 1e-3


def test_gradients_written_out_equal_torchs_own_of_fedraps_objective() -> None:
    block, chosen = made_block(), VARIANTS["fedrap"]
    fast = trained(block, chosen, "affine")
    plain = trained(block, chosen, "affine", "torch", plain=fedrap.loss)
    assert_alike(fast, plain, rtol=2e-4, atol=2e-5, loss=1e-4)


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_client_without_interactions_uploads_no_change(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    block = made_block((1, 1, 1, 1))
    lists = [block.train[u] if u != 2 else block.train[u][:0] for u in range(4)]
    train = Ragged(offsets(np.array([len(x) for x in lists])), np.concatenate(lists))
    # rooms for results come with any content: make sure that it cannot be seen
    monkeypatch.setattr("fedrec.methods.two_views.train.room", lambda shape, _: np.full(shape, np.nan, np.float32))
    start = parameters(block, "ace", True)["private"]
    out, private = trained(replace(block, train=train, exclude=train), FULL, "affine", engine)
    assert (out.shared[2] == 0).all()
    assert all((value[2] == 0).all() for value in out.networks.values())
    np.testing.assert_array_equal(private[2], start[2])
    assert np.isfinite(out.shared).all()
    assert (np.abs(out.shared[[0, 1, 3]]).max(axis=(1, 2)) > 1e-4).all()


def test_scratch_gives_the_same_memory_for_a_name() -> None:
    scratch = Scratch("cpu")
    large, small = scratch.take("a", 4, 6), scratch.take("a", 2, 3)
    assert small.data_ptr() == large.data_ptr()
    assert scratch.take("b", 4, 6).data_ptr() != large.data_ptr()
    assert scratch.take("a", 5, 6).shape == (5, 6)


ALTERNATIVES = {
    "Eq. 15 as printed": replace(FULL, consistency="ranking-printed"),
    "similarity": replace(FULL, consistency="similarity"),
    "contrast": replace(FULL, consistency="contrast"),
    "l2": replace(FULL, complementarity="l2"),
    "mutual information": replace(FULL, complementarity="mutual-information"),
    "unified transfer": replace(FULL, transfer="unified"),
}


@pytest.mark.parametrize("name", list(ALTERNATIVES))
def test_alternatives_of_figure_4_and_table_iv_train(name: str) -> None:
    block = made_block()
    out, private = trained(block, ALTERNATIVES[name])
    assert np.isfinite(out.shared).all()
    assert np.isfinite(private).all()
    plain, _ = trained(block, FULL)
    assert np.abs(out.shared - plain.shared).max() > 1e-5, "another loss, another result"


def test_the_plug_in_trains_a_scorer_with_layers() -> None:
    out, _ = trained(made_block(), FULL, "ncf")
    assert {"weight_0", "transfer_weight_0"} <= out.networks.keys()
    assert np.abs(out.networks["weight_0"]).max() > 0


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_chunks_of_clients_change_nothing(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    block = made_block()
    whole = trained(block, FULL, engine=engine)
    monkeypatch.setattr("fedrec.methods.two_views.train.CPU_NUMBERS", 1)
    monkeypatch.setattr("fedrec.methods.two_views.train.CLOSED_CLIENTS", 1)
    # batched products round differently for one client and for many; nothing else may differ
    assert_alike(whole, trained(block, FULL, engine=engine), rtol=2e-4, atol=2e-5, loss=1e-5)


@pytest.mark.parametrize("name", ["rec only", "C4", "full", "full on fedrap"])
def test_tables_of_several_blocks_of_rows_and_whole_vectors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_views_made, "D", 37)  # two vectors, and some numbers
    monkeypatch.setattr(two_views_made, "M", 2 * BLOCK + 22)
    block, chosen = made_block(), replace(VARIANTS[name], lr_items=0.002, lr=0.002, lr_transfer=1e-4)
    fast, plain = (trained(block, chosen, "affine", engine) for engine in ("auto", "torch"))
    assert_alike(fast, plain, rtol=2e-4, atol=2e-5, loss=1e-4)
    assert np.abs(fast[0].shared).max() > 1e-3


def test_generators_that_add_up_their_steps_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    block = made_block()
    apart = trained(block, FULL, "affine")
    monkeypatch.setattr("fedrec.methods.two_views.own_generators.STEPS", 2)
    assert_alike(apart, trained(block, FULL, "affine"), rtol=2e-4, atol=2e-5, loss=1e-5)

"""FedCA beyond its defaults: proxies of section 5.2, averages of rows, mixtures at inference, alpha and beta tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedrec
from fedrec.core.method import Keys, Reply
from fedrec.core.population import population
from fedrec.core.settings import build
from fedrec.core.state import flatten
from fedrec.data.load import load
from fedrec.data.ragged import Ragged, offsets
from fedrec.errors import BadInput
from fedrec.evaluation.protocols import find as find_protocol
from fedrec.methods.fedca.auto import Trials, gains, grid
from fedrec.methods.fedca.fedca import FedCa
from fedrec.methods.fedca.messages import FedCaDownload
from fedrec.methods.fedca.settings import FedCaSettings
from fedrec.simulate.runtime import Simulator
from there import there
from unit.methods.fedca.test_fedca import KEYS, block_of, fedca, one_round, world_of

WORLD = "scale:users=40,items=60,interactions=760"
TOGETHER: dict[str, Any] = {
    "rho": 0.0, "train_from": "average", "averaged": "rows", "variant_similarity": "changes", "standardised": True,
}  # fmt: skip
SMALL: dict[str, Any] = {"dim": 4, "epochs": 2, "batch_size": 32}


@pytest.mark.parametrize(("proxy", "other"), [("mean", "fcf"), ("size", "fedavg"), ("distance", "fedatt")])
def test_section_5_2_each_proxy_is_the_method_it_names(proxy: str, other: str) -> None:
    plain = {"alpha": 0.0, "beta": 0.0, "rho": 0.0, "r": 1.0, "proxy": proxy}
    run: dict[str, Any] = {"data": WORLD, "rounds": 3, "participation": 0.6}
    ours = fedrec.run("fedca", **run, settings={**SMALL, **plain})
    theirs = fedrec.run(other, **run, settings=SMALL)
    for part in ("valid", "test"):
        assert ours.json["metrics"][part] == pytest.approx(theirs.json["metrics"][part], abs=1e-9)


def test_noise_on_the_svd_part_reaches_the_public_codes_components() -> None:
    block = block_of([8, 12, 10])
    plain, noisy = (
        one_round(fedca(variant_complementarity="code", noise_svd=noise), block)[1].upload for noise in (0.0, 0.3)
    )
    moved = there(noisy.components) - there(plain.components)
    assert np.abs(moved).mean() == pytest.approx(0.3, rel=0.5)
    np.testing.assert_array_equal(plain.tables, noisy.tables)


def test_blend_at_inference_trains_from_the_mixture_alone() -> None:
    method, block = fedca(rho=0.75, blend="inference"), block_of([3, 4])
    private = method.start_clients(world_of(block), block, Keys(5, 0))
    there(private.tables)[...] = 4.0
    download = FedCaDownload(np.full_like(there(private.tables), 8.0), {}, None, {})
    np.testing.assert_array_equal(method.start_tables(private, download)[0], 8.0)
    expected = 5.0 * np.repeat(private.users.sum(1, keepdims=True), 40, axis=1)  # 0.75 * 4 + 0.25 * 8
    np.testing.assert_allclose(method.score(private, download, block), expected, rtol=1e-5)


@pytest.mark.parametrize("train_from", ["mixture", "average"])
def test_a_row_is_averaged_over_those_who_trained_it(train_from: str) -> None:
    method, block = fedca(**{**TOGETHER, "train_from": train_from}, alpha=2.0, beta=1.0), block_of([5, 9, 7, 3])
    server, update, after = one_round(method, block)
    tables, first = update.upload.tables, server.first
    trained = (tables != first).any(2)  # [clients, items]
    assert 0.2 < trained.mean() < 0.9
    p = np.array([5, 9, 7, 3]) / 24
    for item in range(block.n_items):
        who = np.flatnonzero(trained[:, item])
        mean = np.average(tables[who, item], axis=0, weights=p[who]) if len(who) else first[item]
        if train_from == "average":
            np.testing.assert_allclose(there(after.common)[item], mean, atol=1e-6)
        for u in range(4):
            own = after.weights[u, who]
            wanted = np.average(tables[who, item], axis=0, weights=own) if own.sum() > 1e-6 else mean
            np.testing.assert_allclose(after.tables[u, item], wanted, atol=1e-5)


def test_training_from_the_average_is_never_personal() -> None:
    method, block = fedca(**TOGETHER, alpha=2.0, beta=1.0), block_of([5, 9, 7, 3])
    _, update, after = one_round(method, block)
    assert not np.allclose(after.tables[0], after.tables[1])
    start, _ = method.start_tables(update.private, method.download(after, block.clients))
    np.testing.assert_array_equal(start, np.broadcast_to(there(after.common), start.shape))


def test_without_the_own_term_a_client_counts_for_itself_by_its_size() -> None:
    block = block_of([5, 9, 7, 3])
    kept, left = (one_round(fedca(own_term=own, alpha=0.5, beta=0.0), block)[2].weights for own in (True, False))
    assert (left.diagonal() < kept.diagonal()).all()
    np.testing.assert_allclose(left.sum(1), 1, atol=1e-6)


def test_standardised_measures_have_no_scale_of_their_own() -> None:
    """Eq. (6) on tables a hundred times nearer to each other gives the same weights."""
    import torch

    from fedrec.maths.row_mixtures import standardised

    values = torch.rand(6, 6, generator=torch.Generator().manual_seed(0))
    found = standardised(values.clone())
    torch.testing.assert_close(found, standardised(0.01 * values + 5.0), atol=1e-4, rtol=1e-3)
    assert (found.diagonal() == 0).all()
    apart = found[~torch.eye(6, dtype=torch.bool)] * 6
    assert float(apart.mean()) == pytest.approx(0, abs=1e-6)
    assert float(apart.std()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "given",
    [
        {"averaged": "rows"},
        {"variant_similarity": "changes", "rho": 0.0, "clip": 1.0},
        {"alpha": "auto"},
        {"alpha": "auto", "beta": "auto"},
    ],
    ids=str,
)
def test_settings_that_do_not_go_together_are_bad_input(given: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"blend|clip|together|train_from"):
        fedca(**given)


def auto(**given: Any) -> FedCa:
    return fedca(**{**TOGETHER, "alpha": "auto", "beta": "auto", **given})


def test_a_point_that_does_not_gain_is_never_chosen() -> None:
    trials = replace(Trials.none(50, auto().settings), points=np.arange(50) % len(grid(auto().settings)))
    lost = trials.heard(np.arange(50), np.tile([-0.1, 1.0], (50, 1)))
    assert grid(auto().settings)[lost.best] == (0.0, 0.0)
    reports = np.where(np.arange(50)[:, None] % len(lost.gains) == 4, [0.2, 1.0], [0.1, 1.0])
    assert trials.heard(np.arange(50), reports).best == 4


def test_fewer_try_as_rounds_go_by() -> None:
    tickets = np.random.default_rng(0).integers(0, 1 << 32, 1000).astype(np.uint32)
    shares = []
    for rounds in (0, 4, 40):
        trials = replace(Trials.none(1000, auto().settings), rounds=rounds).dealt(np.arange(1000), tickets)
        shares.append((trials.points > 0).mean())
    assert shares[0] > 0.9 > shares[1] > 0.1 > shares[2] > 0.0


def test_the_gain_is_what_the_mixture_ranks_better_than_the_average() -> None:
    method, block = auto(), block_of([3, 4])
    block = replace(block, valid=Ragged(offsets(np.array([1, 1])), np.array([30, 31], np.int32)))
    private = method.start_clients(world_of(block), block, Keys(5, 0))
    common = np.zeros((40, 4), np.float32)
    tables = np.zeros((2, 40, 4), np.float32)
    tables[0, 30] = 1.0  # the first client's mixture ranks its item first; the second's is the average
    common_rank = 0.5 + 0.5 * (40 - block.train.counts[0])
    found = gains(method, private, FedCaDownload(tables, {}, common, {}), block)
    np.testing.assert_allclose(found, [[1 - 1 / np.log2(1 + common_rank), 1], [0, 1]], atol=1e-6)


def test_trials_do_not_depend_on_blocks_and_pick_up_gains() -> None:
    task = find_protocol("strict").prepare(load(WORLD), 0)
    chosen = build(FedCaSettings, {**SMALL, **TOGETHER, "alpha": "auto", "beta": "auto"}, "fedca")
    sims = [Simulator(FedCa(chosen), population(task), task, 0, block_clients=size) for size in (100, 7)]
    everyone = np.arange(sims[0].people.block.n_clients)
    for sim in sims:
        for number in (1, 2, 3):
            sim.round(number, everyone, everyone, False)
    left, right = (flatten(sim.snapshot())[0] for sim in sims)
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-3, atol=1e-4, err_msg=name)
    assert sims[0].server.trials.counts.sum() > 0
    assert np.abs(sims[0].server.trials.gains).sum() > 0


def test_validation_items_do_not_leave() -> None:
    method, block = auto(), block_of([3, 4])
    server = method.start_server(world_of(block), Keys(5, 0))
    sent = []
    for item in (30, 31):
        mine = replace(block, valid=Ragged(offsets(np.array([1, 1])), np.array([item, item], np.int32)))
        private = method.start_clients(world_of(block), mine, Keys(5, 0))
        sent.append(method.local_update(private, method.download(server, block.clients), mine, KEYS).upload)
    np.testing.assert_array_equal(sent[0].tables, sent[1].tables)
    assert method.aggregate(server, iter([Reply(block.clients, sent[0])]), KEYS).trials is not None

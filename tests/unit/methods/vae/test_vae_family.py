"""FedDAE and its family: the equations, the factors, the private parts, the messages."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pytest
import torch

from fedrec import keyed
from fedrec.backbones.vae import (
    SHARED,
    Bags,
    Sizes,
    combined,
    divergence,
    encode,
    fresh_decoder,
    fresh_encoder,
    to_device,
)
from fedrec.core import disk_array
from fedrec.core.block import Block, World
from fedrec.core.messages import gather
from fedrec.core.method import D, Keys, Method, P, Reply, S, U, Update
from fedrec.core.settings import build
from fedrec.data.ragged import Ragged, offsets
from fedrec.methods.vae.client_update import ACTIVATIONS, DELTAS, train_chunk
from fedrec.methods.vae.feddae import FedDae, objective
from fedrec.methods.vae.fedvae import FedVae
from fedrec.methods.vae.gradients import add_dense, add_factored, with_ones
from fedrec.methods.vae.messages import LAYERS, LocalNets
from fedrec.methods.vae.method import dropped
from fedrec.methods.vae.own_encoder import OwnLayers, PrivateParts, equal_parts
from fedrec.methods.vae.plan import LocalPlan
from found_methods import find_reference
from there import there

M = TypeVar("M", bound=Method[Any, Any, Any, Any])
ITEMS, DIM, EPOCHS = 9, 2, 3
SMALL = {"dim": DIM, "epochs": EPOCHS, "chunk": 3, "lr": 0.05, "alpha": 1.0}


def a_block(users: int = 5, per_client: int = 1, seed: int = 0) -> Block:
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(ITEMS)[: rng.integers(1, 6)].astype(np.int32) for _ in range(users)]
    train = Ragged(offsets(np.array([len(items) for items in lists])), np.concatenate(lists))
    clients = users // per_client
    return Block(
        n_items=ITEMS,
        clients=np.arange(clients),
        client_keys=keyed.keys_of(range(clients)),
        user_start=np.arange(clients + 1) * per_client,
        user_keys=keyed.keys_of(range(100, 100 + users)),
        train=train,
        exclude=train,
    )


def world_of(block: Block) -> World:
    return World("synthetic", ITEMS, block.n_users, block.n_clients)


def a_method_of(kind: type[M], **more: Any) -> M:
    return kind(build(kind.Settings, {**SMALL, **more}, kind.name))


def a_method(**more: Any) -> FedDae:
    return a_method_of(FedDae, **more)


def started(method: Method[S, P, U, D], block: Block, seed: int = 1) -> tuple[S, P]:
    world, keys = world_of(block), Keys(seed, 0)
    return method.start_server(world, keys), method.start_clients(world, block, keys)


# --- the maths -------------------------------------------------------------------------------------------------


def test_lemma_1_adds_means_and_squares_weights_of_variances() -> None:
    first = torch.tensor([[1.0, -2.0, np.log(4.0), np.log(0.25)]], dtype=torch.float64)
    second = torch.tensor([[3.0, 5.0, np.log(1.0), np.log(9.0)]], dtype=torch.float64)
    mean, variance = combined(first, second, torch.tensor([[0.25, 0.75]], dtype=torch.float64))
    np.testing.assert_allclose(mean, [[0.25 + 2.25, -0.5 + 3.75]])
    np.testing.assert_allclose(variance, [[4 / 16 + 9 / 16, 0.25 / 16 + 9 * 9 / 16]])


def test_lemma_1_holds_for_samples() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(1.5, 0.5, 200_000), rng.normal(-1.0, 2.0, 200_000)
    made = 0.3 * x + 0.7 * y
    first = torch.tensor([[1.5, 2 * np.log(0.5)]])
    second = torch.tensor([[-1.0, 2 * np.log(2.0)]])
    mean, variance = combined(first, second, torch.tensor([[0.3, 0.7]]))
    assert made.mean() == pytest.approx(mean.item(), abs=0.02)
    assert made.var() == pytest.approx(variance.item(), rel=0.02)


def test_the_kl_term_has_its_closed_form() -> None:
    mean, variance = torch.randn(6, 4, dtype=torch.float64), torch.rand(6, 4, dtype=torch.float64) + 0.1
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, variance.sqrt()),
        torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean)),
    ).sum(1)
    np.testing.assert_allclose(divergence(mean, variance), expected)
    assert divergence(torch.zeros(1, 3), torch.ones(1, 3)).item() == 0


# --- local training --------------------------------------------------------------------------------------------


def a_chunk(
    gate: str, seed: int = 0
) -> tuple[Block, dict[str, torch.Tensor], PrivateParts, Bags, torch.Tensor, torch.Tensor]:
    """Shared layers, private parts, inputs and noise of a few users."""
    block = a_block(seed=seed)
    method = a_method(gate=gate)
    server, private = started(method, block)
    rng = np.random.default_rng(seed)
    for field in dataclasses.fields(private):  # away from the start, where much is zero or equal
        array = getattr(private, field.name)
        array += rng.normal(0, 0.3, array.shape).astype(np.float32)
    values = torch.from_numpy(dropped(block, Keys(1, 1), EPOCHS, 0.3))
    noise = torch.from_numpy(rng.normal(size=(block.n_users, EPOCHS, DIM)).astype(np.float32))
    bags, where = method.bags(block, slice(0, block.n_users))
    parts = method.parts(private, method.download(server, block.clients), bags, where)
    return block, to_device(server.nets, "cpu"), parts, bags, values, noise


def loss_of(
    nets: dict[str, torch.Tensor],
    parts: dict[str, torch.Tensor],
    block: Block,
    values: torch.Tensor,
    noise: torch.Tensor,
    plan: LocalPlan,
    user: int,
) -> torch.Tensor:
    """The plain objective of one user, from layers of all users."""
    inside = slice(int(block.train.start[user]), int(block.train.start[user + 1]))
    own = {name: array[inside if name in ("rows", "gate_rows") else user] for name, array in parts.items()}
    items = torch.from_numpy(block.train.values[inside].astype(np.int64))
    return objective(nets, own, items, values[inside], noise, plan)


@pytest.mark.parametrize("gate", ["linear", "mlp", "fixed"])
def test_local_training_equals_autograd_with_full_copies(gate: Literal["linear", "mlp", "fixed"]) -> None:
    """ClientUpdate by torch's autograd and optimisers, user by user, gives the same everything."""
    block, nets, parts, bags, values, noise = a_chunk(gate)
    before = copy.deepcopy(parts)
    plan = LocalPlan(EPOCHS, 0.05, "descent", 0.7, gate, 0.3, 0.05)
    trained = train_chunk(nets, parts, bags, values, noise, plan)
    arrays = trained.at_home()
    names = [f.name for f in dataclasses.fields(PrivateParts)]
    for user in range(block.n_users):
        shared = {name: nets[name].clone().requires_grad_() for name in SHARED}
        own = {name: torch.from_numpy(getattr(before, name)).clone().requires_grad_() for name in names}
        descent = torch.optim.SGD(shared.values(), lr=0.05)
        adam = torch.optim.Adam(own.values(), lr=0.05)
        total = {name: torch.zeros_like(array) for name, array in shared.items()}
        losses = []
        for epoch in range(EPOCHS):
            descent.zero_grad()
            adam.zero_grad()
            loss = loss_of(shared, own, block, values[:, epoch], noise[user, epoch], plan, user)
            torch.autograd.backward(loss)
            losses.append(loss.item())
            for name, array in shared.items():
                total[name] += there(array.grad)
            descent.step()
            adam.step()
        assert trained.loss[user].item() == pytest.approx(np.mean(losses), rel=1e-4)
        for name, left, right in LAYERS[:5]:
            a, delta = arrays[left][user : user + 1], arrays[right][user]
            np.testing.assert_allclose(with_ones(a)[0].T @ delta, total[name], rtol=2e-3, atol=2e-4, err_msg=name)
        np.testing.assert_allclose(arrays["delta_in"][user].sum(0), total["bias_in"], rtol=2e-3, atol=2e-4)
        inside = slice(int(block.train.start[user]), int(block.train.start[user + 1]))
        rows = values[inside].numpy() @ arrays["delta_in"][user]
        np.testing.assert_allclose(
            rows, total["items_in"][block.train.values[inside]], rtol=2e-3, atol=2e-4, err_msg="items_in"
        )
        for name in names:
            where = inside if name in ("rows", "gate_rows") else user
            got, expected = getattr(parts, name)[where], own[name][where].detach()
            np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-4, err_msg=name)


def test_gradients_agree_with_finite_differences() -> None:
    """The written-out gradient of one epoch against differences of the loss, in double precision."""
    block, nets, parts, _, values, noise = a_chunk("linear")
    user, step = 1, 1e-5
    plan = LocalPlan(1, 1e-9, "frozen", 0.7, "linear", 0.5)
    inside = slice(int(block.train.start[user]), int(block.train.start[user + 1]))
    bags = Bags(block.train.start[user : user + 2] - block.train.start[user], block.train.values[inside], "cpu")
    alone = PrivateParts(
        *(
            getattr(parts, f.name)[inside if f.name in ("rows", "gate_rows") else slice(user, user + 1)]
            for f in dataclasses.fields(PrivateParts)
        )
    )
    own = {f.name: torch.from_numpy(getattr(parts, f.name)).double() for f in dataclasses.fields(PrivateParts)}
    arrays = train_chunk(nets, alone, bags, values[inside], noise[user : user + 1], plan).at_home()
    double = {name: array.double() for name, array in nets.items()}
    for name, left, right in LAYERS[:5]:
        gradient = with_ones(arrays[left])[0].T @ arrays[right][0]
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        either = []
        for sign in (1, -1):
            moved = {**double, name: double[name].clone()}
            moved[name][place] += sign * step
            inputs = values[:, 0].double(), noise[user, 0].double()
            either.append(loss_of(moved, own, block, *inputs, plan, user).item())
        assert gradient[place] == pytest.approx((either[0] - either[1]) / (2 * step), rel=2e-3)


@pytest.mark.parametrize("dual", [True, False])
def test_factors_of_rank_e_equal_full_copies(dual: bool) -> None:
    _, nets, parts, bags, values, noise = a_chunk("linear")
    first, second = (copy.deepcopy(parts), copy.deepcopy(parts)) if dual else (None, None)
    plan = LocalPlan(EPOCHS, 0.1, "descent", 0.5, "linear", 0.5, 0.1)
    low = train_chunk(nets, first, bags, values, noise, plan)
    full = train_chunk(nets, second, bags, values, noise, plan, copies=True)
    frozen = train_chunk(nets, copy.deepcopy(parts) if dual else None, bags, values, noise,
                         dataclasses.replace(plan, shared="frozen"))  # fmt: skip
    for name in (*ACTIVATIONS, *DELTAS):
        np.testing.assert_allclose(low.arrays[name], full.arrays[name], rtol=2e-3, atol=5e-5, err_msg=name)
    np.testing.assert_allclose(low.loss, full.loss, rtol=1e-4)
    assert not np.allclose(low.loss, frozen.loss, rtol=1e-3)  # the copies did move
    if first is not None and second is not None:
        np.testing.assert_allclose(first.mid, second.mid, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("width", [6, 70])  # narrower than a step in vectors, and two of them with some behind
@pytest.mark.parametrize(("adam", "accumulate"), [(True, False), (True, True), (False, False)])
def test_the_kernel_equals_plain_torch(adam: bool, accumulate: bool, width: int) -> None:
    rng = np.random.default_rng(3)
    start = np.array([0, 4, 4, 11], np.int64)
    weights = torch.from_numpy(rng.normal(size=(11, width)).astype(np.float32))
    fast = OwnLayers(start, weights.clone(), 5, 0.02, adam=adam, accumulate=accumulate, kernel=True)
    plain = OwnLayers(start, weights.clone(), 5, 0.02, adam=adam, accumulate=accumulate, kernel=False)
    for epoch in range(5):
        inputs = torch.from_numpy((rng.normal(size=11) * (rng.random(11) > 0.4)).astype(np.float32))
        delta = torch.from_numpy(rng.normal(size=(3, width)).astype(np.float32))
        torch.testing.assert_close(fast.forward(inputs, epoch), plain.forward(inputs, epoch))
        torch.testing.assert_close(fast.backward(delta, epoch), plain.backward(delta, epoch))
        torch.testing.assert_close(fast.weights, plain.weights, rtol=1e-4, atol=1e-5)
    assert not torch.equal(fast.weights, weights)


@pytest.mark.parametrize("cleared", [True, False])
def test_an_own_layer_steps_as_torchs_adam(cleared: bool) -> None:
    weights = torch.randn(2 * 3, 4)
    own = OwnLayers(equal_parts(2, 3), weights.clone(), 6, 0.01, accumulate=not cleared)
    theirs = weights.clone().requires_grad_()
    optimiser = torch.optim.Adam([theirs], lr=0.01)
    for epoch in range(6):
        inputs, delta = torch.randn(6), torch.randn(2, 4)
        own.forward(inputs, epoch)
        own.backward(delta, epoch)
        gradient = inputs[:, None] * delta.repeat_interleave(3, 0)
        theirs.grad = gradient if cleared or theirs.grad is None else theirs.grad + gradient
        optimiser.step()
    torch.testing.assert_close(own.weights, theirs.detach(), rtol=1e-4, atol=1e-5)


def test_a_layer_wider_than_what_is_near_steps_as_in_torch() -> None:
    pytest.importorskip("numba")
    torch.manual_seed(0)
    rows, width, epochs = 11, 32 * 20 + 3, 9  # several tiles of rows and of blocks, and a rest of both
    weights = torch.randn(2 * rows, width)
    fast, plain = (OwnLayers(equal_parts(2, rows), weights.clone(), epochs, 0.01, kernel=k) for k in (True, False))
    for epoch in range(epochs):
        inputs, delta = torch.randn(2 * rows), torch.randn(2, width)
        torch.testing.assert_close(fast.forward(inputs, epoch), plain.forward(inputs, epoch), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(fast.backward(delta, epoch), plain.backward(delta, epoch), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(fast.weights, plain.weights, rtol=1e-4, atol=1e-5)


def test_dropout_is_keyed_by_user_epoch_and_item() -> None:
    block = a_block(40)
    whole = dropped(block, Keys(1, 2), EPOCHS, 0.5)
    part = block.take(np.array([7, 3]))
    again = dropped(part, Keys(1, 2), EPOCHS, 0.5)
    np.testing.assert_array_equal(again[: part.train.counts[0]], whole[block.train.start[7] : block.train.start[8]])
    kept = whole > 0
    assert 0.3 < kept.mean() < 0.7
    expected = 2 / np.sqrt(np.repeat(block.train.counts, block.train.counts))
    np.testing.assert_allclose(whole[kept], np.broadcast_to(expected[:, None], whole.shape)[kept], rtol=1e-6)
    assert (dropped(block, Keys(1, 3), EPOCHS, 0.5) != whole).any()


# --- rounds ----------------------------------------------------------------------------------------------------


def one_round(
    method: Method[S, P, U, D], server: S, private: P, block: Block, number: int, seed: int = 1
) -> tuple[S, Update[P, U]]:
    keys = Keys(seed, number)
    update = method.local_update(private, method.download(server, block.clients), block, keys)
    return method.aggregate(server, iter([Reply(block.clients, update.upload)]), keys), update


def held(method: Method[S, P, U, D], server: S, block: Block) -> Any:
    """What clients hold after a download."""
    return method.model(method.download(server, block.clients))


def test_private_parts_persist_and_matter() -> None:
    """What round 1 left behind is what round 2 starts from: with fresh private parts it goes elsewhere."""
    method, block = a_method(), a_block()
    server, private = started(method, block)
    fresh = copy.deepcopy(private)
    server, update = one_round(method, server, private, block, 1)
    assert np.abs(update.private.mid - fresh.mid).max() > 0.01
    assert np.abs(update.private.gate_rows).max() > 0.01
    kept = copy.deepcopy(update.private)
    onward, later = one_round(method, server, update.private, block, 2)
    forgetful, _ = one_round(method, server, copy.deepcopy(fresh), block, 2)
    assert np.abs(later.private.mid - kept.mid).max() < np.abs(later.private.mid - fresh.mid).max()
    assert np.abs(onward.nets["decoder_out"] - forgetful.nets["decoder_out"]).max() > 1e-4


def test_without_persistence_private_parts_stay_as_they_started() -> None:
    """Every round trains them, none keeps them; the upload of round 1 is the same either way."""
    method, block = a_method(local_encoder="fresh"), a_block()
    server, private = started(method, block)
    fresh = copy.deepcopy(private)
    _, update = one_round(method, server, private, block, 1)
    for name in ("rows", "mid", "out", "gate_rows"):
        np.testing.assert_array_equal(getattr(update.private, name), getattr(fresh, name))
    _, usual = one_round(a_method(), server, copy.deepcopy(fresh), block, 1)
    np.testing.assert_array_equal(update.loss, usual.loss)


AS_CODED = {
    "local_encoder": "averaged",
    "gate": "mlp",
    "local_shared": "adam",
    "local_gradient": "accumulated",
    "schedule": "first-round",
}


def test_as_coded_the_server_gets_the_gradient_that_is_never_cleared() -> None:
    """One Adam over two encoders, gate and decoder, by autograd: the upload is what is left in ``.grad``."""
    block, method = a_block(), a_method(**AS_CODED, dropout=0)
    server, private = started(method, block)
    rng = np.random.default_rng(0)
    for array in server.nets.values():
        array += rng.normal(0, 0.3, array.shape).astype(np.float32)
    download = method.download(server, block.clients)
    before = copy.deepcopy(private)
    update = method.local_update(private, download, block, Keys(1, 1))
    for name in ("gate_rows", "gate_bias", "gate_out"):  # the gate starts every round where it started
        np.testing.assert_array_equal(getattr(update.private, name), getattr(before, name))
    total = {name: np.zeros(array.shape) for name, array in server.nets.items()}
    assert add_factored(total, update.upload) == block.n_users
    bags, where = method.bags(block, slice(0, block.n_users))
    start = method.parts(before, download, bags, where)
    values = torch.from_numpy(dropped(block, Keys(1, 1), EPOCHS, 0))
    noise = keyed.normal(Keys(1, 1).users(block, "noise"), EPOCHS * DIM).reshape(-1, EPOCHS, DIM)
    expected = {name: np.zeros(array.shape) for name, array in server.nets.items()}
    plan = method.plan(Keys(1, 1))
    for user in range(block.n_users):
        inside = slice(int(block.train.start[user]), int(block.train.start[user + 1]))
        nets = {name: torch.from_numpy(array).clone().requires_grad_() for name, array in server.nets.items()}
        gate = {
            f.name: torch.from_numpy(getattr(start, f.name)).clone().requires_grad_()
            for f in dataclasses.fields(PrivateParts)
            if f.name.startswith("gate")
        }
        adam = torch.optim.Adam([*nets.values(), *gate.values()], lr=0.05)
        for epoch in range(EPOCHS):  # no zero_grad
            rows = torch.zeros(len(block.train.values), 3 * DIM)
            rows[inside] = nets["own_items_in"][block.train.values[inside].astype(np.int64)]
            own = {"rows": rows, **{n: nets[f"own_{n}"].expand(user + 1, *nets[f"own_{n}"].shape)
                                    for n in ("mid", "out")}}  # fmt: skip
            own["bias"] = nets["own_bias_in"].expand(user + 1, -1)
            drawn = torch.from_numpy(noise[user, epoch].astype(np.float32))
            torch.autograd.backward(loss_of(nets, own | gate, block, values[:, epoch], drawn, plan, user))
            adam.step()
        for name, net in nets.items():
            expected[name] += there(net.grad).numpy()
    for name in total:
        np.testing.assert_allclose(total[name], expected[name], rtol=2e-3, atol=2e-3, err_msg=name)


def test_as_coded_whole_gradients_are_the_factored_ones() -> None:
    block, totals = a_block(6, 2), []
    for form, add in (("factored", add_factored), ("dense", add_dense)):
        method = a_method(**AS_CODED, gradients=form)
        server, private = started(method, block)
        _, update = one_round(method, server, private, block, 1)
        total = {name: np.zeros(array.shape) for name, array in server.nets.items()}
        assert add(total, update.upload) == 6
        totals.append(total)
    assert {"own_items_in", "own_bias_in", "own_mid", "own_out"} < set(totals[0])
    for name, array in totals[0].items():
        np.testing.assert_allclose(array, totals[1][name], rtol=1e-4, atol=1e-4, err_msg=name)


def test_as_coded_the_averaged_encoder_moves_and_is_what_scores() -> None:
    block, method = a_block(), a_method(**AS_CODED)
    server, private = started(method, block)
    assert private.mid.size == private.rows.size == 0
    onward, update = one_round(method, server, private, block, 1)
    assert np.abs(onward.nets["own_mid"] - server.nets["own_mid"]).max() > 1e-4
    scores, again = (method.score(update.private, held(method, onward, block), block) for _ in range(2))
    still = dataclasses.replace(onward, nets={**onward.nets, "own_out": onward.nets["own_out"] + 0.5})
    np.testing.assert_array_equal(scores, again)
    assert np.abs(method.score(update.private, held(method, still, block), block) - scores).max() > 1e-3


def test_only_the_rows_of_own_items_are_kept() -> None:
    method, block = a_method(), a_block()
    _, private = started(method, block)
    assert private.rows.shape == (len(block.train.values), 3 * DIM)
    assert private.gate_rows.shape == (len(block.train.values), 2)


@pytest.mark.parametrize("per_client", [1, 2])
@pytest.mark.parametrize("kind", [FedDae, FedVae])
def test_whole_gradients_add_up_to_what_factors_add_up_to(
    kind: type[Method[Any, Any, Any, Any]], per_client: int
) -> None:
    block = a_block(6, per_client)
    totals, users = [], []
    for form in ("factored", "dense"):
        method = a_method_of(kind, gradients=form)
        server, private = started(method, block)
        _, update = one_round(method, server, private, block, 1)
        total = {name: np.zeros(array.shape) for name, array in server.nets.items()}
        add = add_factored if form == "factored" else add_dense
        users.append(add(total, update.upload))
        totals.append(total)
    assert users == [6, 6]
    for name in SHARED:
        np.testing.assert_allclose(totals[0][name], totals[1][name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_noise_makes_the_upload_whole() -> None:
    assert a_method(noise=0.1).Upload.__name__ == "DenseUpload"
    assert a_method().Upload.__name__ == "FactoredUpload"


def test_noise_of_the_sum_has_the_variance_of_noise_by_every_user() -> None:
    """Table 4: n users with deviation kappa each leave kappa / sqrt(n) in every coordinate of the mean."""
    kappa, users, block = 0.5, 4, a_block(4)
    stepped = []
    for noise in (0.0, kappa):
        method = a_method(dim=12, server_optimizer="sgd", server_lr=1.0, sum_noise=noise)
        assert method.Upload.__name__ == "FactoredUpload"  # nothing to hide in an upload: factors still cross
        server, private = started(method, block)
        stepped.append(one_round(method, server, private, block, 1)[0].nets)
    apart = np.concatenate([(stepped[1][name] - stepped[0][name]).ravel() for name in SHARED])
    assert apart.std() == pytest.approx(kappa / users**0.5, rel=0.05)
    assert abs(apart.mean()) < 4 * apart.std() / len(apart) ** 0.5


def test_evaluated_locally_a_client_has_its_own_copies() -> None:
    """Scores right after descent: shared layers moved by the client's own steps."""
    method, block = a_method(), a_block()
    server, private = started(method, block)
    download = method.download(server, block.clients)
    update = method.local_update(private, download, block, Keys(1, 1))
    moved = {name: array.copy() for name, array in server.nets.items()}
    user, rate = 2, method.settings.lr
    local = update.local
    assert isinstance(local, LocalNets)
    changes = there(local.changes)
    for name, left, right in LAYERS[:5]:
        moved[name] -= rate * with_ones(getattr(changes, left))[user].T @ getattr(changes, right)[user]
    inside = slice(block.train.start[user], block.train.start[user + 1])
    np.subtract.at(
        moved["items_in"], block.train.values[inside], rate * changes.values[inside] @ changes.delta_in[user]
    )
    moved["bias_in"] -= rate * changes.delta_in[user].sum(0)
    own = method.score(update.private, local, block)[user]
    after = method.model(type(download)(**moved, alpha=server.alpha))
    expected = method.score(update.private, after, block)[user]
    np.testing.assert_allclose(own, expected, rtol=1e-3, atol=1e-4)
    assert np.abs(own - method.score(update.private, method.model(download), block)[user]).max() > 1e-3


@pytest.mark.parametrize("gradient", ["fresh", "accumulated"])
def test_copies_that_adam_moved_are_evaluated_as_they_are(monkeypatch: Any, gradient: str) -> None:
    """Scores right after training are made with the very copies that training left behind."""
    made: list[OwnLayers] = []
    keep = OwnLayers.__init__

    def kept(self: OwnLayers, *given: Any, **named: Any) -> None:
        keep(self, *given, **named)
        made.append(self)

    method, block = a_method(local_shared="adam", local_gradient=gradient, chunk=100), a_block()
    server, private = started(method, block)
    download = method.download(server, block.clients)
    monkeypatch.setattr(OwnLayers, "__init__", kept)
    update = method.local_update(private, download, block, Keys(1, 1))
    ours = len(made) - 7  # behind those of the own encoder: rows and bias of the first layer, five more
    trained = [layer.weights.clone() for layer in made[ours:]]
    made.clear()
    assert isinstance(update.local, LocalNets)
    own = method.score(update.private, update.local, block)
    replayed = [layer.weights for layer in made[:7]]
    assert all(torch.equal(one, other) for one, other in zip(trained, replayed, strict=True))
    user = 2
    moved = {name: array.copy() for name, array in server.nets.items()}
    rows = slice(block.train.start[user], block.train.start[user + 1])
    moved["items_in"][block.train.values[rows]] = trained[0][rows]
    moved["bias_in"] = trained[1][user].numpy()
    deep = ("encoder_mid", "encoder_out", "decoder_in", "decoder_mid", "decoder_out")
    for name, layer in zip(deep, trained[2:], strict=True):
        moved[name] = layer.reshape(block.n_users, *moved[name].shape)[user].numpy()
    after = method.model(type(download)(**moved, alpha=server.alpha))
    expected = method.score(update.private, after, block)[user]
    np.testing.assert_allclose(own[user], expected, rtol=1e-3, atol=1e-4)
    assert np.abs(own[user] - method.score(update.private, method.model(download), block)[user]).max() > 1e-3


def test_beta_rises_with_the_rounds() -> None:
    method = a_method(beta=0.8, anneal=4)
    assert [method.plan(Keys(0, number)).beta for number in (1, 2, 5, 9)] == pytest.approx([0, 0.2, 0.8, 0.8])
    assert a_method(beta=0.8, anneal=0).plan(Keys(0, 1)).beta == 0.8
    as_coded = a_method(beta=0.8, schedule="first-round")
    assert [as_coded.plan(Keys(0, number)).beta for number in (1, 2, 9)] == [0.8, 0, 0]


def test_a_fixed_weight_of_one_is_fedvae() -> None:
    block = a_block()
    dual, single = a_method(gate="fixed", weight=1.0), a_method_of(FedVae)
    left, _ = one_round(dual, *started(dual, block), block, 1)
    right, _ = one_round(single, *started(single, block), block, 1)
    for name in SHARED:
        np.testing.assert_allclose(left.nets[name], right.nets[name], rtol=1e-4, atol=1e-5, err_msg=name)


# --- private state on disk ----------------------------------------------------------------------------------------


def test_private_state_on_disk_gives_what_memory_gives(tmp_path: Path) -> None:
    block = a_block()
    outcomes = []
    for budget in (100, 0):
        method = a_method(private_budget_mb=budget, private_dir=str(tmp_path / "private"))
        server, private = started(method, block)
        assert isinstance(private.mid, disk_array.DiskArray) == (budget == 0)
        server, update = one_round(method, server, private, block, 1)
        server, update = one_round(method, server, update.private, block, 2)
        outcomes.append((server, update.private))
    for name in SHARED:
        np.testing.assert_array_equal(outcomes[0][0].nets[name], outcomes[1][0].nets[name])
    for field in dataclasses.fields(outcomes[0][1]):
        np.testing.assert_array_equal(getattr(outcomes[0][1], field.name), getattr(outcomes[1][1], field.name))
    assert list((tmp_path / "private").iterdir()) == []  # files without names: nothing is left behind


def test_a_deep_copy_of_a_disk_array_is_another_file() -> None:
    array = disk_array.on_disk((5, 3), np.float32)
    array[...] = np.arange(15).reshape(5, 3)
    again = copy.deepcopy(array)
    assert isinstance(again, disk_array.DiskArray)
    np.testing.assert_array_equal(again, array)
    again[0] = -1
    assert array[0, 0] == 0
    disk_array.forget(array)
    np.testing.assert_array_equal(array[4], [12, 13, 14])


def test_views_of_a_disk_array_write_through() -> None:
    block, method = a_block(), a_method(private_budget_mb=0)
    _, private = started(method, block)
    part = gather(private, block, np.array([1, 2]))
    part.mid[0] = 7.0
    assert (private.mid[1] == 7.0).all()


def test_sizes_are_those_of_the_paper() -> None:
    shapes = Sizes(1682, 256).shapes()
    assert shapes["items_in"] == (1682, 768)
    assert shapes["encoder_mid"] == (769, 512)
    assert shapes["encoder_out"] == (513, 512)
    assert shapes["decoder_out"] == (769, 1682)


def test_encoding_is_the_dense_product() -> None:
    sizes = Sizes(ITEMS, DIM)
    layers = to_device(
        {**fresh_encoder(np.random.default_rng(0), sizes), **fresh_decoder(np.random.default_rng(1), sizes)}, "cpu"
    )
    block = a_block()
    values = torch.rand(len(block.train.values))
    dense = torch.zeros(block.n_users, ITEMS)
    dense[torch.from_numpy(block.train.owners), torch.from_numpy(block.train.values.astype(np.int64))] = values
    wide = (dense @ layers["items_in"] + layers["bias_in"]).tanh()
    narrow = (torch.cat([wide, torch.ones(block.n_users, 1)], 1) @ layers["encoder_mid"]).tanh()
    expected = torch.cat([narrow, torch.ones(block.n_users, 1)], 1) @ layers["encoder_out"]
    bags = Bags(block.train.start, block.train.values, "cpu")
    torch.testing.assert_close(encode(bags, layers, values), expected)


def test_the_copies_descend_by_eta_alpha() -> None:
    """Line 3 of Algorithm 1 differentiates Eq. (7), whose weight alpha_u is 1/n by default."""
    block = a_block()
    server, _ = started(a_method(alpha=0.0), block)
    assert server.alpha == pytest.approx([1 / block.n_users])
    assert a_method().plan(Keys(0, 1), 0.25).shared_rate == pytest.approx(0.05 * 0.25)


# --- centralised relatives ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["multvae", "centdae", "recvae"])
def test_a_centralised_relative_learns_what_is_there(name: str) -> None:
    """Two groups of users with two groups of items: the missing items of one's own group come first."""
    from fedrec.core.reference import Central

    kind = find_reference(name)
    lists = [np.array([i for i in range(6) if i != u % 6], np.int32) + 6 * (u % 2) for u in range(24)]
    train = Ragged(offsets(np.array([len(items) for items in lists])), np.concatenate(lists))
    data = Central(World("two groups", 12, 24, 24), train, train)
    small = {"dim": 4, "lr": 0.01, "batch_size": 10, **({"hidden": 16} if name == "recvae" else {})}
    model = kind(build(kind.Settings, small, name))
    state = model.start(data, Keys(1, 0))
    losses = []
    for number in range(1, 61):
        state, loss = model.step(state, data, Keys(1, number))
        losses.append(loss)
    assert losses[-1] < losses[0]
    scores = model.score(state, data, np.arange(24))
    own = np.array([[(item >= 6) == bool(u % 2) for item in range(12)] for u in range(24)])
    missing = [scores[u, 6 * (u % 2) + u % 6] for u in range(24)]
    others = np.where(own, -np.inf, scores).max(1)
    assert (np.array(missing) > others).mean() > 0.9
    again = model.start(data, Keys(1, 0))
    for number in range(1, 4):
        again, _ = model.step(again, data, Keys(1, number))
    assert np.isfinite(model.score(again, data, np.arange(3))).all()


def test_item_features_multiply_the_layers() -> None:
    from fedrec.maths.item_map import combinations, item_features, item_map

    rng = np.random.default_rng(0)
    encoder = fresh_encoder(rng, Sizes(40, 2))
    features = item_features(encoder["items_in"], encoder["encoder_mid"], encoder["encoder_out"])
    expected = encoder["items_in"] @ encoder["encoder_mid"][:-1] @ encoder["encoder_out"][:-1, :2]
    np.testing.assert_allclose(features, expected, rtol=1e-5)
    views = combinations(features, 2 * features, np.array([0.25, 0.75], np.float32))
    np.testing.assert_allclose(views["weighted"], 1.75 * features, rtol=1e-5)
    np.testing.assert_allclose(views["average"], 1.5 * features, rtol=1e-5)
    points = item_map(features)
    assert points.shape == (40, 2)
    assert points.min() == 0
    assert points.max() == 1


@pytest.mark.parametrize("per_client", [1, 2])
def test_a_users_encoders_show_what_it_has_and_where_the_rest_started(per_client: int) -> None:
    block = a_block(4, per_client)
    method = a_method(gate="linear")
    server, private = started(method, block)
    server, update = one_round(method, server, private, block, 1)
    private, nets = update.private, method.download(server, block.clients)
    start = fresh_encoder(Keys(1, 0).server("local encoder"), method.sizes(block.n_items))["items_in"]
    for user in range(block.n_users):
        shared, own, weights = method.encoders(private, nets, block, user, Keys(1, 0))
        has = block.train[user]
        mine = slice(block.train.start[user], block.train.start[user + 1])
        table = start.copy()
        table[has] = private.rows[mine]
        d = method.settings.dim
        np.testing.assert_allclose(own, table @ private.mid[user][:-1] @ private.out[user][:-1, :d], rtol=1e-4)
        np.testing.assert_allclose(shared, nets.items_in @ nets.encoder_mid[:-1] @ nets.encoder_out[:-1, :d], rtol=1e-4)
        logits = private.gate_rows[mine].sum(0)  # r_u . psi_u
        np.testing.assert_allclose(weights, np.exp(logits) / np.exp(logits).sum(), rtol=1e-5)
        assert not np.allclose(table[has], start[has]), "training moved the rows of own items"

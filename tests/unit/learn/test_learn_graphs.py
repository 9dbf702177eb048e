"""The kernel of graphs and the torch engine train a client's graph alike, and as a plain loop would."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from learn_reference import Plan, random_block

from fedrec.core.block import Block
from fedrec.core.messages import Float32
from fedrec.errors import BadInput
from fedrec.learn import shuffle
from fedrec.learn.samples import draw
from fedrec.learn.torch.graphs import train_graphs
from fedrec.learn.trained import Trained

HOLDINGS = [[9], [1, 12, 3], [0], [25, 30, 2], [4]]
LAYERS, NEGATIVES, DIM = 3, 2, 9


def start(block: Block, personal: bool = False) -> tuple[Float32, Float32]:
    rng = np.random.default_rng(0)
    tables = rng.standard_normal((block.n_clients, block.n_items, DIM)) * 0.3
    users = rng.standard_normal((block.n_users, DIM)) * 0.3
    return users.astype(np.float32), (tables if personal else tables[0]).astype(np.float32)


def trained(block: Block, plan: Plan, users: Float32, table: Float32) -> Trained:
    return train_graphs(block, users, table, plan, NEGATIVES, LAYERS, block.client_keys, block.client_keys)


def plainly(block: Block, plan: Plan, users: Float32, table: Float32, c: int) -> tuple[np.ndarray, np.ndarray, float]:
    """One client in double precision: users, its whole table, and the last epoch's loss; gradients by autograd."""
    samples = draw(block, NEGATIVES, block.client_keys, objective="bpr")
    own = slice(int(block.user_start[c]), int(block.user_start[c + 1]))
    first, n = int(samples.start[c]), int(samples.start[c + 1] - samples.start[c])
    ids = samples.rows_ids[samples.rows_start[c] : samples.rows_start[c + 1]].astype(np.int64)
    p = torch.tensor(users[own], dtype=torch.float64, requires_grad=True)
    q = torch.tensor(table, dtype=torch.float64, requires_grad=True)
    lists = block.train.take(np.arange(own.start, own.stop))
    held = np.zeros((len(lists), block.n_items))
    held[lists.owners, lists.values] = 1
    root = np.sqrt(np.outer(held.sum(1), held.sum(0)))
    graph = torch.tensor(np.divide(held, root, out=np.zeros_like(held), where=root > 0))
    kind = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
    optimiser = kind([p, q], lr=plan.lr)
    total = 0.0
    for epoch in range(plan.epochs if n else 0):
        order = shuffle.order(n, shuffle.epoch_key(int(block.client_keys[c]), epoch))
        total = 0.0
        for begin in range(0, n, plan.batch_size):
            at = first + order[begin : begin + plan.batch_size]
            who, good, bad = samples.user[at] - own.start, ids[samples.row[at]], ids[samples.negative[at]]
            u, v = [p], [q]
            for _ in range(LAYERS):
                u, v = [*u, graph @ v[-1]], [*v, graph.T @ u[-1]]
            smooth_u, smooth_v = torch.stack(u).mean(0), torch.stack(v).mean(0)
            margin = (smooth_u[who] * (smooth_v[good] - smooth_v[bad])).sum(1)
            each = torch.nn.functional.softplus(-margin)
            total += float(each.sum().detach())
            pull = sum((part**2).sum() for part in (p[who], q[good], q[bad]))
            optimiser.zero_grad()
            torch.autograd.backward(each.mean() + plan.weight_decay / 2 * pull / len(at))
            optimiser.step()
    return p.detach().numpy(), q.detach().numpy(), total / max(1, n)


@pytest.mark.parametrize("engine", ["kernel", "torch"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("personal", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_engines_equal_the_plain_loop(engine: str, optimizer: str, personal: bool, weight_decay: float) -> None:
    block = random_block(3, HOLDINGS, 60)
    plan = Plan(engine=engine, optimizer=optimizer, weight_decay=weight_decay, batch_size=7, lr=0.02)
    users, table = start(block, personal)
    found = trained(block, plan, users, table)
    tables = found.rows.dense() + table
    for c in range(block.n_clients):
        mine = table[c] if personal else table
        want_users, want_table, want_loss = plainly(block, plan, users, mine, c)
        own = slice(block.user_start[c], block.user_start[c + 1])
        np.testing.assert_allclose(found.users[own], want_users, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(tables[c], want_table, rtol=1e-3, atol=1e-4)
        assert found.loss[c] == pytest.approx(want_loss, rel=1e-4)


def test_threads_and_block_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    block = random_block(4, HOLDINGS, 60)
    users, table = start(block)
    found = {}
    for threads in ("1", "2"):
        monkeypatch.setenv("FEDREC_THREADS", threads)
        found[threads] = trained(block, Plan(), users, table)
    np.testing.assert_array_equal(found["1"].users, found["2"].users)
    np.testing.assert_array_equal(found["1"].rows.values, found["2"].rows.values)
    for c in range(block.n_clients):
        own = slice(block.user_start[c], block.user_start[c + 1])
        alone = trained(block.take(np.array([c])), Plan(), users[own], table)
        np.testing.assert_array_equal(alone.users, found["1"].users[own])
        np.testing.assert_array_equal(alone.rows.values, found["1"].rows.take(np.array([c])).values)


def test_what_is_given_is_not_written() -> None:
    block = random_block(5, HOLDINGS, 60)
    users, table = start(block)
    users.flags.writeable = table.flags.writeable = False
    trained(block, Plan(), users, table)


@pytest.mark.parametrize("engine", ["kernel", "torch"])
def test_a_table_that_is_too_short_is_refused_before_anything_reads_beyond_it(engine: str) -> None:
    block = random_block(10, HOLDINGS, 40)
    users, table = start(block)
    for given in (table[:-1], table[:, :-1], np.stack([table] * (block.n_clients - 1))):
        with pytest.raises(BadInput, match="table"):
            trained(block, Plan(engine=engine), users, given)
    with pytest.raises(BadInput, match="users"):
        trained(block, Plan(engine=engine), users[:-1], table)

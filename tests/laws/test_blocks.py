"""Laws 1, 3, 4 and 5: blocks, threads, order and absence change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from small_runs import PATTERNS, plan, reordered, run, same_metrics, same_state, simulator

from fedrec.core.messages import gather
from fedrec.core.state import flatten


@pytest.mark.parametrize("clients", [1, 7])
def test_law_1_a_block_of_clients_gives_what_blocks_of_one_give(method, pattern, tiny, clients):
    together, apart = simulator(method, tiny, block_clients=1000), simulator(method, tiny, block_clients=clients)
    one, other = run(together, plan(2, PATTERNS[pattern])), run(apart, plan(2, PATTERNS[pattern]))
    same_metrics(one, other)
    same_state(together.snapshot(), apart.snapshot())


def test_law_3_the_number_of_threads_changes_nothing(method, tiny):
    import numba
    import torch

    before = numba.get_num_threads(), torch.get_num_threads()
    outcomes = []
    try:
        for threads in (1, 2):
            numba.set_num_threads(min(threads, before[0]))
            torch.set_num_threads(threads)
            sim = simulator(method, tiny)
            outcomes.append((run(sim, plan(2)), sim.snapshot()))
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])
    same_metrics(outcomes[0][0], outcomes[1][0])
    same_state(outcomes[0][1], outcomes[1][1])


def test_law_3_the_same_seed_gives_the_same_result_and_another_seed_another(method, tiny):
    first, again = simulator(method, tiny), simulator(method, tiny)
    other = simulator(method, tiny, seed=4)
    run(first, plan(1)), run(again, plan(1)), run(other, plan(1, seed=4))
    same_state(first.snapshot(), again.snapshot(), tolerance=0)
    left, right = flatten(first.snapshot())[0], flatten(other.snapshot())[0]
    assert any(left[name].shape != right[name].shape or (left[name] != right[name]).any() for name in left)


def test_law_4_reordering_clients_reorders_results(method, pattern, tiny):
    order = np.random.default_rng(0).permutation(tiny.n_users)
    straight = run(simulator(method, tiny), plan(2, PATTERNS[pattern]))
    shuffled = run(simulator(method, reordered(tiny, order)), plan(2, PATTERNS[pattern]))
    same_metrics(straight, shuffled)
    for name, values in straight.best_per_user.items():
        np.testing.assert_allclose(values[order], shuffled.best_per_user[name], atol=1e-9)


def test_law_5_a_client_that_takes_no_part_keeps_its_private_state(method, tiny):
    sim = simulator(method, tiny)
    run(sim, plan(1))
    everyone = np.arange(sim.people.block.n_clients)
    taking, staying = everyone[::3], np.setdiff1d(everyone, everyone[::3])
    before = flatten(gather(sim.snapshot()["private"], sim.people.block, staying))[0]
    sim.round(2, taking, taking, False)
    after = flatten(gather(sim.snapshot()["private"], sim.people.block, staying))[0]
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def test_law_5_a_client_that_drops_out_keeps_its_private_state(method, tiny):
    sim = simulator(method, tiny)
    everyone = np.arange(sim.people.block.n_clients)
    answering = everyone[:-5]
    before = flatten(gather(sim.snapshot()["private"], sim.people.block, everyone[-5:]))[0]
    cost, _ = sim.round(1, everyone, answering, False)
    after = flatten(gather(sim.snapshot()["private"], sim.people.block, everyone[-5:]))[0]
    assert cost.participants == len(answering)
    assert "5 of 30" in cost.missing[0]
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)

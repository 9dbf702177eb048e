"""What is the same for every client is made once for a state of the server, and anew for the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec.laws.small_runs import plan, run, simulator, world
from fedrec.simulate.runtime import Simulator


def counted(runtime: Simulator, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often the method is asked for a download or a model from here on."""
    times = {"download": 0, "model": 0}
    for name in times:
        whole: Any = getattr(runtime.method, name)

        def counting(*given: Any, name: str = name, whole: Any = whole) -> Any:
            times[name] += 1
            return whole(*given)

        monkeypatch.setattr(runtime.method, name, counting)
    return times


def test_one_download_and_one_model_serve_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = simulator("fedspectral", world("tiny"))
    run(runtime, plan(2))
    alone = runtime.scores(np.arange(runtime.people.block.n_clients))
    times = counted(runtime, monkeypatch)
    blocks = [runtime.scores(np.array([client])) for client in range(runtime.people.block.n_clients)]
    np.testing.assert_allclose(np.concatenate(blocks), alone, rtol=1e-5, atol=1e-6)
    assert times == {"download": 0, "model": 0}  # both were made for the scores above


def test_a_new_state_of_the_server_has_a_new_model() -> None:
    runtime = simulator("fedspectral", world("tiny"))
    everybody = np.arange(runtime.people.block.n_clients)
    run(runtime, plan(1))
    first, state = runtime.scores(everybody), runtime.snapshot()
    run(runtime, plan(2))
    assert not np.allclose(runtime.scores(everybody), first)
    runtime.restore(state)
    np.testing.assert_array_equal(runtime.scores(everybody), first)


def test_what_is_personal_is_made_for_whom_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = simulator("pfedgraph", world("tiny"))
    run(runtime, plan(2))
    times = counted(runtime, monkeypatch)
    one, other = (runtime.outgoing.download(runtime.server, np.array([client])) for client in (0, 1))
    assert times["download"] == 2
    assert one is not other


def test_new_clients_share_a_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = simulator("fedspectral", world("tiny"))
    run(runtime, plan(2))
    times = counted(runtime, monkeypatch)
    block = runtime.people.block
    together = runtime.scores_of_new(block.take(np.arange(4)))
    singly = [runtime.scores_of_new(block.take(np.array([client]))) for client in range(4)]
    np.testing.assert_allclose(np.concatenate(singly), together, rtol=1e-5, atol=1e-6)
    assert times == {"download": 1, "model": 1}

"""FedSpectral with the eigenpairs of all rounds: what it finds, and that the laws hold for it."""

from __future__ import annotations

import numpy as np
import pytest

from fedrec.laws.checking import LAWS, Law, check
from fedrec.laws.small_runs import plan, run, simulator, world
from fedrec.maths.interaction_matrix import matrix
from fedrec.maths.thin_ease import thin_ease
from fedrec.methods.fedspectral import FedSpectral

EASE = {"filter": "ease", "balance": 0.25, "keep_diagonal": True, "lam": 5.0}


def test_a_few_rounds_of_narrow_tables_give_ease_from_all_pairs() -> None:
    """Six tables of eight columns; the matrix has no more than 40 directions."""
    data = world("tiny")
    runtime = simulator("fedspectral", data, settings={**EASE, "k": 8, "rank": 48})
    run(runtime, plan(6))
    block = runtime.people.block
    histories = matrix(block.train, block.n_items, np.float64)
    gram = (histories.T @ histories).toarray()
    counts = np.diag(gram)
    root = np.where(counts > 0, counts, 1.0) ** 0.25
    values, vectors = np.linalg.eigh(gram / root[:, None] / root[None, :])
    exact = thin_ease(vectors * root[:, None], values, 5.0, counts).scores(histories)
    found = runtime.scores(np.arange(block.n_clients))
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.9999
    plain = simulator("fedspectral", data, settings={**EASE, "k": 8})
    run(plain, plan(6))
    assert np.corrcoef(plain.scores(np.arange(block.n_clients)).ravel(), exact.ravel())[0, 1] < 0.995


def test_clients_apply_as_many_columns_as_without() -> None:
    """More is kept, and no more is sent."""
    narrow, gathering = (
        simulator("fedspectral", world("tiny"), settings={"k": 4, **more}) for more in ({}, {"rank": 12})
    )
    sizes = [run(runtime, plan(2)).records[-1].bytes["upload"] for runtime in (narrow, gathering)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: str(law.number))
def test_the_laws_hold(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FedSpectral, "small", {"k": 4, "rank": 10})
    (outcome,) = check("fedspectral", [law])
    assert outcome.problems == ()

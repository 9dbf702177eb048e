"""What the in-process runtime refuses: an upload that would poison the sum, in whichever field it hides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrec.core.messages import Rows
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve


def prepared(method: str) -> Any:
    settings = {"epochs": 1, "dim": 4}
    return prepare(resolve(method, {"data": "demo", "rounds": 1, "settings": settings}))


def spoil_rows(upload: Any) -> Any:
    values = upload.rows.values.copy()
    values[upload.rows.start[3]] = np.nan  # a row of the fourth client of the block
    return replace(upload, rows=Rows(upload.rows.start, upload.rows.ids, values, upload.rows.n_items))


def spoil_network(upload: Any) -> Any:
    name = sorted(upload.networks)[0]
    changed = upload.networks[name].copy()
    changed[3] = np.inf
    return replace(upload, networks={**upload.networks, name: changed})


def enlarge(upload: Any) -> Any:
    values = upload.rows.values.copy()
    values[upload.rows.start[3]] = -1e10
    return replace(upload, rows=Rows(upload.rows.start, upload.rows.ids, values, upload.rows.n_items))


@pytest.mark.parametrize(
    ("method", "spoil", "what"),
    [
        ("fedavg", spoil_rows, "not finite"),
        ("fedncf", spoil_network, "not finite"),
        ("gpfedrec", enlarge, "too large"),
    ],
)
def test_an_upload_that_is_not_finite_is_named_and_never_added(
    method: str, spoil: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepared(method)
    kind, original = type(run.method), type(run.method).local_update

    def broken(self: Any, *given: Any) -> Any:
        update = original(self, *given)
        return replace(update, upload=spoil(update.upload))

    monkeypatch.setattr(kind, "local_update", broken)
    everyone = np.arange(run.people.world.n_clients)
    before = run.runtime.server
    with pytest.raises(FloatingPointError, match=f"client {run.people.client_ids[3]} is {what}"):
        run.runtime.round(1, everyone, everyone, False)
    assert run.runtime.server is before


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("method", "more", "what"),
    [
        ("gpfedrec", {"noise": 1e30}, "too large"),  # its graph of users was made from NaN
        ("fedavg", {"noise": 1e39}, "not finite"),
        ("fedavg", {"precision": "float16", "lr": 3e7, "optimizer": "sgd"}, "not finite"),
    ],
)
def test_what_overflows_on_its_way_out_is_named(method: str, more: dict[str, Any], what: str) -> None:
    run = prepare(resolve(method, {"data": "demo", "settings": {"epochs": 1, "dim": 4, **more}}))
    everyone = np.arange(run.people.world.n_clients)
    with pytest.raises(FloatingPointError, match=rf"the upload field 'rows' of client u\d+ is {what} as it is sent"):
        run.runtime.round(1, everyone, everyone, False)


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_no_number_is_named_and_not_recorded_as_zero(
    value: float, secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = prepare(resolve("fedavg", {"data": "demo", "settings": {"epochs": 1, "dim": 4}, "secure": secure}))
    kind: Any = type(run.method)
    original = kind.local_update

    def broken(self: Any, *given: Any) -> Any:
        update = original(self, *given)
        return replace(update, loss=np.where(np.arange(len(update.loss)) == 3, value, update.loss))

    monkeypatch.setattr(kind, "local_update", broken)
    everyone = np.arange(run.people.world.n_clients)
    with pytest.raises(FloatingPointError, match=r"the loss of client u\d+ is not finite after local training"):
        run.runtime.round(1, everyone, everyone, False)


@pytest.mark.parametrize("secure", [False, True])
def test_evaluating_local_models_counts_as_evaluation_not_as_aggregation(
    secure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"data": "demo", "rounds": 1, "settings": {"epochs": 1, "dim": 4}}
    run = prepare(resolve("fedavg", given | ({"secure": True} if secure else {})))
    clock, original = [0.0], type(run.method).score

    def slow(self: Any, *asked: Any) -> Any:
        clock[0] += 1.0
        return original(self, *asked)

    monkeypatch.setattr(type(run.method), "score", slow)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    everyone = np.arange(run.people.world.n_clients)
    cost, evaluated = run.runtime.round(1, everyone, everyone[: len(everyone) // 2], True)
    assert evaluated is not None
    assert cost.evaluate_seconds == clock[0] > 0
    assert (cost.train_seconds, cost.aggregate_seconds) == (0.0, 0.0)

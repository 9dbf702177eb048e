"""Server and nodes without a network: law 2 for every method, what crosses, faults, going back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import federation, in_process, records_of

from fedrec import running
from fedrec.core import wire
from fedrec.deploy.letters import Fault
from fedrec.deploy.rules import Rules
from fedrec.methods.registry import federated, find

SMALL = {"epochs": 2, "dim": 4}


def settings_of(method: str, **more: Any) -> Any:
    own = {key: value for key, value in SMALL.items() if key in find(method).Settings.model_fields}
    given = {"rounds": 3, "seed": 3, **more}
    return running.resolve(method, {**given, "settings": {**own, **more.get("settings", {})}})


def same(left: list[Any], right: list[Any]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.participants == other.participants
        assert one.loss == pytest.approx(other.loss, rel=1e-5)
        for part in ("valid", "test"):
            found, wanted = getattr(one, part), getattr(other, part)
            assert found.keys() == wanted.keys()
            assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("method", federated())
@pytest.mark.parametrize("nodes", [2, 4])
def test_in_process_and_federation_agree(method: str, nodes: int, tmp_path: Path) -> None:
    settings = settings_of(method)
    runtime, plan, progress, _ = federation(tmp_path, settings, nodes)
    same(records_of(runtime, plan, progress), in_process(settings))

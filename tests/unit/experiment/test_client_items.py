"""Tables of FedCIA's clients at the stages of a round (Figure 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec.errors import BadInput
from fedrec.experiment.analyses.items import agreement, client_maps, distance
from fedrec.experiment.prepare import Prepared, prepare
from fedrec.experiment.resolve import resolve


def prepared(**settings: Any) -> Prepared:
    asked = {"data": "demo", "clients": 6, "settings": {"backbone": "mf", "dim": 4, **settings}}
    return prepare(resolve("fedcia", asked))


def test_clients_part_in_training_and_only_one_aggregation_makes_them_alike() -> None:
    made = prepared()
    everyone = np.arange(6)
    made.runtime.round(1, everyone, everyone, False)
    found = client_maps(made, 2, 12)
    apart = {stage: value > 0.01 for stage, value in found.distance.items()}
    assert apart == {
        "start": False,
        "trained": True,
        "weighted summation": False,
        "collaborative information": True,
    }
    for stage, (one, other) in found.points.items():
        assert (one == other).all() != apart[stage]
    # what Eq. (6) asks for: every client's similarities are those of all
    assert found.agreement["collaborative information"] > max(0.99, found.agreement["trained"])


def test_distance_and_agreement_by_hand() -> None:
    turned = np.array([[[1, 0], [1, 1], [0, 2]], [[0, 1], [-1, 1], [-2, 0]]], np.float32)  # by a quarter
    assert distance(turned) == pytest.approx(np.sqrt(2))
    assert agreement(turned) == pytest.approx(1.0)  # similarities do not turn: 1, 0, 2
    other = np.stack([turned[0], np.array([[1, 0], [0, 1], [1, 0]], np.float32)])  # 0, 1, 0
    assert agreement(other) == pytest.approx(-np.sqrt(3) / 2)
    assert agreement(np.zeros((2, 3, 2), np.float32)) == 0.0


@pytest.mark.parametrize("own", [{"backbone": "gfcf"}, {"mixed": "dims"}, {"aggregate": "within"}, {"align": "none"}])
def test_other_federations_have_no_such_stages(own: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="leave mixed, aggregate and align=none out"):
        client_maps(prepared(**own), 2, 12)

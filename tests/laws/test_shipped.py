"""Law 8 with what ships: the planted answer is found, and kept, with the settings that `fedrec run` takes by itself."""

from __future__ import annotations

import pytest

from fedrec.experiment.resolve import resolve
from fedrec.laws.learning import AHEAD, popular
from fedrec.laws.small_runs import plan, run, simulator, world


@pytest.mark.parametrize(("name", "rounds"), [("fedrap", 20), ("fed3cr", 30), ("fediar", 30)])
def test_the_shipped_recipe_finds_the_planted_answer_and_keeps_it(name: str, rounds: int) -> None:
    """In the last round, which for FedIAR lies past the warm-up: there the answer was found and lost again."""
    settings = resolve(name, {"data": "planted"}).settings
    assert settings.get("warmup", 0) < rounds
    found = run(simulator(name, world("planted"), settings=settings), plan(rounds, every=rounds)).records[-1]
    assert found.test is not None
    for metric in ("HR@10", "HR@10/99"):
        assert found.test[metric] > popular()[metric] + AHEAD

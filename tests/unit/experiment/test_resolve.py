"""Options that would change nothing, or be replaced in silence, are refused with what to give in their place."""

from __future__ import annotations

from typing import Any

import pytest

from fedrec.errors import BadInput
from fedrec.experiment.compare import plan
from fedrec.experiment.resolve import resolve
from fedrec.report.text.commands import run_command


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delta": 1e-9}, "--delta works only with --epsilon; give --set delta=1e-09"),
        ({"epsilon": 8.0, "secure": True, "settle": 0.1}, "none are sent; leave --settle out"),
        ({"epsilon": 5.0, "settings": {"delta": 0.5}}, "give --delta in place of --set delta"),
        (
            {"robust": "none", "robust_factor": 3.0},
            "--robust-factor is for --robust bound or rows, and this run has none",
        ),
        ({"robust": "krum", "robust_factor": 3.0}, "this run has krum; leave --robust-factor out"),
        ({"robust": "bound+rows", "robust_share": 0.2}, "--robust-share is for --robust krum or trimmed"),
        ({"settings": [1]}, "settings=[1] is not a mapping; give names and values, such as settings={'dim': 16}"),
    ],
)
def test_what_would_be_ignored_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as found:
        resolve("fedavg", given)
    assert said in str(found.value)


def test_what_is_used_is_taken() -> None:
    assert resolve("fedavg", {"epsilon": 5.0, "delta": 1e-9}).settings["delta"] == 1e-9
    assert resolve("fedavg", {"robust": "bound+krum", "robust_factor": 3.0, "robust_share": 0.2}).robust_factor == 3.0
    assert resolve("fedavg", {"settings": None}) == resolve("fedavg", {})


def test_the_command_of_a_run_with_a_budget_can_be_given_again() -> None:
    """It had the noise and the delta that the budget had chosen, which are refused beside it."""
    for own in ({"secure": True}, {}):
        settings = resolve("fedavg", {"epsilon": 5.0, "delta": 1e-9, "rounds": 2, **own})
        words = run_command(settings.model_dump(mode="json"))
        assert "--delta 1e-09" in words
        assert "noise" not in words
        assert "--set delta" not in words


def test_a_comparison_gives_each_method_what_it_can_use(tmp_path: Any) -> None:
    given = {"epsilon": 8.0, "delta": 1e-7, "rounds": 1}
    found = {job.name: job.settings for job in plan(["fedavg"], [0], given, out=tmp_path / "a").jobs}
    assert (found["fedavg"].delta, found["popularity"].epsilon) == (1e-7, None)
    found = {job.name: job.settings for job in plan(["fedavg"], [0], {"robust_factor": 3.0}, out=tmp_path / "b").jobs}
    assert found["fedavg"].robust_factor == 3.0

"""When the loop stops: rounds without a better value, a loss that has settled, a method with nothing more to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrec.core.loop import Cost, Evaluated, Plan, Progress, run_rounds
from fedrec.core.participation import Participation
from fedrec.evaluation.sums import MetricSums


class Told:
    """A runtime whose losses and values are given in advance."""

    def __init__(self, losses: list[float], values: list[float]) -> None:
        self.losses, self.values = losses, values

    def client_keys(self) -> Any:
        return np.arange(3, dtype=np.uint64)

    def round(self, number: int, chosen: Any, answering: Any, evaluate: bool) -> tuple[Cost, None]:
        return Cost(self.losses[number - 1], len(answering)), None

    def evaluate(self, number: int) -> Evaluated:
        sums = MetricSums({"HR@10": self.values[number - 1]}, 1)
        return Evaluated(sums, sums)

    def snapshot(self) -> int:
        return 0

    def restore(self, state: Any) -> None: ...

    def disclosed(self) -> None: ...

    def recall(self, shown: Any, rounds: int) -> None: ...


def rounds_run(losses: list[float], values: list[float], **stops: Any) -> Progress:
    plan = Plan(len(losses), 0, Participation(), "download", "valid", "HR@10", **stops)
    return run_rounds(Told(losses, values), plan, Progress(), lambda record, progress: None)


def test_all_rounds_without_a_rule() -> None:
    done = rounds_run([5.0] * 6, [0.1, 0.3, 0.2, 0.2, 0.2, 0.2])
    assert (done.round, done.best_round) == (6, 2)


@pytest.mark.parametrize(("patience", "last"), [(1, 3), (2, 4), (3, 6)])
def test_patience_counts_evaluated_rounds_without_a_better_value(patience: int, last: int) -> None:
    done = rounds_run([5.0] * 6, [0.1, 0.3, 0.2, 0.2, 0.35, 0.1], patience=patience)
    assert done.round == last


def test_a_loss_that_changes_by_less_than_the_share_ends_the_run_but_not_before_the_third_round() -> None:
    values = [0.1] * 6
    assert rounds_run([100.0, 100.0, 90.0, 89.0, 88.5, 80.0], values, settle=0.01).round == 5  # 0.5 / 88.5
    assert rounds_run([100.0, 100.0, 100.0, 50.0, 20.0, 10.0], values, settle=0.01).round == 3
    assert rounds_run([100.0, 90.0, 80.0, 70.0, 60.0, 50.0], values, settle=0.01).round == 6


def test_a_settled_run_is_not_taken_up_again() -> None:
    plan = Plan(9, 0, Participation(), "download", "valid", "HR@10", settle=0.01)
    runtime = Told([100.0] * 9, [0.1] * 9)
    once = run_rounds(runtime, plan, Progress(), lambda record, progress: None)
    assert run_rounds(runtime, plan, once, lambda record, progress: None).round == once.round == 3


def test_a_method_that_needs_one_round_with_everybody_stops_after_it_and_is_evaluated_there() -> None:
    done = rounds_run([5.0] * 6, [0.1] * 6, settled_after=1, evaluate_every=4)
    assert (done.round, done.best_round) == (1, 1)


def test_rounds_in_which_somebody_is_missing_do_not_count_as_such() -> None:
    class Flaky(Told):
        def round(self, number: int, chosen: Any, answering: Any, evaluate: bool) -> tuple[Cost, None]:
            return Cost(5.0, 3 if number in (2, 4) else 2), None

    for wanted, last in ((1, 2), (2, 4), (3, 6)):
        plan = Plan(6, 0, Participation(), "download", "valid", "HR@10", settled_after=wanted)
        assert run_rounds(Flaky([], [0.1] * 6), plan, Progress(), lambda record, progress: None).round == last

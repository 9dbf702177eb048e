"""Law 10: secure sums change nothing but what the server sees."""

from __future__ import annotations

from typing import Any

from fedrec.laws.broken import Comparison
from fedrec.laws.small_runs import Mixed, method_of, plan, run, simulator, world

ROUNDS = 4
"""One of each pattern of participation, the one with dropouts included."""


def secure_sums_change_nothing(method: str) -> None:
    """Law 10: where a sum suffices, masked whole numbers in cohorts give the metrics of plain uploads."""
    from fedrec.simulate.secured import SecureOptions

    law = Comparison("10", method)
    made: Any = method_of(method)
    if not made.card.sum_suffices:
        return
    why = made.not_summed()
    if why is not None:
        raise law.broken(f"its card says that a sum suffices, but {why}")
    plain, secure = (
        simulator(method, world("tiny"), secure=options)
        for options in (None, SecureOptions(cohort=6, dropout=0.3, silent=0.1))
    )
    chosen = plan(ROUNDS, Mixed())
    law.metrics(run(plain, chosen), run(secure, chosen), "with secure sums")
    law.states(plain.snapshot(), secure.snapshot(), "with secure sums")

"""What to try next and what to give up: Optuna's TPE and median rule over trials that were read from their folders."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from fedrec.experiment.tune.study import RUNGS
from fedrec.recipes.search_spaces import Range, Space
from fedrec.report.model.search import Trial

STARTUP = 5
"""Trials drawn at random before the first is modelled; as many must have ended before one is pruned."""
TRIES = 16

optuna.logging.set_verbosity(optuna.logging.ERROR)


def propose(space: Space, trials: Iterable[Trial], seed: int, number: int) -> dict[str, Any]:
    """A point for trial ``number``, after what the others have found; one that was tried already only at last."""
    study, wanted = rebuilt(space, trials, seed + 1_000_003 * number), distributions(space)
    tried = [trial.params for trial in study.get_trials(deepcopy=False)]
    point: dict[str, Any] = {}
    for _ in range(TRIES):
        asked = study.ask(wanted).params
        point = {key: space.ranges[key].rounded(value) for key, value in asked.items()}
        if point not in tried:
            break
    return point


def hopeless(space: Space, others: Iterable[Trial], curve: Mapping[int, float], rounds: int) -> bool:
    """Whether a trial with this curve lies below the median of the others at the same share of their rounds."""
    study = rebuilt(space, others, 0, outside=True)
    mine = create_trial(state=TrialState.RUNNING, intermediate_values=on_rungs(curve, rounds))
    return bool(study.pruner.prune(study, mine))


def importance(space: Space, trials: Iterable[Trial]) -> dict[str, float]:
    """How much of the spread of the results each setting explains; empty where trials are too few or all alike.

    By fANOVA where scikit-learn is there, else by PED-ANOVA.
    """
    study = rebuilt(space, trials, 0)
    done = [trial for trial in study.get_trials(deepcopy=False) if trial.state == TrialState.COMPLETE]
    if len(done) < STARTUP or len({trial.value for trial in done}) < 2 or len(space.ranges) < 2:
        return {}
    try:
        import sklearn  # noqa: F401

        judge: Any = optuna.importance.FanovaImportanceEvaluator(seed=0)
    except ImportError:
        judge = optuna.importance.PedAnovaImportanceEvaluator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = optuna.importance.get_param_importances(study, evaluator=judge)
    return {key: float(found.get(key, 0.0)) for key in space.ranges}


def rebuilt(space: Space, trials: Iterable[Trial], seed: int, *, outside: bool = False) -> optuna.Study:
    """Optuna's study of these trials, in memory; with ``outside``, also of those that it could not have proposed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is new in Optuna says so each time
        sampler = optuna.samplers.TPESampler(
            seed=seed % (1 << 32), n_startup_trials=STARTUP, multivariate=True, constant_liar=True
        )
        pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP - 1, n_warmup_steps=RUNGS // 4)
        study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
        for trial in trials:
            if (frozen := _frozen(space, trial, outside)) is not None:
                study.add_trial(frozen)
    return study


def _frozen(space: Space, trial: Trial, outside: bool) -> FrozenTrial | None:
    point = space.point(trial.own)
    if point is None and not outside:
        return None
    about: dict[str, Any] = {} if outside else {"params": point, "distributions": distributions(space)}
    if trial.state == "open":  # somebody works on it: the next proposal keeps away from it
        return create_trial(state=TrialState.RUNNING, **about)
    if trial.state != "failed":
        about["intermediate_values"] = on_rungs(dict(trial.curve), trial.rounds)
    if trial.state == "complete":
        return create_trial(state=TrialState.COMPLETE, value=trial.value, **about)
    return create_trial(state=TrialState.PRUNED, **about)  # failed: worse than all


def on_rungs(curve: Mapping[int, float], rounds: int) -> dict[int, float]:
    """The best value so far at each of a few shares of the rounds, so that trials of other lengths compare.

    >>> on_rungs({1: 0.1, 8: 0.4, 16: 0.3}, 16)
    {0: 0.1, 4: 0.4, 8: 0.4}
    """
    best, found = float("-inf"), {}
    for number, value in sorted(curve.items()):
        best = max(best, value)
        found[rung(number, rounds)] = best
    return found


def rung(number: int, rounds: int) -> int:
    """How far a round is on the way to the last, in :data:`RUNGS` steps."""
    return RUNGS * number // max(1, rounds)


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """The space in Optuna's words."""
    return {key: _distribution(one) for key, one in space.ranges.items()}


def _distribution(one: Range) -> BaseDistribution:
    if one.choices:
        return CategoricalDistribution(one.choices)
    assert one.low is not None
    assert one.high is not None
    if one.whole:
        return IntDistribution(int(one.low), int(one.high), log=one.log)
    return FloatDistribution(one.low, one.high, log=one.log)

"""A search for settings in words: one line for each method and data set."""

from __future__ import annotations

from collections.abc import Sequence

from fedrec.report.model.search import Search
from fedrec.report.text.markdown import table

HEAD = ("method", "data", "trials", "pruned", "failed", "recipe", "tuned", "settings", "what matters")


def rows(searches: Sequence[Search]) -> list[tuple[str, ...]]:
    """Validation values of the recipe and of the best trial, and what it has."""
    found: list[tuple[str, ...]] = []
    for search in searches:
        counts, best = search.counts(), search.best
        first = next((trial for trial in search.complete if trial.number == 0), None)
        own = "" if best is None else ", ".join(f"{key}={_short(best.own[key])}" for key in search.space.ranges)
        ranked = sorted(search.importance.items(), key=lambda pair: -pair[1])
        found.append(
            (
                search.method,
                search.data,
                str(sum(counts.values()) - counts["open"]),
                str(counts["pruned"]),
                str(counts["failed"]),
                f"{first.value:.4f}" if first else "-",
                f"{best.value:.4f}" if best else "-",
                "the recipe's" if best is not None and best.number == 0 else own,
                ", ".join(f"{key} {share:.0%}" for key, share in ranked if share >= 0.01),
            )
        )
    return found


def markdown_page(searches: Sequence[Search], command: str = "", pictures: Sequence[tuple[str, str]] = ()) -> str:
    """The whole page."""
    metrics = " and ".join(dict.fromkeys(search.metric for search in searches))
    about = (
        f"{metrics} on validation; test data was not looked at. *Recipe*: the first trial of each search, with the "
        "paper's settings; *what matters*: share of each setting in the spread of the results (fANOVA)."
    )
    failed = [
        f"- {search.method} on {search.data}, trial {trial.number} failed: {trial.reason}"
        for search in searches
        for trial in search.trials
        if trial.state == "failed"
    ]
    lines = [*dict.fromkeys(failed), *(f"![{label}]({path})" for path, label in pictures)]
    parts = [
        "# Tuned settings",
        about,
        *[f"`{command}`"] * bool(command),
        table(HEAD, [("", rows(searches))], range(len(HEAD))),
    ]
    return "\n\n".join([*parts, "\n".join([*lines, ""])])


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)

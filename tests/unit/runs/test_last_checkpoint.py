"""A run that was killed when all its rounds were done states, resumed, what it would have stated uninterrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedrec.core.disclosed import Disclosed
from fedrec.core.state import BadState
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.runs.files import CHECKPOINT
from fedrec.runs.folder import RunFolder
from killed import Killed

ROUNDS = 3
OWN: dict[str, Any] = {"dim": 2, "epochs": 1}
NOISED: dict[str, Any] = {**OWN, "clip": 1.0, "noise": 1.0}


def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, given: dict[str, Any]) -> list[Any]:
    """The card of an uninterrupted run, and that of one that was killed before it wrote its model."""
    settings = resolve(method, {"rounds": ROUNDS, "checkpoint_seconds": 0.0, **given})
    whole = execute(settings, tmp_path / "whole").json

    def dies(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "finish", dies)
        with pytest.raises(Killed):
            execute(settings, tmp_path / "killed")
    assert (tmp_path / "killed" / CHECKPOINT).is_file()
    again = resume(tmp_path / "killed").json
    return [(one["privacy"], one["privacy_card"]) for one in (whole, again)]


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("fedavg", {"settings": NOISED}),
        ("fedavg", {"settings": {**NOISED, "noise": 20.0, "noise_kind": "gaussian"}}),
        ("fedavg", {"settings": OWN}),
        ("local", {"settings": OWN}),
        ("fedavg", {"secure": True, "settings": OWN}),
        ("fedavg", {"secure": True, "epsilon": 4.0, "dropout": 0.5, "settings": OWN}),
        ("fedavg", {"secure": True, "epsilon": 4.0, "participation": 0.5, "settings": OWN}),
        ("fedease", {"epsilon": 4.0}),
    ],
)
def test_the_card_is_that_of_an_uninterrupted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, given: dict[str, Any]
) -> None:
    """It claimed epsilon 6 where 304 were spent: what uploads held was only known to the process that saw one."""
    whole, again = cards(tmp_path, monkeypatch, method, given)
    assert again == whole


def test_a_checkpoint_that_does_not_say_what_was_sent_guarantees_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of earlier versions."""
    monkeypatch.setattr(Disclosed, "of", lambda plain: None)
    (_, whole), (line, card) = cards(tmp_path, monkeypatch, "fedavg", {"settings": NOISED})
    assert whole["epsilon"] > 100
    assert card["epsilon"] is None
    assert line.startswith("unknown: ")
    assert "uploads" in card["not_covered"][0]


def test_ledgers_of_such_a_checkpoint_count_all_who_were_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disclosed, "of", lambda plain: None)
    given = {"secure": True, "epsilon": 4.0, "dropout": 0.5, "settings": OWN}
    (_, whole), (_, card) = cards(tmp_path, monkeypatch, "fedavg", given)
    assert card["epsilon"] == whole["epsilon"]
    assert card["ledger"]["epsilon"] >= whole["ledger"]["epsilon"] > 0
    assert card["ledger"]["charges"] == ROUNDS


def test_what_a_file_says_of_uploads_is_read_as_it_was_written() -> None:
    shown = Disclosed((7, ("sizes",)), 3, ((0.5, 0.0, float("inf"), 2, 2),), ((1, 0), (0, 0)))
    assert Disclosed.of(shown.as_dict()) == shown
    assert Disclosed.of(None) is None
    plain = shown.as_dict()
    damaged: list[Any] = [{**plain, "exposure": 7}, {"summands": 1}, [], {**plain, "holders": [[1]]}]
    for wrong in damaged:
        with pytest.raises(BadState):
            Disclosed.of(wrong)

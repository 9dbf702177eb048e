"""Whether a folder holds the run that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrec.errors import BadInput
from fedrec.experiment.jobs import folder_state
from fedrec.experiment.resolve import resolve
from fedrec.runs.folder import RunFolder
from fedrec.runs.settings import RunSettings


def settings(**given: object) -> RunSettings:
    return resolve("fedcia", {"data": "demo", "rounds": 1, "settings": given})


def older(one: RunSettings, *names: str) -> RunSettings:
    """The settings as they were stored before the method had some of them."""
    return one.model_copy(update={"settings": {k: v for k, v in one.settings.items() if k not in names}})


def test_a_run_from_before_a_setting_existed_is_the_run_with_its_default(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", older(settings(), "aggregate"))
    assert folder_state(tmp_path / "run", settings()) == "unfinished"


def test_a_setting_that_came_later_and_is_not_at_its_default_makes_another_run(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", older(settings(), "aggregate"))
    with pytest.raises(BadInput, match="aggregate is 'similarity' there, 'within' now"):
        folder_state(tmp_path / "run", settings(aggregate="within"))


def test_a_folder_that_names_a_method_nobody_knows_holds_another_run(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", settings().model_copy(update={"method": "evil.py:Evil"}))
    with pytest.raises(BadInput, match=r"other settings \(method is 'evil.py:Evil' there, 'fedcia' now\)"):
        folder_state(tmp_path / "run", settings())


def test_another_device_is_no_other_run_and_another_seed_is(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", settings())
    assert folder_state(tmp_path / "run", settings().model_copy(update={"device": "cuda"})) == "unfinished"
    with pytest.raises(BadInput, match="seed is 0 there, 3 now"):
        folder_state(tmp_path / "run", settings().model_copy(update={"seed": 3}))

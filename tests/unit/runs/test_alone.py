"""One writer at a time in a run's folder and in a folder of runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedrec.errors import BadInput
from fedrec.experiment import run as module
from fedrec.experiment.open import prepared_again
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.runs.alone import alone


def test_a_second_one_is_refused_and_the_next_one_let_in(tmp_path: Path) -> None:
    place = tmp_path / "new" / "folder"
    with alone(place), pytest.raises(BadInput, match=r"another fedrec works in .*folder; wait for it"), alone(place):
        pass
    with alone(place):
        assert not list(place.iterdir())  # nothing is left behind


def test_a_killed_process_lets_go(tmp_path: Path) -> None:
    held = "import sys, time; from pathlib import Path; from fedrec.runs.alone import alone\n"
    held += "with alone(Path(sys.argv[1])):\n    print('in', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", held, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        with pytest.raises(BadInput, match="another fedrec"), alone(tmp_path):
            pass
        other.kill()
        other.wait()
    with alone(tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_made_is_bad_input(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match=r"cannot write to .*; choose another --out"), alone(tmp_path / "x"):
        pass


def test_a_run_that_is_under_way_cannot_be_resumed_beside_it(tmp_path: Path) -> None:
    """Both went on, and the log had the rounds of both."""
    settings = resolve("fedavg", {"data": "demo", "rounds": 4, "checkpoint_seconds": 0.0})
    refused: list[str] = []

    def meanwhile(record: Any, progress: Any) -> None:
        if record.round == 2:
            with pytest.raises(BadInput) as problem:
                resume(tmp_path / "run")
            refused.append(str(problem.value))

    result = execute(settings, tmp_path / "run", meanwhile)
    assert len(refused) == 1
    assert "another fedrec works in" in refused[0]
    assert result.folder is not None
    assert [record["round"] for record in result.folder.records()] == [1, 2, 3, 4]
    assert resume(tmp_path / "run").metrics == result.metrics


def test_a_run_that_ended_while_it_was_to_be_resumed_is_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process found no checkpoint, threw the log of rounds away and ran it all again."""
    settings = resolve("fedavg", {"data": "demo", "rounds": 3, "checkpoint_seconds": 0.0})

    def interrupted(record: Any, progress: Any) -> None:
        if record.round == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(settings, tmp_path / "run", interrupted)

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(module, "prepared_again", prepared_again)
        module.resume(tmp_path / "run")
        return prepared_again(*given)

    monkeypatch.setattr(module, "prepared_again", meanwhile)
    rounds: list[int] = []
    result = module.resume(tmp_path / "run", lambda record, progress: rounds.append(record.round))
    assert rounds == []
    assert result.folder is not None
    assert [record["round"] for record in result.folder.records()] == [1, 2, 3]


def test_of_two_that_begin_in_one_folder_one_writes_into_it(tmp_path: Path) -> None:
    """The second wrote its settings over those of the first before it was refused."""
    settings = resolve("popularity", {"data": "demo"})
    with alone(tmp_path / "run"), pytest.raises(BadInput, match="another fedrec works in"):
        execute(settings, tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []

"""A program that ends is told of in one line: no colours, no frames, no traceback, nothing of those before it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedrec.deploy import steps
from fedrec.deploy.last_words import MOST_LETTERS, SILENT, last_words
from fedrec.deploy.processes import Crew, StartFailed
from fedrec.deploy.watching import RunFailed
from fedrec.experiment.resolve import resolve
from fedrec.runs.folder import RunFolder

ERROR = "\x1b[91mERROR \x1b[0m:     the key is not known"
INFO = "\x1b[92mINFO \x1b[0m:      up\nINFO:     Shutting down\n\x1b[92mINFO \x1b[0m:      \n"
TRACEBACK = """    main()
  File "/a/place/supernode.py", line 78, in main
    flower_supernode()
    ^^^^^^^^^^^^^^^^^^
ValueError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/a/place/other.py", line 8, in other
    raise RuntimeError("no port")
RuntimeError: no port
"""
FRAMED = """Using SuperLink: fedrec (127.0.0.1:34005)
Successfully started run 4095165920500425425
╭─ Error ─────────────────────────╮
│ Connection is unavailable. Check │
│ your network.                    │
╰──────────────────────────────────╯
"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (INFO, SILENT),
        ("", SILENT),
        (f"{ERROR}\n" * 5 + INFO, "ERROR : the key is not known"),
        (f"{TRACEBACK}{ERROR}\n{ERROR}\n", "ValueError: first RuntimeError: no port ERROR : the key is not known"),
        (FRAMED, "Error Connection is unavailable. Check your network"),
        ("\x1b]0;title\x07said\x00 \u202eit\n", "said\ufffd \ufffdit"),
    ],
)
def test_last_words_are_one_line(log: str, words: str) -> None:
    assert last_words(log) == words


def test_last_words_have_an_end() -> None:
    assert len(last_words("x" * 10_000)) == MOST_LETTERS + 3


def test_a_member_that_stops_is_told_of_in_one_line(tmp_path: Path) -> None:
    told = []
    with Crew(tmp_path / "home") as crew:
        for what in ("ValueError('of before')", "RuntimeError('\\x1b[91mno port\\x1b[0m')"):
            crew.start("link", [sys.executable, "-c", f"raise {what}"]).wait()
            with pytest.raises(StartFailed) as caught:
                crew.wait_for_port("link", 1)
            told.append(str(caught.value))
    assert told == ["link stopped with 1: ValueError: of before", "link stopped with 1: RuntimeError: no port"]


def test_a_node_that_stops_is_told_of_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ca.crt", "a", "data.csv"):
        (tmp_path / name).write_text("")
    command = [sys.executable, "-c", "import sys; print('\\x1b[92mINFO\\x1b[0m'); sys.exit('\\x1b[91mno\\x1b[0m port')"]
    monkeypatch.setattr(steps, "check_private_key", lambda key: None)
    monkeypatch.setattr(steps, "apart", lambda work: lambda data: (1, 1))
    monkeypatch.setattr(steps, "node_command", lambda *given: command)
    monkeypatch.setattr(steps, "turned_away", lambda *given: False)
    data, folder, ca, key = (tmp_path / name for name in ("data.csv", "node", "ca.crt", "a"))
    with pytest.raises(StartFailed) as caught:
        steps.node("a", data, folder, "127.0.0.1:9", ca, key, None, lambda line: None)
    log = folder / "flower" / "supernode.log"
    assert str(caught.value) == f"the node stopped with status 1: no port; its log is {log}"


def test_a_run_that_the_server_does_not_take_is_told_of_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "server"
    state.mkdir()
    (state / "config.toml").touch()
    (state / "run.log").write_text(f"Successfully started run 1\n{TRACEBACK}")  # of a run before
    words = FRAMED.partition("\n")[2].partition("\n")[2]
    program = [sys.executable, "-c", f"print({words!r})"]
    monkeypatch.setattr(steps, "run_command", lambda home, folder: program)
    folder = RunFolder.create(tmp_path / "run", resolve("fedavg", {"data": "demo", "rounds": 2}))
    with pytest.raises(RunFailed) as caught:
        steps.run(state, folder, None)
    told = "the run ended: Error Connection is unavailable. Check your network; the server's log is"
    assert str(caught.value) == f"{told} {state / 'superlink.log'}"

"""What an operator sees and does: states that are true, lists, stops, nodes that come later."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from direct import RUN, federation, records_of
from live import new_run, start_cluster, wait

from command_line import Cli
from fedrec.core.block import World
from fedrec.core.method import Keys
from fedrec.deploy import operating
from fedrec.deploy.admission import Admission, fingerprint
from fedrec.deploy.messages.letters import Hello, Meet
from fedrec.deploy.node.news import News
from fedrec.deploy.node.node import Node
from fedrec.deploy.node.recommending import latest_finished
from fedrec.deploy.server import pulse
from fedrec.deploy.server.job import read_served, write_served
from fedrec.deploy.server.presence import Presence
from fedrec.deploy.server.roster import Roster
from fedrec.deploy.server.run_list import going_on, remember, runs
from fedrec.deploy.steps import status
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute
from fedrec.runs.folder import RunFolder

SETTINGS = resolve("fedavg", {"data": "demo", "rounds": 4, "settings": {"epochs": 1, "dim": 4}})


def home(tmp_path: Path) -> Path:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "config.toml").touch()
    return folder


def test_a_killed_servers_run_is_not_called_running(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "my run", SETTINGS)
    write_served(folder.path, done=False, state="running")
    (folder.path / pulse.PULSE).touch()
    assert pulse.state_of(folder.path) == "running"
    long_ago = time.time() - 600
    os.utime(folder.path / pulse.PULSE, (long_ago, long_ago))
    line = status(folder)[0]
    assert "interrupted" in line
    assert "10 min ago" in line
    assert f"--resume '{folder.path}'`" in line


def test_a_simulation_has_no_server_to_wait_for(tmp_path: Path) -> None:
    path, meanwhile = tmp_path / "run", list[str]()
    execute(SETTINGS, path, lambda record, _: meanwhile.append(status(RunFolder.open(path))[0]))
    assert meanwhile[1] == f"{path}: a simulation, running or interrupted, round 2 of 4"
    first, *rounds = status(RunFolder.open(path))
    assert first == f"{path}: a simulation, done, round 4 of 4"
    assert "valid HR@10/99 0." in rounds[-1]


def test_a_run_shows_a_pulse_and_hears_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "EVERY", 0.02)
    server, folder = home(tmp_path), tmp_path / "run"
    folder.mkdir()
    remember(server, folder)
    heard = threading.Event()
    stopper = threading.Thread(target=operating.stop_run, args=(server, None))
    with pulse.beating(folder, heard.set):
        wait(lambda: pulse.alive(folder), "a pulse")
        assert going_on(server) == folder
        stopper.start()
        assert heard.wait(10)
    stopper.join(10)
    assert not stopper.is_alive()
    assert not pulse.alive(folder)
    assert going_on(server) is None
    with pytest.raises(BadInput, match="no run goes on"):
        operating.stop_run(server, None)


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    server = home(tmp_path)
    assert operating.list_runs(server) == ["no runs yet"]
    for name in ("one", "two"):
        remember(server, RunFolder.create(tmp_path / name, SETTINGS).path)
    next((tmp_path / "one").glob("*.yaml")).write_text("nothing: here\n")
    remember(server, tmp_path / "two")
    assert [folder.name for folder, _ in runs(server)] == ["one", "two"]
    lines = operating.list_runs(server)
    assert "fedavg, round 0 of 4" in lines[1]
    assert lines[0].startswith(str(tmp_path / "one"))


def test_nodes_are_shown_with_their_last_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = home(tmp_path)
    assert "no nodes admitted" in operating.list_nodes(server)[0]
    for name in ("a", "b", "c"):
        Admission(server).admit(name, name.encode())
    Presence(server).saw(b"a")
    assert [line.split("  ")[-1] for line in operating.list_nodes(server)] == [
        "connected", "never heard of", "never heard of",
    ]  # fmt: skip
    assert fingerprint(b"a") in operating.list_nodes(server)[0]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 7200)
    assert operating.list_nodes(server)[0].endswith("last heard of 2 h ago")


def test_operations_want_a_servers_folder(fedrec: Cli) -> None:
    for arguments in (("list",), ("nodes",), ("stop",), ("log",)):
        done = fedrec("deploy", *arguments, "--state", "nowhere")
        assert done.status == 2
        assert "nowhere is not a server's folder" in done.err


def test_the_log_is_shown_from_its_end(tmp_path: Path) -> None:
    server = home(tmp_path)
    (server / operating.LOG).write_text("".join(f"line {n}\n" for n in range(50)))
    assert list(operating.log_lines(server, 2, follow=False)) == ["line 48", "line 49"]


def test_the_log_is_shown_without_colours_and_in_whole_lines(tmp_path: Path) -> None:
    server = home(tmp_path)
    (server / operating.LOG).write_text("\x1b[92mINFO \x1b[0m: up\n")
    lines = operating.log_lines(server, 9, follow=True)
    assert next(lines) == "INFO : up"
    with open(server / operating.LOG, "a") as handle:
        for piece in ("one", " line", "\nand more"):
            handle.write(piece)
            handle.flush()
            if piece != "one":
                continue
            waiting = ThreadPoolExecutor(1).submit(next, lines)
            time.sleep(0.5)  # what is read meanwhile is half a line
    assert waiting.result(30) == "one line"


def test_flowers_log_in_plain_lines(tmp_path: Path) -> None:
    said: list[str] = []
    clock = [0.0]
    path = tmp_path / "log"
    path.write_text("INFO : SuperNode ID: 1\n")  # of an earlier start
    news = News(path, said.append, lambda: clock[0])
    failed = "WARN : Connection attempt failed, retrying in 3.27 seconds\n"
    with open(path, "a") as handle:
        for text in ("INFO : SuperNode ID: 77\nINFO : Received", " successfully\n", failed, failed):
            handle.write(text)
            handle.flush()
            news.look()
        clock[0] = 90.0
        handle.write(failed + "INFO : Connection successful after 95.1 seconds and 9 tries.\n")
        handle.write("2026-01-01 node: round 3 done: 5 clients, 0.2 s\n")
        handle.flush()
        news.look()
    unreachable = "the server cannot be reached; trying again in 3 s"
    assert said == [
        "connected", unreachable, unreachable, "connected again after 95 s", "round 3 done: 5 clients, 0.2 s",
    ]  # fmt: skip


def test_the_last_finished_run_serves_while_another_trains(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a node's folder"):
        latest_finished(tmp_path)
    for number, name in enumerate(("first", "second", "third")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.json").touch()
        if name != "third":
            (tmp_path / name / "selected.json").touch()
            os.utime(tmp_path / name / "selected.json", (number, number))
    assert latest_finished(tmp_path) == "second"


def test_a_node_that_comes_later_takes_part_from_the_next_round(tmp_path: Path) -> None:
    made, plan, progress, exchange = federation(tmp_path, SETTINGS, 3)
    late = Node(exchange.options["node2"], RUN).meet(Meet(RUN, SETTINGS.model_dump_json(), ()))
    all_three, rosters = made.roster, list[Roster]()
    made.roster = Roster(all_three.places[:2])
    made.world = made.roster.world(made.world.name, made.world.n_items)
    made.taken.pop("node2")
    made.arrivals = lambda: [late] if made.roster.find("node2") is None and progress.round >= 1 else []
    made.joined = rosters.append
    records = records_of(made, plan, progress)
    two, three = (sum(len(p.client_keys) for p in all_three.places[:n]) for n in (2, 3))
    assert [r.participants for r in records] == [two, two, three, three]
    assert not any(r.missing for r in records)
    again = Roster.from_dict(rosters[0].as_dict())
    assert [place.name for place in again.places] == ["node0", "node1", "node2"]


def test_a_newcomer_that_cannot_join_keeps_no_other_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made, plan, progress, exchange = federation(tmp_path, SETTINGS, 3)
    late = Node(exchange.options["node2"], RUN).meet(Meet(RUN, SETTINGS.model_dump_json(), ()))
    taken = Hello("liar", made.roster.places[0].client_keys, made.roster.places[0].users)
    made.roster = Roster(made.roster.places[:2])
    made.world = made.roster.world(made.world.name, made.world.n_items)
    made.taken.pop("node2")
    made.arrivals = lambda: [one for one in (taken, late) if made.roster.find(one.name) is None]
    records = records_of(made, plan, progress)
    assert [place.name for place in made.roster.places] == ["node0", "node1", "node2"]
    assert records[-1].participants == len(made.client_keys())
    assert caplog.text.count("liar cannot join: a client is hosted by two nodes (liar, node0)") == 1


def test_numbers_stay_when_a_node_joins() -> None:
    def hello(name: str, *keys: int) -> Hello:
        return Hello(name, np.array(keys, np.uint64), np.ones(len(keys), np.int64))

    roster = Roster.of([hello("m", 1, 2), hello("z", 3)]).with_newcomers([hello("a", 4)])
    assert [(p.name, p.first) for p in roster.places] == [("m", 0), ("z", 2), ("a", 3)]
    assert [p.name for p in Roster.from_dict(roster.as_dict()).places] == ["m", "z", "a"]
    with pytest.raises(BadInput, match="hosted by two nodes"):
        roster.with_newcomers([hello("b", 3)])


def test_a_method_with_state_per_client_keeps_to_its_nodes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = resolve("fedca", {"data": "demo", "rounds": 1, "settings": {"epochs": 1, "dim": 4}})
    made, plan, progress, _ = federation(tmp_path, settings, 2)
    made.arrivals = lambda: [Hello("late", made.client_keys()[:1] + 1, made.roster.places[0].users[:1])]
    records_of(made, plan, progress)
    assert "late cannot join: fedca keeps state per client" in caplog.text
    assert made.roster.find("late") is None


def test_a_newcomer_that_claims_the_impossible_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, plan, progress, _ = federation(tmp_path, SETTINGS, 2)
    many = 2_000_000
    late = Hello("late", np.arange(many, dtype=np.uint64), np.full(many, 2**40))
    made.arrivals = lambda: [late] if made.roster.find("late") is None else []
    start, clients = type(made.method).start_server, list[int]()

    def counted(self: Any, world: World, keys: Keys) -> Any:
        clients.append(world.n_clients)
        return start(self, world, keys)

    monkeypatch.setattr(type(made.method), "start_server", counted)

    def refused(roster: Roster) -> None:
        raise MemoryError("no room for their keys")

    made.joined = refused
    records = records_of(made, plan, progress)
    assert len(records) == 4
    assert not any(r.missing for r in records)
    assert caplog.text.count("late cannot join") == 1
    assert made.roster.find("late") is None
    assert 0 < max(clients) < many, "state was made for as many clients as somebody claimed"


def test_a_federation_is_tried_stopped_and_killed(tmp_path: Path) -> None:
    settings = resolve("fedavg", {"data": "demo", "rounds": 500, "settings": {"epochs": 1, "dim": 4}})
    first, second = (new_run(tmp_path / name, settings, 1) for name in ("first", "second"))
    cluster = start_cluster(tmp_path, 1)
    server = cluster.home
    try:
        for run in (first, second):
            remember(server, run.path)
            cluster.start_run(run.path)
            wait(lambda: len(first.records()) >= 1, "a round", cluster)
        assert "running" in status(first)[0]
        assert read_served(second.path) is None, "two runs at once"
        operating.stop_run(server, first.path)
        assert ": stopped," in status(first)[0]
        wait(lambda: len(second.records()) >= 1, "the run that waited", cluster)
        cluster.crew.kill("superlink")
        (second.path / pulse.PULSE).touch()
        os.utime(second.path / pulse.PULSE, (1, 1))
        assert "interrupted" in status(second)[0]
    finally:
        cluster.stop()

"""Operations over one real federation: TLS, admitted nodes, every command in a process of its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import wait
from operated import Operated

from command_line import Cli
from fedrec.deploy.operating import stop_run
from fedrec.deploy.server import pulse
from fedrec.deploy.steps import status
from fedrec.serve.app import service
from fedrec.serve.batches import Batches
from fedrec.serve.counts import Counts
from fedrec.serve.following import Follower
from fedrec.serve.live import live_app
from fedrec.serve.sources import NodeSource
from serving import running
from webdriver import Browser, programs

pytestmark = pytest.mark.slow

TEXT = "return document.getElementById('main').innerText"
CURVE = "return (document.querySelector('svg.chart path.curve') || {getAttribute: () => ''}).getAttribute('d')"


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """A server and two nodes; a third one is admitted, and away."""
    made = Operated(tmp_path_factory.mktemp("federation"), 3)
    try:
        for name in made.names[:2]:
            made.node(name)
        yield made
    finally:
        made.stop()


def test_a_run_outlives_its_command_and_others_wait(federation: Operated, fedrec: Cli) -> None:
    """Ctrl-C, a node that comes later, a second run beside the first, list, nodes, log, stop."""
    state = federation.state
    first, second = federation.new_run("first", 500), federation.new_run("second", 2)
    starter = federation.command("run-said", "run", "--resume", first.path, "--state", "server")
    wait(lambda: first.records(), "a round")
    assert starter.interrupt() == 130
    assert f"the run goes on without this command; follow it: fedrec deploy status {first.path}" in starter.said()
    assert f"end it: fedrec deploy stop {first.path} --state server" in starter.said()

    late = federation.node(federation.names[2])
    waiting = federation.started(second)
    wait(lambda: first.records()[-1]["participants"] == 120, "the node that came later")
    late.says("round ")
    assert re.search(r"(?s)connected\n.*taking part in a run of fedspectral.*round \d+ done: 40 clients", late.said())
    assert [line.partition(" to end")[0] for line in waiting.lines] == [f"waiting for {first.path}"]
    assert not second.records()

    listed = fedrec("deploy", "list", "--state", state).out
    assert re.search(rf"{first.path} .*fedspectral, round \d+ of 500, running", listed)
    assert re.search(rf"{second.path} .*not started, or waiting for another run to end", listed)
    assert fedrec("deploy", "nodes", "--state", state).out.count("  connected\n") == 3
    logged = fedrec("deploy", "log", "--state", state, "--last", "1000").out
    assert f"met {federation.names[2]}: 40 clients" in logged
    stopped = fedrec("deploy", "stop", "--state", state)
    assert (stopped.status, stopped.out) == (0, f"stopped {first.path}\n")
    assert ": stopped, round" in fedrec("deploy", "status", first.path).out
    waiting.over()
    assert waiting.result is not None, waiting.problem
    assert len(second.records()) == 2


def test_the_last_run_serves_while_another_trains_and_a_node_is_killed(
    federation: Operated, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also on the page that follows the run: its curve grows, and the killed node is missing there."""
    third = federation.node(federation.names[2])
    one = federation.started(federation.new_run("finished", 1, nodes=3))
    one.over()
    assert one.result is not None, one.problem
    training = federation.started(federation.new_run("training", 500, nodes=3))
    try:
        training.rounds(1)
        name = federation.names[0]
        with running(service(Batches(NodeSource(federation.folder / name), Counts()))) as found:
            user = (federation.folder / f"{name}.csv").read_text().splitlines()[1].partition(",")[0]
            answer = found.get(f"/recommend/{user}?k=5")
            assert (answer.status, len(answer.json["items"])) == (200, 5)
            assert found.get("/health").json["model"]["round"] == one.result["selected_round"]
            assert pulse.alive(training.run.path)
        third.kill()
        ending = threading.Event()
        with running(live_app(Follower(training.run.path), ending, 0.2), ending) as page:
            if programs() is None:
                wait(lambda: training.run.records()[-1]["missing"], "the killed node among the missing")
            else:
                _seen(page.base, federation.names[2], tmp_path, tmp_path_factory.mktemp("profile"))
        assert training.run.records()[-1]["missing"][0].startswith(f"{federation.names[2]}: ")
    finally:  # the next test's run would wait for this one
        stop_run(federation.state, None)
    training.over()


def _seen(address: str, lost: str, pictures: Path, profile: Path) -> None:
    """The live page in a browser: on a phone in the dark, and by keyboard."""
    browser = Browser(profile)
    try:
        browser.size(390, 844, phone=True)
        browser.prefer("dark")
        browser.visit(address)
        wait(lambda: "of 500" in browser.run(TEXT), "the page")
        points = len(re.findall("[ML]", browser.run(CURVE)))
        wait(lambda: len(re.findall("[ML]", browser.run(CURVE))) > max(2, points), "a curve that grows")
        wait(lambda: f"{lost}: " in browser.run(TEXT), "the killed node on the page")
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        browser.press("svg.chart.narrow", "\ue012")  # an arrow key: the value of a round
        assert browser.run("return document.querySelector('.tip').hidden") is False
        browser.picture(pictures / "phone.png")
        browser.size(1280, 900)
        browser.prefer("light")
        browser.picture(pictures / "wide.png")
        assert [e for e in browser.log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
    finally:
        browser.close()


def test_a_killed_server_is_not_called_running_and_its_nodes_say_so(federation: Operated, fedrec: Cli) -> None:
    run = federation.started(federation.new_run("killed", 500))
    run.rounds(1)
    node = federation.node(federation.names[0])
    federation.server.kill()
    node.says("the server cannot be reached; trying again in ")
    wait(lambda: not pulse.alive(run.run.path), "a silent server")
    said = status(run.run)[0]
    assert "interrupted (the server was last heard of" in said
    assert "--resume" in said
    assert "no run goes on" in fedrec("deploy", "stop", "--state", federation.state).err
    run.over()
    assert run.problem
    federation.start_server()
    node.says("connected again after ")
    done = len(run.run.records())
    again = federation.started(run.run)
    again.rounds(done + 1)
    assert fedrec("deploy", "stop", "--state", federation.state).status == 0
    again.over()
    assert "stopped" in again.problem

"""The page that follows runs, in a real browser beside a real run: its curve grows, a lost node appears."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest

from command_line import Cli
from fedrec.core.loop import Progress, Record, run_rounds
from fedrec.errors import BadInput
from fedrec.experiment.resolve import resolve
from fedrec.laws.nodes import federation
from fedrec.runs.folder import RunFolder
from fedrec.serve.following import Followed, Follower
from fedrec.serve.live import live_app, parts_of, watched
from serving import running
from webdriver import Browser, wait

SETTINGS = resolve("fedspectral", {"data": "demo", "rounds": 5, "settings": {"k": 4}})
PATH = "return (document.querySelector('svg.chart path.curve') || {getAttribute: () => ''}).getAttribute('d')"


def test_the_page_follows_a_run(tmp_path: Path, browser: Browser) -> None:
    made, plan, progress, exchange = federation(tmp_path / "nodes", SETTINGS, 3)
    text = "return document.getElementById('main').innerText"
    points: list[int] = []
    browser.size(390, 800, phone=True)
    browser.prefer("dark")
    browser.log("browser")
    with watched(tmp_path / "run", every=0.05) as address:
        browser.visit(address)
        wait(lambda: "it has not begun" in browser.run(text), "a page before the run")
        folder = RunFolder.create(tmp_path / "run", SETTINGS)

        def after(record: Record, now: Progress) -> None:
            folder.append(record)
            wait(lambda: f"{record.round} of 5" in browser.run(text), f"round {record.round}")
            points.append(len(re.findall("[ML]", browser.run(PATH))))
            if record.round == 3:
                exchange.gone.add("node1")
            assert ("node1" in browser.run(text)) == bool(record.missing)

        run_rounds(made, plan, progress, after)
        assert points == [0, 2, 3, 4, 5]
        assert "not connected" in browser.run(text)
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        browser.press("svg.chart.narrow", "\ue012")  # an arrow key: the value of a round
        assert browser.run("return document.querySelector('.tip').hidden") is False
    wait(lambda: "not connected; what" in browser.run(text), "a page that has lost its service")


def test_a_folder_of_runs_is_a_list(tmp_path: Path, browser: Browser) -> None:
    for number, name in enumerate(("one", "deep/two")):
        folder = RunFolder.create(tmp_path / name, SETTINGS)
        for turn in range(1, number + 2):
            folder.append(
                Record(turn, 0.5, 7, {"HR@10": 0.1 * turn}, None, {"train": 1.0}, {"upload": 1.0, "download": 1.0})
            )
    ending = threading.Event()
    with running(live_app(Follower(tmp_path), ending, 0.05), ending) as found:
        browser.visit(found.base)
        rows = "return [...document.querySelectorAll('#live-runs tbody tr')].map(row => row.innerText)"
        wait(lambda: browser.run(rows), "the list")
        shown = browser.run(rows)
        assert ["deep/two" in shown[0], "2 of 5" in shown[0], "one" in shown[1], "1 of 5" in shown[1]] == [True] * 4
        browser.click("#live-runs a")
        wait(lambda: len(re.findall("[ML]", browser.run(PATH))) == 2, "the run's own page")
        assert found.get("/events?run=none").status == 404
        assert found.get("/events?run=..%2F..").status == 404
        assert found.get("/", Host="evil.example").status == 421


HOSTILE = "<img src=x onerror=window.hurt=1>\"'</script><script>window.hurt=1</script>&"


def test_names_and_histories_of_others_are_text(tmp_path: Path, browser: Browser) -> None:
    """A run's folder may come from anybody: its name, its settings and its log run nothing in the page."""
    settings = SETTINGS.model_copy(update={"data": HOSTILE, "method": HOSTILE})
    folder = RunFolder.create(tmp_path / HOSTILE.replace("/", "\\"), settings)
    bytes_, seconds = {"upload": 1.0, "download": 1.0}, {HOSTILE: 1.0, "train": float("inf")}
    for turn in (1, 2):
        folder.append(Record(turn, 0.5, 7, {"HR@10": 0.1, HOSTILE: 1.0}, None, seconds, bytes_, (HOSTILE,)))
    folder.append(Record(3, float("nan"), 7, {"HR@10": float("nan")}, None, seconds, bytes_))
    ending = threading.Event()
    with running(live_app(Follower(tmp_path), ending, 0.05), ending) as found:
        browser.visit(found.base)
        text = "return document.getElementById('main').innerText"
        wait(lambda: "onerror" in browser.run(text), "the list")
        browser.click("#live-runs a")
        wait(lambda: "window.hurt=1" in browser.run(text) and "3 of 5" in browser.run(text), "the run's own page")
        assert browser.run("return window.hurt") is None
        assert browser.run("return document.querySelectorAll('#main img').length") == 0
        assert browser.run("return location.pathname") == "/"
        browser.visit(f"{found.base}/?run={HOSTILE.replace(' ', '%20').replace('&', '%26')}")
        assert browser.run("return window.hurt") is None
        assert found.get(f"/events?run={'x' * 5000}").status == 404


def test_states_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Followed(tmp_path / "run")
    run.look()
    assert run.state() == "it has not begun"
    folder = RunFolder.create(run.path, SETTINGS)
    run.look()
    assert (run.state(), run.left) == ("running", None)
    folder.append(Record(1, 0.5, 7, None, None, {"train": 2.0}, {"upload": 1.0, "download": 1.0}, ("<b>x</b>: late",)))
    run.look()
    assert (run.done, run.left) == (1, 8.0)
    assert "&lt;b&gt;x&lt;/b&gt;: late" in parts_of(Follower(run.path))["missing"]
    now = time.time()
    monkeypatch.setattr("fedrec.serve.following.time.time", lambda: now + 3600)
    assert "silent for 1 h" in run.state()
    (run.path / "rounds.jsonl").write_text("damaged\n")
    run.look()
    assert "damaged" in run.state()


def test_what_cannot_be_followed_is_one_line(tmp_path: Path, fedrec: Cli) -> None:
    done = fedrec("watch", tmp_path / "none")
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    with pytest.raises(BadInput, match="no runs below"):
        Follower(tmp_path)


def test_a_run_says_where_its_page_is(tmp_path: Path, fedrec: Cli) -> None:
    done = fedrec("run", "popularity", "--data", "demo", "--live", "--quiet", "--out", "run")
    assert done.status == 0
    assert re.search(r"http://127\.0\.0\.1:\d+ follows the run", done.err)

"""The page that follows runs, while somebody is at it: updates take nothing away, and what goes may come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedrec.core.loop import Record
from fedrec.experiment.resolve import resolve
from fedrec.runs.folder import RunFolder
from fedrec.serve.following import Follower
from fedrec.serve.live import live_app
from serving import Running, running
from webdriver import Browser, wait

SETTINGS = resolve("fedspectral", {"data": "demo", "rounds": 9, "settings": {"k": 4}})
TEXT = "return document.getElementById('main').innerText"
FOCUS = "return document.activeElement.textContent"
TIP = "const tip = document.querySelector('.tip'); return tip.hidden ? '' : tip.textContent"
NAMES = "return [...document.querySelectorAll('#live-runs tbody th')].map((name) => name.textContent)"
LONG = "fedavg_filmtrust_strict_dim64_lr0.001_epochs5_participation0.5_seed0"


def round_of(folder: RunFolder, turn: int) -> None:
    bytes_ = {"upload": 1.0, "download": 1.0}
    folder.append(Record(turn, 0.5, 7, {"HR@10": 0.1 * turn}, None, {"train": 1.0}, bytes_))


def made(path: Path, rounds: int) -> RunFolder:
    folder = RunFolder.create(path, SETTINGS)
    for turn in range(1, rounds + 1):
        round_of(folder, turn)
    return folder


@contextmanager
def followed(path: Path, browser: Browser, run: str = "") -> Iterator[Running]:
    ending = threading.Event()
    browser.size(1200, 900)
    with running(live_app(Follower(path), ending, 0.05), ending) as found:
        browser.visit(f"{found.base}/{run}")
        wait(lambda: "round" in browser.run(TEXT), "the page")
        yield found


def test_a_link_keeps_the_focus_while_other_runs_go_on(tmp_path: Path, browser: Browser) -> None:
    folders = [made(tmp_path / name, 1) for name in ("a", "b", "c")]
    with followed(tmp_path, browser):
        browser.run("document.querySelectorAll('#live-runs a')[1].focus()")
        for turn in (2, 3):
            round_of(folders[2], turn)
            wait(lambda turn=turn: f"{turn} of 9" in browser.run(TEXT), "a round of another run")  # type: ignore[misc]
            assert browser.run(FOCUS) == "b"
        made(tmp_path / "aa", 4)
        wait(lambda: browser.run(NAMES) == ["a", "aa", "b", "c"], "another run")
        assert browser.run(FOCUS) == "b"
        (tmp_path / "b").rename(tmp_path.parent / "b-away")
        wait(lambda: browser.run(NAMES) == ["a", "aa", "c"], "a run less")
        assert browser.run("return document.activeElement.className") == "scroll"  # as near as can be


def test_a_chart_keeps_its_focus_its_tip_and_what_is_switched_off(tmp_path: Path, browser: Browser) -> None:
    folder = made(tmp_path / "a", 3)
    key = "return document.querySelector('.key').getAttribute('aria-pressed')"
    drawn = "return getComputedStyle(document.querySelector('svg.wide g[data-series=\"0\"]')).display"
    points = "return document.querySelector('svg.wide path.curve').getAttribute('d').match(/[ML]/g).length"
    with followed(tmp_path / "a", browser):
        wait(lambda: browser.run("return document.querySelector('.key') !== null"), "the curve")
        browser.press("svg.wide", "\ue012")
        assert browser.run(TIP).startswith("round 2")
        round_of(folder, 4)
        wait(lambda: browser.run(points) == 4, "a round")
        assert browser.run("return document.activeElement.classList.contains('wide')")
        assert browser.run(TIP).startswith("round 2")
        at = "return Number(document.querySelector('svg.wide .guide').getAttribute('x1'))"
        place = browser.run(at)
        browser.press("svg.wide", "\ue014")
        assert browser.run(TIP) == "round 3fedspectral0.3000"
        assert browser.run(at) > place
        browser.click(".key")
        round_of(folder, 5)
        wait(lambda: browser.run(points) == 5, "one more")
        assert browser.run(key) == "false"
        assert browser.run(drawn) == "none"
        assert browser.run("return document.activeElement.className").startswith("key")
        browser.click(".key")
        assert browser.run(drawn) != "none"


def test_a_table_sorts_and_stays_sorted(tmp_path: Path, browser: Browser) -> None:
    folders = [made(tmp_path / name, rounds) for name, rounds in (("a", 2), ("b", 3), ("c", 1))]
    head = "#live-runs th[data-column='2']"
    with followed(tmp_path, browser):
        browser.click(f"{head} button")
        assert browser.run(NAMES) == ["b", "a", "c"]
        browser.run("document.querySelectorAll('#live-runs a')[2].focus()")
        for turn in (2, 3, 4):
            round_of(folders[2], turn)
        wait(lambda: browser.run(NAMES) == ["c", "b", "a"], "a run that has come farthest")
        assert browser.run(FOCUS) == "c"
        assert browser.run(f'return document.querySelector("{head}").getAttribute("aria-sort")') == "descending"
        for _ in range(2):
            browser.click(f"{head} button")
        assert browser.run(NAMES) == ["a", "b", "c"]


def test_a_run_that_goes_is_said_to_be_gone_and_comes_back(tmp_path: Path, browser: Browser) -> None:
    made(tmp_path / "a", 2)
    away = tmp_path.parent / "away"
    for start, run in ((tmp_path, "?run=a"), (tmp_path / "a", "")):
        with followed(start, browser, run):
            wait(lambda: "2 of 9" in browser.run(TEXT), "the run")
            (tmp_path / "a").rename(away)
            wait(lambda: "it is gone" in browser.run(TEXT), "word that it is gone")
            away.rename(tmp_path / "a")
            wait(lambda: "it is gone" not in browser.run(TEXT) and "2 of 9" in browser.run(TEXT), "the run, again")


def test_a_stream_that_was_refused_is_asked_for_again(tmp_path: Path, browser: Browser) -> None:
    made(tmp_path / "a", 2)
    made(tmp_path / "b", 3)
    (tmp_path / "b").rename(tmp_path.parent / "b-late")
    ending = threading.Event()
    with running(live_app(Follower(tmp_path), ending, 0.05), ending) as found:
        browser.visit(f"{found.base}/?run=b")
        wait(lambda: "not connected" in browser.run(TEXT), "no such run")
        (tmp_path.parent / "b-late").rename(tmp_path / "b")
        wait(lambda: "following" in browser.run(TEXT) and "3 of 9" in browser.run(TEXT), "the run, later")


def test_a_long_name_stays_in_its_place(tmp_path: Path, browser: Browser) -> None:
    made(tmp_path / LONG, 2)
    (tmp_path / LONG / "rounds.jsonl").write_text(f"{LONG}\n")  # its state names the file
    wide = "return document.documentElement.scrollWidth - innerWidth"
    cut = """return [...document.querySelectorAll('h1, p, dt, dd, small')]
        .filter((one) => one.getClientRects().length && one.scrollWidth > one.clientWidth + 1 && one.clientWidth)
        .map((one) => one.textContent)"""
    for run in ("", f"?run={LONG}"):
        with followed(tmp_path, browser, run):
            for width in (360, 768, 1400):
                browser.size(width, 800, phone=width < 500)
                assert browser.run(wide) <= 0
                assert browser.run(cut) == []

"""The page that recommends in the visitor's own browser: its lists, its silence, phone, dark, keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrec as package
from command_line import Cli
from fedrec.errors import BadInput
from fedrec.experiment.open import opened
from fedrec.serve.private_page import cut, export_page
from webdriver import Browser

KINDS: dict[str, dict[str, Any]] = {
    "fedspectral": {"method": "fedspectral", "settings": {"k": 8}},
    "ease filter": {"method": "fedspectral", "settings": {"k": 8, "filter": "ease"}},
    "fedease": {"method": "fedease", "settings": {"lam": 5.0}},
}
STRONGEST = 12


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "run"
    package.run(**KINDS[request.param], data="demo", rounds=2, evaluate_every=2, out=folder)
    return folder


@pytest.fixture(scope="module")
def page(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    strongest = STRONGEST if opened(run).json["method"] == "fedease" else None
    return export_page(run, tmp_path_factory.mktemp("page"), strongest).file


def listed(browser: Browser) -> list[str]:
    found: list[str] = browser.run("return [...document.querySelectorAll('#list li')].map(row => row.dataset.item)")
    return found


def test_its_lists_are_those_of_the_recommender(run: Path, page: Path, browser: Browser) -> None:
    """Chosen with the keyboard, on a phone in the dark; of fedease, of the model that is cut in the same way."""
    known = opened(run).recommender
    model: Any = known.model
    if hasattr(model.server, "weights"):
        weights = model.server.weights
        sources, values = cut(weights, STRONGEST)
        left = np.zeros_like(weights)
        left[sources.T, np.arange(len(weights))[None, :]] = values.T
        assert 0 < (left != 0).sum() <= STRONGEST * len(weights)
        object.__setattr__(model.server, "weights", left)
    browser.size(390, 800, phone=True)
    browser.prefer("dark")
    browser.requests()
    browser.log("browser")
    browser.open(page)
    assert known.titles is not None
    history: list[int] = []
    for item in (17, 3, 88):
        browser.press("#search", str(known.titles[item]).upper())
        assert browser.run("return document.querySelector('#found li').textContent") == known.titles[item]
        browser.press("#search", "\ue015\ue013\ue007")  # down, up, enter
        history.append(item)
        wanted = known.recommend_history([str(known.item_ids[i]) for i in history], 10)
        assert listed(browser) == [r.item for r in wanted]
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.click("#chosen li:nth-child(2) button")
    wanted = known.recommend_history([str(known.item_ids[i]) for i in (17, 88)], 10)
    assert listed(browser) == [r.item for r in wanted]
    browser.click("#clear")
    assert listed(browser) == []
    assert [entry for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    asked = [address for address in browser.requests() if not address.startswith("data:")]
    assert asked == [page.resolve().as_uri()]


def test_somebodys_own_page_is_not_written_over(tmp_path: Path) -> None:
    package.run("fedspectral", data="demo", rounds=1, out=tmp_path / "run", settings={"k": 4})
    first = export_page(tmp_path / "run", tmp_path / "page").file
    assert export_page(tmp_path / "run", tmp_path / "page").file == first  # our own is
    first.write_text("<h1>my own site</h1>")
    with pytest.raises(BadInput, match="no page of fedrec"):
        export_page(tmp_path / "run", tmp_path / "page")
    assert first.read_text() == "<h1>my own site</h1>"


def test_what_cannot_be_exported_is_one_line(tmp_path: Path, fedrec: Cli) -> None:
    package.run("popularity", data="demo", out=tmp_path / "run")
    done = fedrec("export", tmp_path / "run", "--page", "page")
    assert done.status == 2
    assert "fedspectral or fedease" in done.err
    assert not (tmp_path / "page").exists()
    with pytest.raises(BadInput, match="give 1 or more"):
        export_page(tmp_path / "run", tmp_path, 0)


def test_options_that_do_nothing_are_refused(tmp_path: Path, fedrec: Cli) -> None:
    package.run("fedspectral", data="demo", rounds=1, out=tmp_path / "run", settings={"k": 4})
    for options, said in (
        (("--page", "page", "--strongest", "9"), "leave --strongest out"),
        (("--page", "page", "--follow"), "--follow is for histories"),
        (("--tensorboard", "board", "--strongest", "9"), "are of a page"),
        (("--tensorboard", "board", "--title", "Mine"), "are of a page"),
    ):
        done = fedrec("export", tmp_path / "run", *options)
        assert (done.status, said in done.err) == (2, True), done.err
    assert not (tmp_path / "page").exists()
    assert not (tmp_path / "board").exists()

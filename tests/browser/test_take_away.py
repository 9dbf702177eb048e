"""Tables and figures of the report pages can be taken into a paper, printed, and read on a phone."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from fedrec.report.model.colours import LIGHT
from webdriver import Browser

KEEP = """
    window.kept = [];
    URL.createObjectURL = (blob) => { window.kept.push(blob); return 'data:,'; };
    HTMLAnchorElement.prototype.click = function () { window.names = [...(window.names || []), this.download]; };
"""
TEXT = "const done = arguments[arguments.length - 1]; window.kept.pop().text().then(done);"


@pytest.fixture(params=("comparison_file", "reproduction_file"))
def page(request: pytest.FixtureRequest, browser: Browser) -> Browser:
    browser.size(1280, 900)
    browser.prefer("light")
    browser.open(request.getfixturevalue(request.param))
    browser.run(KEEP)
    return browser


def pressed(page: Browser, scope: str, name: str) -> str:
    """What a button saves."""
    find = f"[...document.querySelectorAll('{scope} .tools button')].find(b => b.textContent === '{name}')"
    page.run(f"{find}.click()")
    text: str = page.do("POST", "/execute/async", {"script": TEXT, "args": []})
    return text


def test_every_table_has_its_csv_and_its_latex(page: Browser) -> None:
    tables = page.run("return document.querySelectorAll('table.sortable').length")
    assert page.run("return document.querySelectorAll('section .scroll + .tools').length") == tables > 0
    csv = pressed(page, "section", "CSV").splitlines()
    shown = page.run("return document.querySelector('table.sortable').tBodies[0].rows.length")
    assert len(csv) == shown + 1
    latex = pressed(page, "section", "LaTeX")
    assert latex.count(r"\\") == shown + page.run("return document.querySelector('table.sortable').tHead.rows.length")
    assert re.search(r"\\toprule[\s\S]+\\midrule[\s\S]+\\bottomrule", latex)
    assert not re.search(r"(?<!\\)[%#_&](?=\S*\})", latex.split(r"\toprule")[1].replace(" & ", " "))
    assert [name.rpartition(".")[2] for name in page.run("return window.names")] == ["csv", "tex"]


def test_the_best_is_bold_and_text_from_outside_is_text(browser: Browser, comparison_file: Path) -> None:
    browser.size(1280, 900)
    browser.open(comparison_file)
    browser.run(KEEP)
    latex = pressed(browser, "section", "LaTeX")
    assert r"\textbf{0." in latex
    assert r"\textless{}script\textgreater{}alert(1)" in latex


def test_a_table_can_be_copied(page: Browser) -> None:
    page.run("document.addEventListener('copy', e => { window.copied = document.activeElement.value })")
    page.click("section .tools button:nth-of-type(2)")
    assert page.run("return window.copied").startswith(r"% needs \usepackage{booktabs}")


def test_a_figure_is_a_drawing_that_stands_alone(page: Browser) -> None:
    drawn = ElementTree.fromstring(pressed(page, "figure", "SVG"))
    assert drawn.tag.endswith("svg")
    text = ElementTree.tostring(drawn, encoding="unicode")
    assert "var(" not in text
    assert "class=" not in text
    colour = tuple(int(LIGHT[0][0][i : i + 2], 16) for i in (1, 3, 5))
    assert "rgb({}, {}, {})".format(*colour) in text  # the first method's, as in matplotlib's figures


COLLIDING = """
    const found = [];
    for (const chart of document.querySelectorAll('svg.chart')) {
        if (!chart.getBoundingClientRect().width) continue;
        const boxes = [...chart.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
        boxes.forEach(([name, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) found.push([name, other]);
        }));
    }
    return found;
"""


@pytest.mark.parametrize("width", [1280, 860, 390, 320])
def test_no_label_covers_another(page: Browser, width: int) -> None:
    page.size(width, 844, phone=width < 500)
    page.run("location.reload()")
    assert page.run(COLLIDING) == []


def test_print_fits_the_page(page: Browser, tmp_path: Path) -> None:
    page.tell("Emulation.setEmulatedMedia", media="print")
    page.size(703, 1000)  # A4 without its margins, at 96 dots an inch
    try:
        wide = (
            "return [...document.querySelectorAll('table, svg.chart, pre, p')].filter("
            "e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
        )
        assert page.run(wide) == []
        assert page.run("return document.documentElement.scrollWidth") <= 703
        assert page.run("return getComputedStyle(document.querySelector('.tools')).display") == "none"
        pdf: Any = page.tell("Page.printToPDF", preferCSSPageSize=True)["data"]
        assert base64.b64decode(pdf).startswith(b"%PDF")
    finally:
        page.tell("Emulation.setEmulatedMedia", media="")


def test_the_footer_says_when_and_on_what(page: Browser) -> None:
    said = page.run("return document.querySelector('footer').textContent")
    assert re.match(r"Made \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d{4} on \w+ \w+, \d+ processors?\.", said)

"""The report pages in a real headless browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webdriver import Browser

PAGES = ("comparison_file", "reproduction_file")


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, browser: Browser) -> Browser:
    """Each of the pages, freshly opened on a wide screen with light colours."""
    browser.size(1280, 900)
    browser.prefer("light")
    browser.requests()
    browser.log("browser")
    browser.open(request.getfixturevalue(request.param))
    browser.run("try { localStorage.clear() } catch (e) {}")
    browser.open(request.getfixturevalue(request.param))
    return browser


def column(browser: Browser, table: int, place: int) -> list[str]:
    script = (
        "const t = document.querySelectorAll('table.sortable')[arguments[0]];"
        "return [...t.tBodies[0].rows].map(r => r.cells[arguments[1]].textContent)"
    )
    texts: list[str] = browser.run(script, table, place)
    return texts


def numbers(texts: list[str]) -> list[float]:
    found = [re.match(r"[-+]?[\d.]+", text.strip()) for text in texts]
    return [float(one.group()) for one in found if one]


def test_there_is_no_error_and_no_request(page: Browser) -> None:
    for selector in ("th button", ".theme", ".key"):
        page.click(selector)
    assert [entry for entry in page.log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    asked = page.requests()
    assert asked
    assert {address.partition(":")[0] for address in asked} <= {"file", "data"}
    assert {address for address in asked if address.startswith("file") and not address.endswith(".html")} == set()


def test_the_policy_stops_what_is_not_ours(page: Browser) -> None:
    page.run("const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s)")
    assert page.run("return window.broken === undefined")
    wait = (
        "const done = arguments[arguments.length - 1];"
        "fetch('http://127.0.0.1:9/').then(() => done('sent'), () => done('refused'))"
    )
    assert page.do("POST", "/execute/async", {"script": wait, "args": []}) == "refused"
    assert any("Content Security Policy" in entry["message"] for entry in page.log("browser"))


def test_tables_sort_and_come_back(page: Browser) -> None:
    before = column(page, 0, 0)
    head = "table.sortable thead tr:last-child th:nth-child(2)"
    page.click(f"{head} button")
    falling = numbers(column(page, 0, 1))
    assert falling == sorted(falling, reverse=True)
    assert page.run("return document.querySelector(arguments[0]).getAttribute('aria-sort')", head) == "descending"
    page.click(f"{head} button")
    rising = numbers(column(page, 0, 1))
    assert rising == sorted(falling)
    page.click(f"{head} button")
    assert column(page, 0, 0) == before
    page.click("table.sortable thead tr:last-child th:nth-child(1) button")
    assert column(page, 0, 0) == sorted(before, key=str.lower)


def test_cells_without_a_value_stay_last(page: Browser) -> None:
    head = "table.sortable thead tr:last-child th:nth-child(2)"
    for _ in range(2):
        page.click(f"{head} button")
        known = [bool(numbers([text])) for text in column(page, 0, 1)]
        assert known == sorted(known, reverse=True)


def test_a_curve_shows_its_values_under_the_pointer(page: Browser) -> None:
    chart = "figure.curves svg.wide"
    page.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    box = page.run(
        "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.x, b.y, b.width, b.height]",
        chart,
    )
    data = page.run("return JSON.parse(document.querySelector('figure.curves script').textContent)")
    page.move(box[0] + box[2] / 2, box[1] + box[3] / 2)
    told = page.run("const t = document.querySelector('figure.curves .tip'); return t.hidden ? '' : t.textContent")
    under = re.match(r"round (\d+)", told)
    assert under is not None
    shown = int(under.group(1))
    at = data["rounds"].index(shown)
    assert 10 < shown < 25  # the middle of 30 rounds, more or less
    for series in data["series"]:
        assert f"{series['name']}{series['values'][at]:.4f}" in told
    page.move(5, 5)
    assert page.run("return document.querySelector('figure.curves .tip').hidden")


def test_a_curve_can_be_read_with_keys_and_switched_off(page: Browser) -> None:
    page.press("figure.curves svg.wide", "\ue012")  # arrow left
    told = page.run("return document.querySelector('figure.curves .tip').textContent")
    assert told.startswith("round 29")
    name = page.run("return document.querySelector('figure.curves .key').textContent.trim()")
    page.click("figure.curves .key")
    assert page.run("return document.querySelector('figure.curves .key').getAttribute('aria-pressed')") == "false"
    gone = "return getComputedStyle(document.querySelector('figure.curves svg.wide g[data-series=\"0\"]')).display"
    assert page.run(gone) == "none"
    page.press("figure.curves svg.wide", "\ue012")
    assert name not in page.run("return document.querySelector('figure.curves .tip').textContent")


def test_a_mark_tells_its_name_and_value(page: Browser) -> None:
    mark = "figure.points svg.wide [data-tip]"
    page.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", mark)
    page.run("document.querySelector(arguments[0]).focus()", mark)
    assert re.search(r"0\.\d{4}", page.run("return document.querySelector('figure.points .tip').textContent"))


def test_colours_follow_the_system_and_the_button(page: Browser) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(paper)
    page.click(".theme")
    dark = page.run(paper)
    assert light == "rgb(255, 255, 255)"
    assert dark != light
    page.click(".theme")
    assert page.run(paper) == light
    page.run("try { localStorage.clear() } catch (e) {}")
    page.prefer("dark")
    page.run("location.reload()")
    assert page.run(paper) == dark


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_text_stands_out_from_its_ground(page: Browser, colours: str) -> None:
    """WCAG AA: 4.5 to 1."""
    page.prefer(colours)
    page.run("location.reload()")
    script = """
    const luminance = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).slice(0, 3).map(v => {
        v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\\)$/.test(c) && c !== 'transparent') return c; } return 'rgb(255, 255, 255)'; };
    const poor = [];
    const spoken = 'p, td, th, dt, dd, li, a, button, summary, strong, small, h1, h2, h3, span, text.name';
    for (const e of document.querySelectorAll(spoken)) {
      if (!e.textContent.trim() || e.closest('[hidden]') || !e.getClientRects().length) continue;
      const style = getComputedStyle(e);
      const ink = luminance(e instanceof SVGElement ? style.fill : style.color), paper = luminance(ground(e));
      const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      if (ratio < 4.5) poor.push([e.tagName, e.textContent.slice(0, 30), ratio]);
    }
    return poor"""
    assert page.run(script) == []


def test_a_phone_shows_it_without_scrolling_sideways(page: Browser) -> None:
    page.size(390, 844, phone=True)
    page.run("location.reload()")
    assert page.run("return document.documentElement.scrollWidth") <= 390
    assert page.run("return getComputedStyle(document.querySelector('svg.wide')).display") == "none"
    assert page.run("return getComputedStyle(document.querySelector('svg.narrow')).display") == "block"
    heights = "return [...document.querySelectorAll('svg.narrow text')].map(t => t.getBoundingClientRect().height)"
    assert min(height for height in page.run(heights) if height) > 10  # still to be read


@pytest.mark.parametrize("width", [1280, 860, 390])
def test_no_name_runs_out_of_its_drawing(page: Browser, width: int) -> None:
    page.size(width, 900, phone=width < 500)
    page.run("location.reload()")
    script = """
        const cut = [];
        for (const chart of document.querySelectorAll('svg.chart')) {
            const whole = chart.getBoundingClientRect();
            if (!whole.width) continue;
            for (const text of chart.querySelectorAll('text')) {
                const box = text.getBoundingClientRect();
                if (box.left < whole.left - 2 || box.right > whole.right + 2) cut.push(text.textContent);
            }
        }
        return cut;
    """
    assert page.run(script) == []


def test_text_from_outside_is_text(browser: Browser, comparison_file: Path) -> None:
    browser.open(comparison_file)
    assert "<script>alert(1)</script>" in browser.run("return document.body.textContent")
    assert browser.run("return [...document.scripts].filter(s => s.textContent.startsWith('alert')).length") == 0

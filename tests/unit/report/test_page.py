"""The report page: one file that asks nobody for anything, with all that it promises inside."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from made_runs import made_run

from fedrec.report.model.comparison import Failure, compare_runs
from fedrec.report.model.runs import FinishedRun
from fedrec.report.model.series import Series, fate, numbered
from fedrec.report.page import comparison, svg
from fedrec.report.page.comparison import comparison_page
from fedrec.report.page.parts import HtmlTable, Section, Td, Th, data_block
from fedrec.report.page.render import Page, checksum, render
from fedrec.report.text.commands import run_command

VOID = {"meta", "link", "input", "br", "hr"}


class Reader(HTMLParser):
    """Elements with their attributes, and whether every one is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a beginning"
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.seen if name == tag]


def some_runs(protocol: str = "strict") -> list[FinishedRun]:
    rng = np.random.default_rng(0)
    levels = {"fedavg": 0.6, "ease": 0.8, "popularity": 0.5, "local": 0.2, "random": 0.1}
    return [
        made_run(name, seed, rng.random(40) < level, protocol=protocol, curve=[0.1, level] if name == "fedavg" else ())
        for name, level in levels.items()
        for seed in (0, 1)
    ]


@pytest.fixture(scope="module")
def text() -> str:
    lost = [Failure("fedmf", 1, "ValueError: <b>&</b> \"quoted\" 'text' </script>")]
    return comparison_page(
        compare_runs(some_runs(), failures=lost, chance={"NDCG@10": 0.02}), "fedrec compare 'a b' <x>"
    )


def test_every_element_is_closed(text: str) -> None:
    reader = Reader(text)
    assert reader.open == []
    ids = [attributes["id"] for _, attributes in reader.seen if attributes.get("id")]
    assert len(ids) == len(set(ids))
    targets = [a["href"] for a in reader.of("a")]
    assert {str(target).removeprefix("#") for target in targets} <= set(ids)


def test_nothing_is_fetched(text: str) -> None:
    """No address is loaded, and the policy allows none; the only script and style are named by checksum."""
    reader = Reader(text)
    loads = [(tag, a.get("src") or a.get("href")) for tag, a in reader.seen if a.get("src") or tag == "link"]
    assert loads == [("link", "data:,")]
    assert not re.search(r"url\(|@import", text)
    policy = next(a["content"] for a in reader.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert style is not None
    assert len(script) == 1
    assert f"'{checksum(style.group(1))}'" in policy
    assert f"'{checksum(script[0])}'" in policy
    assert not [a for _, a in reader.seen if "style" in a or any(name.startswith("on") for name in a)]


def test_text_from_outside_cannot_become_markup(text: str) -> None:
    assert "<b>&</b>" not in text
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in text
    assert "fedrec compare &#x27;a b&#x27; &lt;x&gt;" in text
    block = data_block({"name": "</script><script>alert(1)"})
    assert block.count("</script>") == 1
    assert json.loads(block.partition(">")[2].removesuffix("</script>")) == {"name": "</script><script>alert(1)"}


def test_the_page_has_what_it_promises(text: str) -> None:
    for word in ("Results", "Over rounds", "against bytes", "against seconds", "Who gains, who loses", "Method cards"):
        assert word in text
    assert "fedrec run fedavg --data" in text
    assert "stays private" in text
    assert "No flaw is known" in text
    assert "0.0200" in text  # chance


def test_a_leak_and_the_flaws_of_a_protocol_are_told() -> None:
    runs = some_runs("paper-fedca")
    leaking = [made_run("local", seed, np.ones(40), protocol="paper-fedca") for seed in (0, 1)]
    runs = [run for run in runs if run.method != "local"] + leaking
    page = comparison_page(compare_runs(runs, chance={"HR@10/99": 0.1}))
    assert "<strong>LEAK:</strong>" in page
    assert "Flaws of this procedure" in page
    assert "by elimination" in page


def test_tables_sort_by_numbers_and_rows_have_headings() -> None:
    table = HtmlTable(
        "t", [Th("a", number=False), Th("b")], [("", [Td("x"), Td("1.0 ±2", 1.0)]), ("", [Td("y"), Td("-")])]
    )
    reader = Reader(table.html())
    assert [a["scope"] for a in reader.of("th")] == ["col", "col", "row", "row"]
    assert [a.get("data-kind") for a in reader.of("th")[:2]] == ["text", "number"]
    assert [a.get("data-v") for a in reader.of("td")] == ["1.0", None]
    assert reader.of("div")[0]["tabindex"] == "0"  # what scrolls can be reached by keys


def test_the_same_content_gives_the_same_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "here", lambda: "Made now.")  # a minute may end between the two
    first = comparison_page(compare_runs(some_runs(), chance={}))
    assert first == comparison_page(compare_runs(some_runs(), chance={}))


def test_empty_sections_are_left_out() -> None:
    runs = [made_run("ease", 0, [0.5, 0.5], keep_users=False), made_run("popularity", 0, [0.4, 0.4], keep_users=False)]
    page = comparison_page(compare_runs(runs))
    assert 'id="curves"' not in page  # nothing has rounds
    assert 'id="users"' not in page  # nothing is known of users
    assert render(Page("t", "l", [Section("a", "A", "body")])).count("<section") == 1


def test_users_fates_by_hand() -> None:
    mine = [made_run("fedavg", 0, [1, 0, 0.5, 0.2, np.nan]), made_run("fedavg", 1, [1, 0, 0.5, 0.2, 1])]
    theirs = [made_run("popularity", 0, [0, 1, 0.5, 0, 1]), made_run("popularity", 1, [0, 1, 0.5, 0.4, 1])]
    found = fate(
        Series("m", "fedavg", "federated", tuple(mine)), Series("p", "popularity", "control", tuple(theirs)), "NDCG@10"
    )
    assert found is not None
    # user 0 gains, 1 loses, 2 is the same, 3 gains 0.2 once and loses 0.2 once, 4 is not known in one seed
    assert (found.better, found.worse, found.same) == pytest.approx((0.25, 0.25, 0.5))
    assert found.users == 4
    assert found.served == pytest.approx((0 + 0.5 + 0 + 0.5 + 0.2) / 5)
    assert found.unserved == pytest.approx((1 + 0.2 + 1) / 3)
    unpaired = Series("p", "popularity", "control", (made_run("popularity", 7, [0, 1, 0, 0, 0]),))
    assert fate(Series("m", "fedavg", "federated", tuple(mine)), unpaired, "NDCG@10") is None


def test_colours_then_strokes_tell_methods_apart() -> None:
    many = numbered([Series(str(i), "fcf", "federated", ()) for i in range(21)])
    assert len({one.cls for one in many}) == 21


def test_commands_say_what_differs_from_the_defaults() -> None:
    said = run_command(
        {"method": "fedca", "data": "ml-100k", "protocol": "strict", "rounds": 7, "seed": 3, "participation": 1.0,
         "robust": "rows", "rest": True, "settings": {"dim": 16, "beta": 0.4, "backbone": "ncf", "lr": 0.5}}
    )  # fmt: skip
    assert said == (
        "fedrec run fedca --data ml-100k --protocol strict --rounds 7 --rest --seed 3 --set backbone=ncf --set lr=0.5"
    )


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.037), (1, 100), (-3, 7)])
def test_ticks_are_round_and_within(low: float, high: float) -> None:
    ticks = svg.nice(low, high)
    assert 3 <= len(ticks) <= 8
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])
    assert math.isclose(svg.scale(1, 100, 0, 10, log=True)(10), 5)

"""The audit on small worlds: what must be found is found, what must not be is not, and a stopped one goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrec.errors import BadInput
from fedrec.experiment.audit import auditing
from fedrec.experiment.audit.auditing import Asked, Book, Row, audit, read_rows
from fedrec.experiment.audit.figures import auc, exposed
from fedrec.experiment.resolve import resolve
from fedrec.laws.small_runs import small_settings
from fedrec.methods.registry import federated, find
from fedrec.report.model.audit import summarise, summarise_sums
from fedrec.report.text.audit import cells, markdown_page
from fedrec.secure import simulate

WORLD = "scale:users=60,items=80,interactions=1200"
SUMMED = [name for name in federated() if find(name).card.sum_suffices and name != "local"]


def rows(method: str, *attacks: str, asked: Any = None, data: str = WORLD, **settings: Any) -> list[Row]:
    own = small_settings(method, **settings).model_dump(mode="json")
    book = Book()
    given = {"data": data, "seed": 3, "settings": own}
    audit(resolve(method, given), asked or Asked(attacks, rounds=4), book)
    return book.rows


@pytest.mark.parametrize(
    ("method", "attack"),
    [("fedavg", "sign"), ("fedmf", "sign"), ("fedca", "sign"), ("fedspectral", "touched"), ("feddae", "named")],
)
def test_one_upload_names_a_client_s_items(method: str, attack: str) -> None:
    for row in rows(method, attack):
        assert row.figures["precision"] > 0.97, row
        assert row.figures["recall"] > 0.97, row


def test_rows_beside_the_numbers_of_their_items_name_them_too() -> None:
    made = rows("fedca-approx", "sign", "touched", "imia", rows=80)
    found = {row.attack: row.figures for row in made if row.rounds == 1}
    assert found["sign"]["precision"] > 0.97
    assert found["sign"]["recall"] > 0.97
    assert found["touched"]["recall"] == 1
    assert found["imia"]["auc"] > 0.95 > found["imia"]["popular_auc"]


def test_membership_with_shadow_models_and_sizes() -> None:
    found = {row.attack: row.figures for row in rows("fedavg", "imia", "size") if row.rounds == 1}
    assert found["imia"]["auc"] > 0.95 > found["imia"]["popular_auc"]
    assert found["size"]["size_within_tenth"] == 1


def test_noise_hides_what_an_upload_tells() -> None:
    row = rows("fedavg", "sign", clip=1.0, noise=0.5)[0]
    assert abs(row.figures["auc"] - 0.5) < 0.1


@pytest.mark.parametrize("method", SUMMED)
def test_what_the_server_receives_in_secure_sums_tells_nothing_of_a_client(method: str) -> None:
    found = rows(method, asked=Asked(("touched", "norms", "sign"), secure=True))
    assert {row.view for row in found} == {"message", "sum"}
    for row in found:
        if row.figures and row.view == "message":
            assert row.figures["auc"] == pytest.approx(0.5, abs=0.04), row
            assert row.figures["whose"] == pytest.approx(0.5, abs=0.04), row
            assert row.figures["precision"] == pytest.approx(row.figures["chance"], abs=0.04), row
        elif row.figures:
            assert row.figures["whose"] == 0.5, row  # the same guess for everybody
            assert row.figures["auc"] < row.figures["popular_auc"] + 0.05, row


def test_masks_that_do_not_hide_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate.Masks, "_masks_of", lambda *_: [])
    monkeypatch.setattr(simulate, "apply_masks", lambda *_: None)
    (row, *_) = rows("fedspectral", asked=Asked(("touched",), secure=True))
    assert row.figures["whose"] > 0.9


SPARSE = "scale:users=60,items=200,interactions=500"


def histories(method: str, attack: str, settings: Any = None, **given: Any) -> dict[str, dict[str, float]]:
    book = Book()
    run = resolve(method, {"data": SPARSE, "seed": 3, "settings": settings or {}, **given})
    audit(run, Asked((attack,), secure=True), book)
    return {row.view: row.figures for row in book.rows}


@pytest.mark.parametrize(
    ("method", "attack", "settings", "all_of_them"),
    [
        ("fedease", "pairs", {}, True),
        ("fedease", "pairs", {"scale": "user"}, True),
        ("fedease", "pairs", {"pair_span": 5}, False),
        ("fedcia", "pairs", {"backbone": "gfcf", "form": "full"}, True),
        ("fedspectral", "columns", {"k": 8}, False),
        ("fedspectral", "columns", {"k": 8, "rank": 12, "filter": "ease"}, False),
    ],
)
def test_sums_of_pairs_hold_whole_histories(method: str, attack: str, settings: Any, all_of_them: bool) -> None:
    found = histories(method, attack, settings)
    assert found["message"]["histories"] == found["message"]["false"] == 0  # masked
    told = found["sum"]
    assert told["users"] == 60  # all who are in the sum, not those that were watched alone
    assert told["precision"] == 1
    assert told["histories"] >= told["standing"] > 10 * (told["popular_recall"] + told["chance"]) * told["users"]
    assert (told["recall"] == 1) == all_of_them


@pytest.mark.parametrize(("method", "attack"), [("fedease", "pairs"), ("fedspectral", "columns")])
def test_a_budget_leaves_no_history_in_a_sum(method: str, attack: str) -> None:
    told = histories(method, attack, secure=True, epsilon=1.0)["sum"]
    assert told["histories"] == 0
    assert told["users"] == 60


def test_methods_without_pairs_are_said_not_to_be_read() -> None:
    assert histories("fcf", "pairs") == {"message": {}, "sum": {}}
    assert histories("fcf", "columns") == {"message": {}, "sum": {}}


def test_the_audit_of_sums_as_a_table(tmp_path: Path) -> None:
    book = Book(tmp_path)
    audit(resolve("fedspectral", {"data": WORLD, "settings": {"k": 4}}), Asked(("touched", "size"), secure=True), book)
    sums = summarise_sums(read_rows(tmp_path / "audit.json"))
    assert not summarise(book.rows)
    assert "| fedspectral | 0.50 | 0.50 | 0.00 | 0.50 | 0.7" in markdown_page([], "Audit", "fedrec audit", sums)
    with pytest.raises(BadInput, match="not only a sum"):
        rows("fedca", asked=Asked(("sign",), secure=True))


def test_boosted_clients_promote_a_cold_item_and_the_defence_stops_them() -> None:
    asked = Asked(("boost",), rounds=12)
    found = {(r.attack, r.defence, r.adaptive): r.figures for r in rows("fedavg", asked=asked, data="demo", epochs=10)}
    assert found["", "none", False]["ER@10"] < 0.05
    assert found["boost", "none", False]["ER@10"] > 0.5
    assert found["boost", "rows", False]["ER@10"] < 0.1
    assert set(found) == {
        ("", "none", False), ("", "rows", False), ("boost", "none", False), ("boost", "rows", False),
        ("boost", "rows", True),
    }  # fmt: skip


def test_an_attack_without_anything_to_send_says_so() -> None:
    found = [r for r in rows("feddae", "pipattack") if r.attack]
    assert found
    assert all(not r.figures for r in found)


def test_where_nobody_can_read_the_table_says_so() -> None:
    (line,) = summarise([*rows("local", "touched", "sign", "imia"), *rows("local", "size")])
    assert cells(line)[:4] == ["local", "not read", "–", "not read"]
    assert cells(line)[5] == "–"  # nobody was asked


def test_a_stopped_audit_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = resolve("fedspectral", {"data": WORLD, "settings": {"k": 4}})
    asked = Asked(("touched", "size", "boost"), rounds=2)

    def stop(row: Row) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(settings, asked, Book(tmp_path), stop)
    seen: list[Row] = []
    audit(settings, asked, Book(tmp_path), seen.append)
    whole = read_rows(tmp_path / "audit.json")
    assert len(whole) == len(seen) + 1
    monkeypatch.setattr(auditing, "prepare", None)  # nothing is left to do
    audit(settings, asked, Book(tmp_path))
    page = markdown_page(summarise(whole), "Audit", "fedrec audit fedspectral")
    assert "| fedspectral | 1.00 / 1.00 (touched)" in page
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(BadInput, match="is not an audit"):
        Book(tmp_path)


def test_centralised_methods_have_no_messages() -> None:
    with pytest.raises(BadInput, match="is centralised"):
        audit(resolve("popularity", {"data": WORLD}), Asked(), Book())


def test_figures_by_hand() -> None:
    truth = np.array([True, False, True, False])
    assert auc(np.array([3.0, 1.0, 2.0, 2.0]), truth) == pytest.approx(3.5 / 4)
    scores = np.array([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0.0, 0.0, 0.0]])
    seen = [np.array([0]), np.zeros(0, int), np.array([2])]
    assert exposed(scores, seen, target=1, k=1) == pytest.approx(2 / 3)  # above all it has not; second; a tie with one
    assert exposed(scores[:1], [np.array([1])], target=1, k=1) != exposed(scores, seen, target=1, k=1)


def test_a_server_that_ranks_as_the_node_does_names_what_it_is_told_the_rank_of() -> None:
    book = Book()
    audit(resolve("fedease", {"data": "demo"}), Asked(("metrics",)), book)
    (row,) = book.rows
    assert row.figures["precision"] > 5 * row.figures["blind_precision"] > 0


def test_metrics_are_read_where_a_download_has_rows_of_the_client_s_own() -> None:
    (row,) = rows("cofedrec", "metrics", data="demo")
    assert row.figures["clients"] == 50

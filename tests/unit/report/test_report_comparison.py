"""Groups, order, marks and the leak banner of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from made_runs import made_run
from numpy.typing import NDArray

from fedrec.errors import BadInput
from fedrec.evaluation.protocols import PROTOCOLS, STRICT, Protocol
from fedrec.report.model.columns import canary_metric, main_metric, shown
from fedrec.report.model.comparison import Cell, Comparison, Failure, compare_runs
from fedrec.report.model.runs import FinishedRun
from fedrec.report.model.significance import versus
from fedrec.report.text.wording import notes

USERS = 60


def level(share: float) -> NDArray[np.float64]:
    """``share`` of the users are hit; a higher share hits the same users and more."""
    return (np.arange(USERS) < round(share * USERS)).astype(float)


def runs(seeds: Sequence[int] = (0, 1, 2), **shares: float) -> list[FinishedRun]:
    return [made_run(name, seed, level(share)) for name, share in shares.items() for seed in seeds]


def cell_of(found: Comparison, method: str) -> Cell:
    row = found.row(method)
    assert row is not None
    return row.cells["HR@10"]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_column_is_a_metric_of_its_protocol(protocol: Protocol) -> None:
    for name in (*shown(protocol), main_metric(protocol), canary_metric(protocol)):
        assert name in protocol.metrics.names


def test_strict_columns_are_the_agreed_ones() -> None:
    assert shown(STRICT) == ("HR@10/99", "NDCG@10/99", "HR@10", "NDCG@10", "HR@20")
    assert main_metric(STRICT) == "NDCG@10"


def test_rows_are_grouped_and_ordered_best_first() -> None:
    found = compare_runs(
        runs(local=0.1, fcf=0.3, random=0.05, fedavg=0.5, popularity=0.2, gfcf=0.6, ease=0.7),
        failures=[Failure("fedmf", 0, "no luck")],
    )
    assert [(row.method, row.group) for row in found.rows] == [
        ("fedavg", "federated"),
        ("fcf", "federated"),
        ("fedmf", "federated"),  # nothing to order by: last of its group
        ("ease", "centralised"),
        ("gfcf", "centralised"),
        ("popularity", "control"),
        ("local", "control"),
        ("random", "control"),
    ]


def test_mean_and_spread_over_seeds() -> None:
    found = compare_runs([made_run("ease", seed, level(share)) for seed, share in enumerate((0.2, 0.4, 0.6))])
    cell = found.rows[0].cells["HR@10"]
    assert cell.summary.mean == pytest.approx(0.4)
    assert cell.summary.spread == pytest.approx(0.2)  # sqrt((0.04 + 0 + 0.04) / 2)


def test_clear_winner_runner_up_and_floor() -> None:
    found = compare_runs(runs(popularity=0.4, fcf=0.3, fedavg=0.9))
    best, other = cell_of(found, "fedavg"), cell_of(found, "fcf")
    assert best.best
    assert best.mark == "*"
    assert best.against_best is not None
    assert best.against_floor is not None
    assert other.against_best is not None
    assert best.against_best.against == "fcf"  # the best is held against the runner-up
    assert best.against_best.difference == pytest.approx(0.6)
    assert other.against_best.against == "fedavg"
    assert other.against_best.difference == pytest.approx(-0.6)
    assert other.mark == "°"  # told from the best, and not above popularity
    assert best.against_floor.better


def test_level_methods_are_marked_level() -> None:
    values = level(0.5)
    swapped = values.copy()
    swapped[0], swapped[-1] = 0.0, 1.0  # one user won, one lost
    swapped[-2] = 1.0
    found = compare_runs([made_run("fcf", 0, values), made_run("fedavg", 0, swapped)])
    assert cell_of(found, "fedavg").mark == ""  # best, but not clearly
    assert cell_of(found, "fcf").mark == "~"


def test_a_single_method_of_a_group_has_no_rival() -> None:
    cell = cell_of(compare_runs(runs(fcf=0.5, ease=0.9)), "fcf")
    assert not cell.best
    assert cell.against_best is None
    assert cell.mark == ""


def test_seeds_that_failed_are_left_out_of_pairs() -> None:
    some = [*runs(fedavg=0.9), *runs(seeds=(1,), fcf=0.3)]
    found = compare_runs(some, failures=[Failure("fcf", 0, "x"), Failure("fcf", 2, "x")])
    verdict = cell_of(found, "fcf").against_best
    assert verdict is not None
    assert verdict.seeds == 1
    assert verdict.p_seeds is None
    assert verdict.significant  # over users


def test_seeds_that_one_method_lacks_shrink_no_other_test() -> None:
    """All marks came from seed 0 alone, and the note said that users are averaged over seeds."""
    found = compare_runs([*runs(popularity=0.4, fcf=0.9, fedavg=0.5), *runs(seeds=(0,), fedmf=0.3)])
    alone = compare_runs(runs(popularity=0.4, fcf=0.9, fedavg=0.5))
    for name in ("fcf", "fedavg"):
        verdict, before = cell_of(found, name).against_floor, cell_of(alone, name).against_floor
        assert verdict is not None
        assert before is not None
        assert (verdict.seeds, verdict.p_users, verdict.p_seeds) == (3, before.p_users, before.p_seeds)
    few = cell_of(found, "fedmf").against_floor
    assert few is not None
    assert few.seeds == 1
    assert cell_of(found, "fcf").mark == "*"
    text = "Tested on seed 0 alone: fedmf against popularity; fedmf against fcf."
    assert text in notes(found)
    assert not any("Tested on" in note or "Not tested" in note for note in notes(alone))


def test_a_method_that_shares_no_seed_is_said_to_be_untested() -> None:
    """Every mark was gone, which reads as better than popularity."""
    some = [*runs(popularity=0.4, fcf=0.9, fedavg=0.3), *runs(seeds=(7,), fedmf=0.1)]
    found = compare_runs(some)
    assert cell_of(found, "fedavg").mark == "°"
    assert cell_of(found, "fedmf").mark == ""
    assert cell_of(found, "fcf").mark == ""  # best, but not clearly: one rival was not tested
    said = "Not tested, because no seed is common: fedmf against popularity; fedmf against fcf. Tested on seeds 0, 1, 2"
    assert any(note.startswith(said) for note in notes(found))
    found = compare_runs([*runs(popularity=0.4), *runs(seeds=(7,), fedmf=0.1)])
    said = "Nothing was tested: no seed is common to fedmf (seed 7), popularity (seeds 0, 1, 2)."
    assert said in notes(found)


def test_without_values_of_users_the_seeds_decide() -> None:
    def own(name: str, shares: tuple[float, ...]) -> list[FinishedRun]:
        return [made_run(name, seed, level(share), keep_users=False) for seed, share in enumerate(shares)]

    high, low = own("fedavg", (0.8, 0.9, 0.85)), own("fcf", (0.2, 0.35, 0.25))
    verdict = versus("fedavg", {"fedavg": high, "fcf": low}, "HR@10")["fcf"]
    assert verdict.p_users is None
    assert verdict.significant
    pair = versus("fedavg", {"fedavg": high[:2], "fcf": low[:2]}, "HR@10")["fcf"]
    assert pair.p_adjusted is None  # two seeds prove nothing
    assert not pair.significant


def test_different_users_cannot_be_paired() -> None:
    one, two = made_run("fcf", 0, level(0.5)), made_run("fedavg", 0, level(0.6))
    other = type(two)(two.result, two.rounds, two.users[::-1], two.per_user)
    with pytest.raises(BadInput, match="different users"):
        compare_runs([one, other])


def test_different_protocols_or_data_are_bad_input() -> None:
    with pytest.raises(BadInput, match="protocol"):
        compare_runs([made_run("fcf", 0, level(0.5)), made_run("ease", 0, level(0.5), protocol="paper-feddae")])
    with pytest.raises(BadInput, match="data"):
        compare_runs([made_run("fcf", 0, level(0.5)), made_run("ease", 0, np.ones(3))])
    with pytest.raises(BadInput, match="same seed"):
        compare_runs([made_run("fcf", 0, level(0.5)), made_run("fcf", 0, level(0.5))])
    with pytest.raises(BadInput, match="no finished run"):
        compare_runs([])


@pytest.mark.parametrize(("share", "leaks"), [(0.6, True), (0.1, False)])
def test_leak_banner_where_local_beats_chance(share: float, leaks: bool) -> None:
    found = compare_runs(runs(local=share, ease=0.7), chance={"HR@10/99": 0.1})
    assert (found.banner is not None) == leaks
    if found.banner:
        assert found.banner.startswith("LEAK")


def test_no_banner_where_clients_hold_several_users() -> None:
    local = made_run("local", 0, level(0.6), clients=3)
    assert compare_runs([local], chance={"HR@10/99": 0.1}).banner is None


def test_leak_banner_without_values_of_users() -> None:
    local = made_run("local", 0, level(0.6), keep_users=False)
    assert compare_runs([local], chance={"HR@10/99": 0.1}).banner is not None


def test_unevaluated_users_do_not_count() -> None:
    values = level(0.6)
    values[::2] = np.nan
    found = compare_runs([made_run("local", seed, values) for seed in (0, 1)], chance={"HR@10/99": 0.1})
    assert f"{USERS // 2} users" in (found.banner or "")

"""A budget for a run of secure sums: true for the user with most data, under dropout, for all that leaves."""

from __future__ import annotations

import json
import re
import warnings
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

import fedrec
from fedrec.core import wire
from fedrec.core.block import Block, World
from fedrec.core.messages import Rows
from fedrec.core.method import Keys, Method
from fedrec.core.participation import Participation
from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import Contribution, SumField
from fedrec.data.ragged import Ragged, offsets
from fedrec.errors import BadInput
from fedrec.experiment.prepare import prepare
from fedrec.experiment.resolve import resolve
from fedrec.experiment.run import execute, resume
from fedrec.methods.fedavg import FedAvg, WeightedUpload
from fedrec.methods.fedease import FedEase, NothingPrivate, Weights
from fedrec.privacy.card import of_uploads, repeatable
from fedrec.privacy.guard import NoiseGuard, SimulatedGuard, noise_in_total
from fedrec.privacy.spending import Spent, gaussian_release, laplace_release
from fedrec.privacy.summed import Budget, SumNoise, most_rounds, norms_of, sum_noise
from fedrec.runs.result import card_of
from fedrec.secure.accounting import spread
from fedrec.secure.contribution import FREE, bound_of, layout_of, vector_of
from fedrec.secure.noise import noisy_summands
from fedrec.secure.plan import Plan
from fedrec.secure.randomness import Stream
from fedrec.secure.rules import neighbourhood
from fedrec.simulate.private import PrivateSimulator
from fedrec.simulate.runtime import Simulator, Tally

WORLD = "scale:users=30,items=25,interactions=300"


def planned(fields: dict[str, SumField], settings: PrivacySettings, releases: int = 1, **more: Any) -> SumNoise:
    return sum_noise(
        Budget(more.pop("epsilon", 8.0), 1e-6),
        fields,
        settings,
        more.pop("contribution", None),
        lambda noise, bits: layout_of(fields, settings, users=1, clients=1, summands=40, noise=noise, bits=bits),
        users=more.pop("users", 1),
        releases=releases,
        summands=30,
        nodes=more.pop("nodes", False),
    )


def test_gaussian_releases_add_up_exactly_and_others_are_bounded() -> None:
    one = gaussian_release(1.0, 3.0)
    assert one.times(7).epsilon(1e-6) == pytest.approx(get_epsilon_gaussian(3 / sqrt(7), 1e-6))
    pure = laplace_release(1.0, 2.0)
    assert pure.times(3).epsilon(1e-6) == pytest.approx(1.5)
    assert (one + pure).epsilon(1e-6) >= max(one.epsilon(1e-6), 0.5)
    assert Spent().epsilon(1e-6) == 0


def test_the_noise_is_the_least_that_keeps_the_budget() -> None:
    for releases in (1, 20):
        found = planned({"a": SumField((10, 3))}, PrivacySettings(clip=1.0), releases)
        assert found.spent.epsilon(1e-6) <= 8.0
        exact = found.noise["a"] / (2 * sqrt(releases))  # replacement moves the sum by 2 clip
        assert get_epsilon_gaussian(exact, 1e-6) == pytest.approx(8.0, rel=5e-3)


def test_counts_lie_at_a_right_angle_at_most() -> None:
    signed = planned({"a": SumField((10,))}, PrivacySettings(), contribution=Contribution(1.0))
    counts = planned({"a": SumField((10,))}, PrivacySettings(), contribution=Contribution(1.0, nonnegative=True))
    assert signed.noise["a"] / counts.noise["a"] == pytest.approx(sqrt(2), rel=1e-3)
    one, other = np.zeros(10), np.zeros(10)
    one[0], other[1] = 1.0, 1.0
    assert np.linalg.norm(one - other) == pytest.approx(sqrt(2))


def test_only_a_client_of_one_user_rounds_that_users_part_alone() -> None:
    given: dict[str, Any] = {"contribution": Contribution(1.0, nonnegative=True)}
    one = planned({"a": SumField((10,))}, PrivacySettings(), **given)
    several = [
        planned({"a": SumField((10,))}, PrivacySettings(), **given, **more) for more in ({"nodes": True}, {"users": 2})
    ]
    assert one.alone
    assert not any(found.alone for found in several)
    assert all(found.noise["a"] >= one.noise["a"] for found in several)


def test_the_user_with_most_data_is_the_one_that_is_covered() -> None:
    """Equal weights were assumed: 5.96 was stated where 49.2 was true."""
    method = FedAvg(FedAvg.Settings(dim=2, clip=1.0))
    made = prepare(resolve("fedavg", {"data": WORLD, "settings": {"dim": 2}}))
    server = made.runtime.server
    fields = method.sum_fields(server, 1)
    norms, _ = norms_of(fields, method.settings, None, users=1)
    n = made.people.world.n_items
    change = np.zeros((n, 2), np.float32)
    change[0, 0] = 1.0  # a whole clip bound, from one who has every item
    upload = WeightedUpload(Rows(np.array([0, n]), np.arange(n, dtype=np.int32), change, n), {}, np.array([n]))
    summands = method.summands(upload, method.download(server, np.arange(1)))
    added = {name: float(np.linalg.norm(one.of(0))) for name, one in summands.items()}
    assert added["items"] == pytest.approx(n)  # not 1, as a mean of equal weights would have it
    for group, most in norms.items():
        assert sqrt(sum(added[name] ** 2 for name in group)) <= most * (1 + 1e-9)
    found = planned(fields, method.settings)
    assert found.noise["items"] >= 2 * n * 0.6
    assert found.noise["weight"] > 0  # sizes are inside the guarantee


@pytest.mark.parametrize("precision", ["float16", "float32"])
@pytest.mark.parametrize("others", [1, 200, 1800])
def test_a_user_among_many_of_a_client_is_covered_as_it_crosses_the_wire(precision: str, others: int) -> None:
    """A client's sum is rounded as a whole: by a half of 1 in 16 bits where it has 1,800 users."""
    method = FedEase(FedEase.Settings(scale="user", precision=precision))

    def sent(last: list[int]) -> Any:
        lists = [[0, 1]] * others + [last]
        train = Ragged(offsets(np.array([len(own) for own in lists])), np.concatenate(lists).astype(np.int32))
        keys = np.zeros(len(lists), np.uint64)
        block = Block(4, np.arange(1), keys[:1], np.array([0, len(lists)]), keys, train, train)
        received = Weights(np.zeros((4, 4), np.float32), np.zeros(1, np.uint8))
        upload = method.local_update(NothingPrivate(), received, block, Keys(0, 1)).upload
        return wire.rounded(upload, wire.Form.of(method.settings)).pairs.dense()[0].astype(np.float64)

    fields = method.sum_fields(method.start_server(World("w", 4, others + 1, 1), Keys(0, 0)), others + 1)
    norms, nonnegative = norms_of(fields, method.settings, method.contribution(), users=others + 1)
    moved = max(np.linalg.norm(sent([0, 1]) - sent(other)) for other in ([2], [2, 3]))
    assert moved <= norms["pairs",] * spread("replace", nonnegative)


def test_a_small_clip_in_few_bits_is_covered() -> None:
    """The least numbers of 16 bits are rounded by a fixed amount: here by a third of what they are."""
    numbers = np.full(1000, 1.51 * 2.0**-24)
    settings = PrivacySettings(clip=float(np.linalg.norm(numbers)), precision="float16")
    norms, _ = norms_of({"a": SumField((1000,))}, settings, None, users=1)
    crossed = numbers.astype(np.float16).astype(np.float64)
    assert np.linalg.norm(crossed) == pytest.approx(2 / 1.51 * settings.clip)
    assert np.linalg.norm(crossed) <= norms["a",]


def plan_of(found: SumNoise, fields: dict[str, SumField], members: int, dropout: float, colluding: float) -> Plan:
    layout = layout_of(
        fields, PrivacySettings(clip=1.0), users=1, clients=1, summands=40, noise=found.noise, bits=found.bits
    )
    rules = neighbourhood(members, dropout, colluding).rules
    return Plan.of("run", 1, [f"{i:02d}" for i in range(members)], layout, rules)


@pytest.mark.parametrize("gone", [0, 1])
def test_the_sum_has_the_stated_noise_when_the_allowed_share_is_gone(gone: int) -> None:
    """Dropout counted the noises of all; now those of the fewest that a sum can have, less those who collude."""
    fields = {"a": SumField((4000,))}
    found = planned(fields, PrivacySettings(clip=1.0))
    plan = plan_of(found, fields, 30, 0.2, 0.1)
    guard = NoiseGuard(0.1, lambda: Stream.named(next(numbers), "noise"))
    numbers = iter(range(1000))
    least = plan.rules.least_survivors
    honest = noisy_summands(30, least, 0.1) if gone else 30
    zero = {"a": np.zeros(4000), "loss": np.array(7.0)}
    total = np.sum([vector_of(plan, zero, guard) for _ in range(honest)], axis=0)
    sums = plan.layout.decode(total)
    stated, drawn = found.noise["a"], float(sums["a"].std())
    error = 5 / sqrt(2 * 4000)
    assert drawn >= stated * (1 - error)
    assert drawn == pytest.approx(stated * sqrt(honest / noisy_summands(30, least, 0.1)), rel=error)
    assert abs(sums["a"].mean()) < 5 * drawn / sqrt(4000)
    assert float(sums["loss"]) == 0  # losses stay at home
    assert noise_in_total(found, {plan: honest}, 0.1)["a"] == pytest.approx(drawn, rel=error)


def test_the_simulators_one_draw_is_the_sum_of_all_shares() -> None:
    fields = {"a": SumField((4000,))}
    found = planned(fields, PrivacySettings(clip=1.0))
    plan = plan_of(found, fields, 30, 0.2, 0.1)
    guard = SimulatedGuard(0.1, seed=3)
    guard.survivors = {plan.digest: 27}
    first, rest = guard.noise(plan), guard.noise(plan)
    assert rest is None
    assert first is not None
    drawn = float(plan.layout.decode(first)["a"].std())
    assert drawn == pytest.approx(noise_in_total(found, {plan: 27}, 0.1)["a"], rel=5 / sqrt(8000))


def test_a_run_states_what_it_spends_and_what_is_outside() -> None:
    given: dict[str, Any] = {"secure": True, "epsilon": 4.0, "delta": 1e-6, "dropout": 0.05, "secure_dropout": 0.3}
    result = fedrec.run("fedease", data=WORLD, **given).json
    card = result["privacy_card"]
    assert 3.9 < card["epsilon"] <= 4.0
    assert (card["delta"], card["unit"]) == (1e-6, "user")
    assert card["adjacency"].startswith("replace")
    assert "metric sums" in card["not_covered"][0]
    assert f"at least {result['secure']['smallest_cohort']} clients" in card["trust"]
    assert json.loads(json.dumps(card)) == card
    assert "epsilon" in result["privacy"]


def test_the_card_states_the_noise_of_the_sums_that_were_made(tmp_path: Path) -> None:
    """It said how many had to be honest in round 1 as planned, more than were in the sums that were repeated."""
    given: dict[str, Any] = {"secure": True, "epsilon": 4.0, "dropout": 0.5, "settings": {"dim": 2, "epochs": 1}}
    result = fedrec.run("fedavg", rounds=4, **given).json
    found = re.search(r"sums of at least (\d+) clients .* complete if (\d+) of", result["privacy_card"]["trust"])
    assert found is not None
    smallest, honest = map(int, found.groups())
    assert smallest == result["secure"]["smallest_cohort"]
    assert smallest >= honest > smallest / 2

    def stop(record: Any, progress: Any) -> None:
        if record.round == 3:
            raise KeyboardInterrupt

    settings = resolve("fedavg", {"rounds": 4, "checkpoint_seconds": 0.0, **given})
    with pytest.raises(KeyboardInterrupt):
        execute(settings, tmp_path / "run", stop)
    assert resume(tmp_path / "run").json["privacy_card"]["trust"] == result["privacy_card"]["trust"]


@pytest.mark.parametrize("epsilon", [1e-6, 1e9])
@pytest.mark.parametrize("secure", [True, False])
def test_a_budget_far_out_warns_of_nothing(epsilon: float, secure: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        own = {"dim": 2, "epochs": 1}
        fedrec.run("fedavg", data=WORLD, rounds=1, secure=secure, epsilon=epsilon, settings=own)


def test_without_secure_sums_no_figure_counts_on_them() -> None:
    own = {"dim": 2, "epochs": 1, "clip": 1.0, "noise": 2.0, "noise_kind": "gaussian"}
    made = {
        dropout: fedrec.run("fedavg", data=WORLD, rounds=3, dropout=dropout, settings=own).json["privacy_card"]
        for dropout in (0.0, 0.9)
    }
    assert made[0.0]["epsilon"] == made[0.9]["epsilon"]
    alone = of_uploads(
        PrivacySettings(**{k: v for k, v in own.items() if k in PrivacySettings.model_fields}),
        releases=3, coordinates=50, contribution=None, unprotected=("sizes",),
    )  # fmt: skip
    assert made[0.0] == repeatable(alone).as_dict()
    assert made[0.0]["not_covered"][-1].startswith("anything, against those who have the run's files")
    assert [part for part in alone.not_covered if "sizes" in part or "losses" in part or "metric" in part] == list(
        alone.not_covered[:3]
    )


def test_the_most_rounds_of_a_client_are_counted() -> None:
    keys = np.arange(40, dtype=np.uint64)
    share = Participation(0.25)
    counts = np.zeros(40, int)
    for number in range(1, 31):
        counts[share.choose(5, number, keys)] += 1
    assert most_rounds(share, 5, 30, keys) == counts.max() < 30
    assert most_rounds(Participation(), 5, 30, keys) == 30


def test_trained_methods_take_a_budget_too() -> None:
    given: dict[str, Any] = {"rounds": 3, "settings": {"dim": 2, "epochs": 1}, "secure": True, "epsilon": 8.0}
    prepared = prepare(resolve("fedavg", {"data": WORLD, **given}))
    runtime = prepared.runtime
    assert isinstance(runtime, PrivateSimulator)
    assert runtime.summed is not None
    assert runtime.summed.releases == 3
    assert prepared.method.settings.clip == 1.0
    runtime.round(1, np.arange(30), np.arange(30), False)
    assert np.isfinite(runtime.server.items).all()


@pytest.mark.parametrize(("method", "charges"), [("fedavg", 2), ("fedease", 1)])
def test_the_participants_own_ledgers_state_what_the_card_does(method: str, charges: int) -> None:
    given: dict[str, Any] = {"rounds": 2, "secure": True, "epsilon": 8.0, "evaluate_every": 2}
    if method == "fedavg":
        given["settings"] = {"dim": 2, "epochs": 1}
    settings = resolve(method, {"data": WORLD, **given})

    first, second = prepare(settings), prepare(settings)

    def after(number: int, prepared: Any) -> Any:
        prepared.runtime.round(number, np.arange(30), np.arange(30), False)
        return card_of(settings, prepared.method, [], prepared.runtime)

    half = after(1, first)
    second.runtime.restore(first.runtime.snapshot())
    card, resumed = after(2, first), after(2, second)
    assert card.ledger["charges"] == charges
    assert card.ledger["epsilon"] == pytest.approx(card.epsilon, rel=1e-6)
    assert f"ledger       epsilon {card.epsilon:.4g} at delta 1e-06" in "\n".join(card.lines())
    assert half.ledger["epsilon"] < card.epsilon if charges > 1 else half.ledger == card.ledger
    assert resumed.ledger["charges"] == charges  # rounds before another process went on are counted
    assert resumed.ledger["epsilon"] == pytest.approx(card.epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        ("ease", {}, "all histories are collected"),
        ("fedavg", {"settings": {"noise": 0.1}}, "leave --set noise out"),
        ("fedavg", {"settings": {"compress": "int8"}}, "leave --set compress out"),
    ],
)
def test_what_does_not_go_with_a_budget_is_refused(method: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        resolve(method, {"data": WORLD, "epsilon": 1.0, **given})


@pytest.mark.parametrize("given", [{}, {"participation": 0.5, "rest": True}])
def test_the_card_of_a_local_budget_states_the_budget(given: dict[str, Any]) -> None:
    """Who rests every other round was noised for half of the rounds, and the card counted all of them."""
    own = {"dim": 2, "epochs": 1}
    settings = resolve("fedavg", {"data": WORLD, "rounds": 5, "epsilon": 8.0, "settings": own, **given})
    prepared = prepare(settings)
    keys, chosen = prepared.people.block.client_keys, Participation(settings.participation, settings.rest)
    counts = np.zeros(len(keys), int)
    for number in range(1, 6):
        counts[chosen.choose(settings.seed, number, keys)] += 1
    assert counts.max() == chosen.most(5) == (3 if given else 5)
    deviations = settings.settings["noise"] / (2 * settings.settings["clip"] * sqrt(counts.max()))
    assert get_epsilon_gaussian(deviations, 1e-6) == pytest.approx(8.0, rel=1e-6)  # of the client who is there most
    card = fedrec.run("fedavg", data=WORLD, rounds=5, epsilon=8.0, settings=own, **given).json["privacy_card"]
    assert card["epsilon"] == pytest.approx(8.0, rel=1e-6)


def test_the_unit_is_what_is_bounded() -> None:
    """``fedease`` bounds what one user adds: of a client with several users the whole was said to be covered."""
    unit = {
        clip: fedrec.run("fedease", data=WORLD, clients=5, epsilon=8.0, settings={"clip": clip}).json["privacy_card"]
        for clip in (0.0, 1.0)
    }
    assert unit[0.0]["unit"] == "user"
    assert unit[0.0]["sensitivity"] == pytest.approx(sqrt(2))  # one user replaced
    assert unit[1.0]["unit"] == "user (all that one client holds)"
    assert unit[1.0]["sensitivity"] == pytest.approx(2)  # a whole client replaced


@pytest.mark.parametrize("method", ["fedspectral", "fedelsa", "fcf"])
def test_users_of_a_client_take_no_noise_of_their_own_where_nothing_is_weighed(method: str) -> None:
    """The clip bounds all that a client adds; ``fedspectral`` noised it once more for each of its users."""
    settings = resolve(method, {"data": WORLD, "clients": 3, "secure": True, "epsilon": 8.0, "rounds": 1})
    prepared = prepare(settings)
    assert isinstance(prepared.method, Method)
    runtime, clip = prepared.runtime, prepared.method.settings.clip
    assert runtime.most_users == 10
    fields = prepared.method.sum_fields(runtime.server, 10)
    for work in runtime.work(np.arange(3), Keys(0, 1), False, Tally()):
        summands = prepared.method.summands(work.reply.upload, work.download)
        for client in range(len(work.loss)):
            own = sum(float(np.linalg.norm(one.of(client))) ** 2 for one in summands.values())
            assert sqrt(own) <= clip * (1 + 1e-6)
    assert sum(norm**2 for norm in runtime.summed.norms.values()) == pytest.approx(clip**2, rel=1e-6)
    plain = bound_of(fields[next(iter(fields))], prepared.method.settings.model_copy(update={"clip": 0.0}), 10)
    assert plain >= FREE * 10


@pytest.mark.parametrize("block_clients", [1, 30])
def test_the_client_that_sends_most_is_the_one_that_is_accounted_for(block_clients: int) -> None:
    """Laplace noise hides an L2 bound by the root of an upload's numbers: those of the first block were taken."""
    own = {"dim": 2, "epochs": 1, "clip": 1.0, "noise": 50.0}
    prepared = prepare(resolve("fedfast", {"data": WORLD, "settings": own}))
    made, sizes = prepared.runtime, prepared.people.block.sizes
    assert isinstance(prepared.method, Method)
    sim = Simulator(prepared.method, prepared.people, prepared.task, 0, block_clients=block_clients)
    few = np.argsort(sizes)[:10]  # a round of those with short histories says no less
    sim.round(1, np.sort(few), np.sort(few), False)
    assert sizes[few].max() < sizes.max()
    numbers = 2 * (made.people.world.n_items + int(sizes.max()))  # the item table, and a row for each interaction
    assert sim.exposure == (numbers, ("sizes", "tickets"))


def test_local_noise_follows_from_the_budget() -> None:
    settings = resolve("fedavg", {"data": WORLD, "rounds": 10, "epsilon": 8.0, "settings": {"dim": 2}})
    chosen = PrivacySettings(**{k: v for k, v in settings.settings.items() if k in PrivacySettings.model_fields})
    card = of_uploads(chosen, releases=10, coordinates=50, contribution=None, unprotected=())
    assert card.epsilon == pytest.approx(8.0, rel=1e-4)

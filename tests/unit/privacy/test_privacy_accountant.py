"""Epsilon against closed forms and against dp-accounting's own numbers."""

from __future__ import annotations

from math import exp, inf, sqrt

import dp_accounting
import pytest
from scipy.stats import norm

from fedrec.core.settings import PrivacySettings
from fedrec.core.sums import Contribution
from fedrec.errors import BadInput
from fedrec.privacy.accountant import composed, local, local_noise


def laplace(**given: object) -> PrivacySettings:
    return PrivacySettings(**{"clip": 1.0, "clip_norm": "l1", "noise": 2.0, **given})


def gaussian(**given: object) -> PrivacySettings:
    return PrivacySettings(**{"clip": 1.0, "noise": 4.0, "noise_kind": "gaussian", **given})


def test_one_laplace_round_is_two_clip_over_b() -> None:
    found = local(laplace(clip=0.5, noise=0.1), releases=1, coordinates=1000)
    assert found.epsilon == pytest.approx(2 * 0.5 / 0.1)
    assert found.delta == 0
    assert found.unit == "user"
    assert "epsilon 10 (pure) over 1 round" in found.statement


def test_few_laplace_rounds_add_up_and_many_cost_less() -> None:
    assert local(laplace(noise=20.0), releases=2, coordinates=9).epsilon == pytest.approx(2 * 0.1)
    many = local(laplace(noise=20.0), releases=1000, coordinates=9)
    assert many.delta == 1e-5
    assert many.epsilon < 1000 * 0.1
    # Renyi divergence of order a of Laplace noise is at most a * (shift / b)^2 / 2, as for a Gaussian
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(10 / sqrt(1000)))
    assert many.epsilon <= accountant.get_epsilon(1e-5) * 1.001


def test_an_l2_clip_under_laplace_noise_pays_the_root_of_the_dimension() -> None:
    found = local(laplace(clip_norm="l2", noise=8.0), releases=1, coordinates=16)
    assert found.epsilon == pytest.approx(2 * 4 / 8.0)
    assert "sqrt(16)" in found.statement


def test_one_gaussian_round_is_exact_and_within_dp_accountings_bounds() -> None:
    found = local(gaussian(), releases=1, coordinates=5)
    z = 4.0 / 2.0  # sensitivity 2 * clip
    # Balle and Wang: delta = Phi(1/2z - eps z) - e^eps Phi(-1/2z - eps z)
    delta = norm.cdf(0.5 / z - found.epsilon * z) - exp(found.epsilon) * norm.cdf(-0.5 / z - found.epsilon * z)
    assert delta == pytest.approx(1e-5, rel=1e-6)
    renyi = dp_accounting.rdp.RdpAccountant()
    renyi.compose(dp_accounting.GaussianDpEvent(z))
    assert found.epsilon <= renyi.get_epsilon(1e-5) <= found.epsilon * 1.15
    losses = dp_accounting.pld.PLDAccountant()
    losses.compose(dp_accounting.GaussianDpEvent(z))
    assert losses.get_epsilon(1e-5) == pytest.approx(found.epsilon, rel=1e-3)


def test_gaussian_rounds_compose_as_dp_accounting_says() -> None:
    found, _ = composed("gaussian", 2.0, 20.0, 16, 1e-5)
    losses = dp_accounting.pld.PLDAccountant()
    losses.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(10.0), 16))
    assert found == pytest.approx(losses.get_epsilon(1e-5), rel=1e-3)


def test_an_l1_clip_serves_gaussian_noise() -> None:
    fits = local(gaussian(clip_norm="l1"), releases=3, coordinates=5)
    assert fits.epsilon == local(gaussian(), releases=3, coordinates=5).epsilon
    assert "L1 clip" in fits.statement


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no noise, no guarantee"),
        ({"clip": 1.0}, "no noise, no guarantee"),
        ({"noise": 0.1}, "noise without a guarantee"),
    ],
)
def test_no_guarantee_is_called_so(given: dict[str, float], words: str) -> None:
    found = local(PrivacySettings(**given), releases=5, coordinates=10)
    assert found.epsilon == inf
    assert not found.holds
    assert words in found.statement


def test_noise_for_a_budget_reaches_it_and_no_more() -> None:
    for clip, contribution in ((2.0, None), (0.0, Contribution(1.0, nonnegative=True))):
        noise = local_noise(4.0, 1e-6, releases=9, clip=clip, contribution=contribution)
        chosen = PrivacySettings(clip=clip, noise=noise, noise_kind="gaussian", delta=1e-6)
        found = local(chosen, releases=9, coordinates=5, contribution=contribution)
        assert found.epsilon <= 4.0
        assert found.epsilon == pytest.approx(4.0, rel=1e-4)
    with pytest.raises(BadInput, match="nothing is clipped"):
        local_noise(4.0, 1e-6, releases=1, clip=0.0)


def test_fields_that_leave_as_they_are_are_named() -> None:
    found = local(gaussian(), releases=2, coordinates=5, unprotected=("weight",))
    assert "not covered, sent as they are: weight" in found.statement
    with pytest.raises(BadInput, match="at least 1"):
        local(gaussian(), releases=0, coordinates=5)


def test_a_statement_is_one_line() -> None:
    for settings in (laplace(), gaussian(), laplace(clip_norm="l2"), PrivacySettings(noise=1)):
        assert "\n" not in local(settings, releases=100, coordinates=26912).statement

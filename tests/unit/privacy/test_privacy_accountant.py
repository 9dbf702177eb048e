"""Epsilon against closed forms and against dp-accounting's own numbers."""

from __future__ import annotations

from math import exp, inf, sqrt
from typing import Any

import dp_accounting
import pytest
from scipy.stats import norm

from fedrec.core.settings import PrivacySettings
from fedrec.errors import BadInput
from fedrec.privacy.accountant import account, central, composed, local


def laplace(**given: object) -> PrivacySettings:
    return PrivacySettings(**{"clip": 1.0, "clip_norm": "l1", "noise": 2.0, **given})


def gaussian(**given: object) -> PrivacySettings:
    return PrivacySettings(**{"clip": 1.0, "noise": 4.0, "noise_kind": "gaussian", **given})


def test_one_laplace_round_is_two_clip_over_b() -> None:
    found = local(laplace(clip=0.5, noise=0.1), rounds=1, coordinates=1000)
    assert found.epsilon == pytest.approx(2 * 0.5 / 0.1)
    assert found.delta == 0
    assert found.unit == "user"
    assert "epsilon 10 (pure) over 1 round" in found.statement


def test_few_laplace_rounds_add_up_and_many_cost_less() -> None:
    assert local(laplace(noise=20.0), rounds=2, coordinates=9).epsilon == pytest.approx(2 * 0.1)
    many = local(laplace(noise=20.0), rounds=1000, coordinates=9)
    assert many.delta == 1e-5
    assert many.epsilon < 1000 * 0.1
    # Renyi divergence of order a of Laplace noise is at most a * (shift / b)^2 / 2, as for a Gaussian
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(10 / sqrt(1000)))
    assert many.epsilon <= accountant.get_epsilon(1e-5) * 1.001


def test_an_l2_clip_under_laplace_noise_pays_the_root_of_the_dimension() -> None:
    found = local(laplace(clip_norm="l2", noise=8.0), rounds=1, coordinates=16)
    assert found.epsilon == pytest.approx(2 * 4 / 8.0)
    assert "sqrt(16)" in found.statement


def test_one_gaussian_round_is_exact_and_within_dp_accountings_bounds() -> None:
    found = local(gaussian(), rounds=1, coordinates=5)
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
    fits = local(gaussian(clip_norm="l1"), rounds=3, coordinates=5)
    assert fits.epsilon == local(gaussian(), rounds=3, coordinates=5).epsilon
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
    found = account(PrivacySettings(**given), rounds=5, coordinates=10, sum_suffices=True, clients=4)
    assert found.local.epsilon == inf
    assert not found.local.holds
    assert words in found.local.statement
    assert found.central is not None
    assert words in found.central.statement


def test_central_noise_of_n_clients_adds_up() -> None:
    together = central(gaussian(), rounds=7, coordinates=5, clients=9)
    assert together.epsilon == pytest.approx(local(gaussian(noise=12.0), rounds=7, coordinates=5).epsilon)
    assert "secure aggregation" in together.statement


def test_central_laplace_claims_the_local_guarantee_only() -> None:
    together = central(laplace(), rounds=3, coordinates=5, clients=100)
    assert together.epsilon == local(laplace(), rounds=3, coordinates=5).epsilon
    assert "not Laplace" in together.statement


def test_only_a_secret_cohort_of_fixed_size_amplifies() -> None:
    given: dict[str, Any] = {"rounds": 20, "coordinates": 5, "clients": 10, "population": 1000}
    known = central(gaussian(), **given)
    assert central(gaussian(), sampling="poisson", **given).epsilon == known.epsilon
    secret = central(gaussian(), sampling="fixed", **given)
    assert secret.epsilon < known.epsilon / 2
    assert "10 out of 1,000" in secret.statement


def test_account_gives_a_central_guarantee_only_where_a_sum_suffices() -> None:
    both = account(gaussian(), rounds=2, coordinates=5, sum_suffices=True, clients=4, unprotected=("weight",))
    assert both.central is not None
    assert both.central.epsilon < both.local.epsilon
    assert "not covered, sent as they are: weight" in both.local.statement
    assert account(gaussian(), rounds=2, coordinates=5).central is None
    with pytest.raises(BadInput, match="at least 1"):
        account(gaussian(), rounds=0, coordinates=5)


def test_a_statement_is_one_line() -> None:
    for settings in (laplace(), gaussian(), laplace(clip_norm="l2"), PrivacySettings(noise=1)):
        found = account(settings, rounds=100, coordinates=26912, sum_suffices=True, clients=943)
        assert found.central is not None
        assert "\n" not in found.local.statement + found.central.statement

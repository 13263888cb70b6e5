"""The figures that warnings are made of, against ArviZ's."""

import arviz
import numpy as np
import pytest

from pcbatch.nuts.results import diagnostics

RNG = np.random.default_rng(7)
DRAWS = {
    "independent": RNG.normal(size=(4, 50, 2, 3)),
    "odd number": RNG.normal(size=(3, 31)),
    "apart": RNG.normal(size=(4, 40, 2)) + np.arange(4.0)[:, None, None],
    "of other spreads": RNG.normal(size=(4, 40)) * np.arange(1.0, 5.0)[:, None],
    "with ties": RNG.integers(0, 3, size=(4, 40)).astype(float),
    "some of them equal": RNG.integers(-60, 60, size=(4, 40, 3)).astype(np.float32),
    "long": RNG.normal(size=(8, 2000, 3)).astype(np.float32),
}


@pytest.mark.parametrize("draws", DRAWS.values(), ids=DRAWS)
def test_r_hat(draws):
    found = diagnostics.r_hat(draws)
    assert found.shape == draws.shape[2:]
    numbers = np.moveaxis(draws.reshape(*draws.shape[:2], -1), -1, 0)
    expected = [float(arviz.rhat(x, method="rank")) for x in numbers]
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-8)  # ArviZ 1 sums some of float32 draws in float32


def test_r_hat_of_nothing_to_compare():
    assert np.isnan(diagnostics.r_hat(np.ones((4, 3, 2)))).all()
    assert np.isnan(diagnostics.r_hat(np.ones((4, 10, 2)))).all()
    assert diagnostics.r_hat(np.ones((4, 10, 0, 2))).shape == (0, 2)


def test_r_hat_of_chains_that_stand_still():
    apart = np.repeat(np.array([-1.0, 1.0, 1.5, 7.0])[:, None], 30, axis=1)
    assert diagnostics.r_hat(apart) == np.inf
    assert diagnostics.r_hat(apart[:2]) == np.inf  # at the same distance from the median
    apart[3] = RNG.normal(size=30)
    assert 1.5 < diagnostics.r_hat(apart) < np.inf


def test_energy_fractions():
    energy = np.cumsum(RNG.normal(size=(3, 200)), axis=1)
    energy[0] = RNG.normal(size=200)
    found = diagnostics.energy_fractions(energy)
    np.testing.assert_allclose(found, np.asarray(arviz.bfmi(energy)).reshape(-1), rtol=1e-9)
    assert found[0] > 1 > 0.3 > found[1:].max()
    assert np.isnan(diagnostics.energy_fractions(np.ones((2, 5)))).all()


def test_nested_r_hat_is_that_of_its_definition():
    draws = np.random.default_rng(1).normal(size=(12, 5, 2)) + np.repeat([0.0, 1.0, -1.0], 4)[:, None, None]
    found = diagnostics.nested_r_hat(draws, 3)
    for k in range(2):
        groups = draws[..., k].reshape(3, 4, 5)
        between = np.var(groups.mean(axis=(1, 2)), ddof=1)
        within = np.mean([np.var(g.mean(axis=1), ddof=1) + np.var(g, axis=1, ddof=1).mean() for g in groups])
        np.testing.assert_allclose(found[k], np.sqrt(1 + between / within))


@pytest.mark.parametrize("count", [1, 20])
def test_nested_r_hat_without_chance_is_near_one_only_where_groups_agree(count):
    draws = np.random.default_rng(2).normal(size=(512, count))
    apart = draws + np.repeat(np.linspace(-1, 1, 16), 32)[:, None]
    assert diagnostics.nested_r_hat(draws, 16, chance=False) < 1.01
    assert diagnostics.nested_r_hat(draws, 16) < np.sqrt(1 + 2 / 32)
    assert diagnostics.nested_r_hat(apart, 16, chance=False) > 1.1
    assert np.isnan(diagnostics.nested_r_hat(draws, 1))
    assert np.isnan(diagnostics.nested_r_hat(draws, 512))

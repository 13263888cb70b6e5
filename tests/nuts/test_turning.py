"""The U-turn criterion, and the momenta of a stretch of trajectory that it is asked of."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.nuts.kernel import u_turn
from pcbatch.nuts.kernel.u_turn import FIRST, LAST, SUM, joined, momenta_at, reversed_if

METRICS = pytest.mark.parametrize(
    "inverse_mass",
    [np.ones(3), np.array([0.5, 2.0, 1.3]), np.array([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.7]])],
    ids=["unit", "diagonal", "dense"],
)


def stretch(*momenta):
    """The momenta of a stretch, point by point."""
    points = [momenta_at(tf.constant(each, tf.float64)) for each in momenta]
    whole = points[0]
    for point in points[1:]:
        whole = joined(whole, point)
    return whole


def turns(before, after, inverse_mass=None, ends=0.0):
    """Whether two stretches turn; the metric is the unit matrix unless another is given."""
    inverse_mass = np.ones(before.shape[1]) if inverse_mass is None else inverse_mass
    return bool(u_turn.turning_by(ends, tf.constant(inverse_mass), before, after))


def turns_in_stan(inverse_mass, before, after, ends=0.0):
    """Stan's `compute_criterion` for two stretches of momenta, point by point, and across the seam.

    `ends` of both ends is left out of a sum, a half in NumPyro and BlackJAX.
    """
    inverse = np.diag(inverse_mass) if np.ndim(inverse_mass) == 1 else np.asarray(inverse_mass)

    def straight(first, last, rho):
        rho = rho - ends * (first + last)
        return (inverse @ first) @ rho > 0 and (inverse @ last) @ rho > 0

    return not (
        straight(before[0], after[-1], before.sum(0) + after.sum(0))
        and straight(before[0], after[0], before.sum(0) + after[0])
        and straight(before[-1], after[-1], before[-1] + after.sum(0))
    )


def test_stretches_joined():
    points = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_array_equal(stretch(points[0]), [points[0]] * 3)
    whole = joined(stretch(*points[:2]), stretch(*points[2:]))
    np.testing.assert_allclose(whole[SUM], points.sum(0), rtol=1e-14)
    np.testing.assert_array_equal(whole[FIRST], points[0])
    np.testing.assert_array_equal(whole[LAST], points[-1])


def test_an_end_that_is_no_number_stays_at_its_end():
    whole = joined(stretch([1.0, np.inf]), stretch([np.nan, 2.0]))
    np.testing.assert_array_equal(whole, [[np.nan, np.inf], [1.0, np.inf], [np.nan, 2.0]])


def test_the_way_back():
    points = np.random.default_rng(1).normal(size=(3, 2))
    np.testing.assert_allclose(reversed_if(True, stretch(*points)), stretch(*points[::-1]), rtol=1e-14)
    np.testing.assert_array_equal(reversed_if(False, stretch(*points)), stretch(*points))


@METRICS
@pytest.mark.parametrize("ends", [0.0, 0.25, 0.5])
def test_turning_is_stans_criterion(inverse_mass, ends):
    random = np.random.default_rng(6)
    found = []
    for _ in range(100):
        before, after = (random.normal(size=(random.integers(1, 4), 3)) + 0.7 for _ in range(2))
        found.append(turns(stretch(*before), stretch(*after), inverse_mass, ends))
        assert found[-1] == turns_in_stan(inverse_mass, before, after, ends)
    assert 20 < sum(found) < 95


@pytest.mark.parametrize("ends", [0.0, 0.4])
@pytest.mark.parametrize("lengths", [(1, 1), (4, 4)])
def test_turning_is_the_same_there_and_back(lengths, ends):
    random = np.random.default_rng(7)
    for _ in range(50):
        before, after = (stretch(*random.normal(size=(length, 3)) + 0.7) for length in lengths)
        there = turns(before, after, ends=ends)
        assert there == turns(reversed_if(True, after), reversed_if(True, before), ends=ends)


@pytest.mark.parametrize("leapfrogs", [1, 4])
def test_what_is_left_out_of_the_ends(leapfrogs):
    """Points that are several steps apart: the sum exceeds the trapezoidal rule's by as many steps."""
    for end_weight in (0.5, 0.75, 1.0):
        momenta = np.linspace(1.0, 2.0, 8 * leapfrogs + 1)
        trapezoid = momenta.sum() - (momenta[0] + momenta[-1]) / 2
        coarse = momenta[::leapfrogs]
        rho = coarse.sum() - u_turn.left_out(end_weight, leapfrogs) * (coarse[0] + coarse[-1])
        excess = (end_weight - 0.5) * (momenta[0] + momenta[-1])
        np.testing.assert_allclose(leapfrogs * rho, trapezoid + excess, rtol=1e-12)


def test_turning_looks_at_both_ends():
    assert not turns(stretch([1.0, 0.0]), stretch([1.0, 0.5]))
    assert turns(stretch([1.0, 0.0], [5.0, 0.0]), stretch([5.0, 0.0], [-3.0, 0.5]))
    assert turns(stretch([-3.0, 0.5], [5.0, 0.0]), stretch([5.0, 0.0], [1.0, 0.0]))


@pytest.mark.parametrize("place", range(4))
def test_a_momentum_that_is_no_number_counts_as_turning(place):
    points = np.ones((4, 2))
    assert not turns(stretch(*points[:2]), stretch(*points[2:]))
    points[place, 1] = np.nan
    assert turns(stretch(*points[:2]), stretch(*points[2:]))


def test_turning_is_seen_across_the_seam():
    # Half a period each: the whole and the halves look straight, the neighbours across the seam do not.
    assert not turns(stretch([1.0], [1.0]), stretch([1.0], [1.0]))
    assert turns(stretch([1.0], [6.0], [1.0]), stretch([-4.0], [6.0], [1.0]))
    assert turns(stretch([1.0], [6.0], [-4.0]), stretch([1.0], [6.0], [1.0]))

"""Constrained parameters: there and back, Jacobians against finite differences, names of structures."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import UsageError, nuts
from pcbatch.nuts.parameters.bijectors import Transform
from pcbatch.nuts.parameters.parameters import layout_of

POINTS = np.array([-1.3, 0.2, 2.5])
BIJECTORS = {"positive": nuts.positive, "interval": nuts.interval(-2, 5), "ordered": nuts.ordered}


@pytest.mark.parametrize("bijector", BIJECTORS.values(), ids=BIJECTORS)
def test_there_and_back(bijector):
    batch = np.random.default_rng(1).normal(size=(2, 4, 3))
    values = bijector.values(batch)
    np.testing.assert_allclose(bijector.forward(tf.constant(batch)), values, rtol=1e-14)
    np.testing.assert_allclose(bijector.inverse(values), batch, rtol=1e-9)


@pytest.mark.parametrize("bijector", BIJECTORS.values(), ids=BIJECTORS)
def test_log_jacobian_is_that_of_finite_differences(bijector):
    def forward(y):
        return np.asarray(bijector.forward(tf.constant(y)))

    columns = [(forward(POINTS + shift) - forward(POINTS - shift)) / 2e-6 for shift in 1e-6 * np.eye(3)]
    expected = np.linalg.slogdet(np.array(columns))[1]
    np.testing.assert_allclose(bijector.log_jacobian(tf.constant(POINTS)), expected, rtol=1e-8, atol=1e-8)


def test_values_are_where_they_may_be():
    values = {name: np.asarray(bijector.forward(tf.constant(POINTS))) for name, bijector in BIJECTORS.items()}
    assert (values["positive"] > 0).all()
    assert ((values["interval"] > -2) & (values["interval"] < 5)).all()
    assert (np.diff(values["ordered"]) > 0).all()


def test_an_interval_keeps_its_jacobian_far_out():
    far = tf.constant([-80.0, 80.0], tf.float64)
    np.testing.assert_allclose(nuts.interval(0, 1).log_jacobian(far), -160.0, rtol=1e-12)


PARAMETERS = {
    "loc": np.array([0.5, -1.0]),
    "scale": {"a": 2.0, "b": np.array([0.25, 4.0])},
    "cuts": np.array([-1, 3.0]),
}


def test_parameters_of_a_structure_are_named():
    transform = Transform.of(layout_of(PARAMETERS), {"scale": nuts.positive, "cuts": nuts.ordered})
    flat = np.array([0.5, -1.0, 2.0, 0.25, 4.0, -1.0, 3.0])
    moved = transform.inverse(flat)
    np.testing.assert_allclose(moved, [0.5, -1.0, np.log(2), np.log(0.25), np.log(4), -1.0, np.log(4)])
    np.testing.assert_allclose(transform.forward(tf.constant(moved)), flat)
    np.testing.assert_allclose(transform.forward(tf.constant([[moved] * 3] * 2)), [[flat] * 3] * 2)
    jacobian = np.log(2) + np.log(0.25) + np.log(4) + np.log(4)
    np.testing.assert_allclose(transform.log_jacobian(tf.constant(moved)), jacobian)


def test_the_nearest_name_decides():
    transform = Transform.of(layout_of(PARAMETERS), {"scale": nuts.positive, "scale.b": nuts.interval(0, 9)})
    assert transform.bijectors == (None, nuts.positive, nuts.interval(0, 9), None)


@pytest.mark.parametrize(
    ("bijectors", "message"),
    [
        ({"tau": nuts.positive}, "names 'tau', and the parameters are loc, scale.a, scale.b, cuts"),
        ({"loc": tf.exp}, "the bijector of 'loc' must be positive, interval"),
        ({"scale": nuts.ordered}, "'scale.a' is a single number"),
    ],
)
def test_bijectors_that_make_no_sense(bijectors, message):
    with pytest.raises(UsageError, match=f"PCB558: .*{message}"):
        Transform.of(layout_of(PARAMETERS), bijectors)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_intervals_that_are_none(ends):
    with pytest.raises(UsageError, match="PCB558: an interval is between two finite numbers"):
        nuts.interval(*ends)


@pytest.mark.parametrize(("name", "bijector"), [("loc", nuts.positive), ("cuts", nuts.interval(0, 4))])
def test_points_outside_are_refused(name, bijector):
    transform = Transform.of(layout_of(PARAMETERS), {name: bijector})
    with pytest.raises(UsageError, match=f"PCB558: the initial '{name}' must be strictly inside"):
        transform.inverse(np.array([0.5, -1.0, 2.0, 0.25, 4.0, -1.0, 3.0]))

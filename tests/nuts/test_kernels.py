"""Both kernels against the plain Python of `reference.py`, trajectory by trajectory, with the same random bits."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import random
from pcbatch.nuts.kernel.algorithm import STATISTICS, multinomial
from pcbatch.nuts.kernel.dynamics import value_and_gradient
from pcbatch.nuts.kernel.metrics import Metric, metric_of
from pcbatch.nuts.kernel.slice import slice_sampler
from tests.nuts import reference
from tests.pairwise import every_second

KERNELS = {"multinomial": (multinomial, reference.stan), "slice": (slice_sampler, reference.algorithm_6)}
METRICS = {
    "diagonal": np.array([0.7, 1.6]),
    "dense": np.array([[1.2, 0.5], [0.5, 0.9]]),
}
DATA = tf.zeros((0,), tf.float64)
LIMIT = 6


def banana(q, data):
    return -0.5 * (q[0] ** 2 + 2.0 * (q[1] - 0.7 * q[0] ** 2) ** 2)


def cliff(q, data):
    """A normal, NaN beyond a wall."""
    return -0.5 * tf.reduce_sum(q**2) + tf.where(q[0] > 1.0, tf.constant(np.nan, tf.float64), 0.0)


def plain(density):
    def value(q):
        return tuple(each.numpy() for each in value_and_gradient(density, tf.constant(q), DATA))

    return value


@pytest.mark.parametrize(
    ("metric", "density", "name"),
    [
        pytest.param(*each, marks=pytest.mark.slow) if each[1:] == (banana, "multinomial") else each
        for each in every_second(METRICS, [banana, cliff], KERNELS)
    ],
)
def test_trajectories_are_those_of_the_plain_algorithm(metric, density, name):
    make, plainly = KERNELS[name]
    kernel = make(density, dimensions=2, dtype=tf.float64, max_tree_depth=LIMIT, leapfrogs_per_leaf=1)
    given = Metric(*map(tf.constant, metric_of(METRICS[metric])))
    q = np.array([0.4, -0.3])
    leaves, diverging = [], []
    for trajectory, step_size in enumerate([0.9, 0.15, 0.4, 0.07, 1.3, 0.25]):
        key = random.fold_in(random.key(12), trajectory)
        lp, g = value_and_gradient(density, tf.constant(q), DATA)
        (end, _, lp, _), row = kernel.transition.single(
            tf.constant(q), g, lp, tf.constant(step_size, tf.float64), given, LIMIT, key, DATA
        )
        found = dict(zip(STATISTICS, row.numpy(), strict=True))
        expected = plainly(plain(density), q, METRICS[metric], step_size, key, LIMIT)
        np.testing.assert_allclose(end, expected[0], rtol=1e-10)
        assert (found["tree_depth"], found["n_leaves"], found["diverging"]) == (expected[1], expected[2], expected[4])
        np.testing.assert_allclose(found["acceptance_rate"], expected[3], rtol=1e-9)
        np.testing.assert_allclose(found["lp"], plain(density)(expected[0])[0], rtol=1e-10)
        leaves.append(found["n_leaves"])
        diverging.append(found["diverging"])
        q = end.numpy()
    assert max(leaves) > 10
    assert any(diverging) or density is banana

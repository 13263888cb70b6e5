"""The recursion itself: its leaves are counted, its results compared with their definition, alone and in a batch."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import random
from pcbatch.nuts.kernel.algorithm import STATISTICS, Walk, multinomial
from pcbatch.nuts.kernel.dynamics import energy_of, value_and_gradient
from pcbatch.nuts.kernel.metrics import Metric
from pcbatch.nuts.kernel.u_turn import FIRST, LAST, SUM, momenta_at

DATA = tf.zeros((0,), tf.float64)
UNIT = Metric(tf.ones(2, tf.float64), tf.ones(2, tf.float64))


def flat(q, data):
    return 0.0 * tf.reduce_sum(q)


def gaussian(q, data):
    precision = tf.constant([[1.5, -0.6], [-0.6, 0.75]], tf.float64)
    return -0.5 * tf.reduce_sum(q * tf.linalg.matvec(precision, q))


def sampler(log_density, max_tree_depth=10, leapfrogs_per_leaf=1):
    return multinomial(
        log_density,
        dimensions=2,
        dtype=tf.float64,
        max_tree_depth=max_tree_depth,
        leapfrogs_per_leaf=leapfrogs_per_leaf,
    )


def single(transition, start, step_size, limit=10, key=3, metric=UNIT):
    return transition.single(*start, tf.constant(step_size, tf.float64), metric, limit, random.key(key), DATA)


def start_at(log_density, q):
    q = tf.constant(q, tf.float64)
    lp, g = value_and_gradient(log_density, q, DATA)
    return q, g, lp


def named(statistics):
    return dict(zip(STATISTICS, np.asarray(statistics).T, strict=True))


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_density_that_never_turns_doubles_to_the_end(depth):
    transition = sampler(flat, max_tree_depth=depth).transition
    _, statistics = single(transition, start_at(flat, [0.0, 0.0]), 0.1, depth)
    found = named(statistics)
    assert (found["tree_depth"], found["n_leaves"], found["diverging"]) == (depth, 2**depth - 1, 0)
    np.testing.assert_allclose(found["acceptance_rate"], 1.0, rtol=1e-15)


def test_leaves_may_be_several_leapfrogs_apart():
    calls = []

    def counting(q, data):
        calls.append(1)
        return flat(q, data)

    transition = sampler(counting, max_tree_depth=3, leapfrogs_per_leaf=4).transition
    _, statistics = single(transition, start_at(flat, [0.0, 0.0]), 0.1, 3)
    assert named(statistics)["n_leaves"] == 7
    assert len(calls) == 28


def test_trajectories_of_such_leaves_are_no_longer():
    """Of 60 scales from 1 to 8; sums over coarse points that count ends in full made them 30 times as long."""
    scales = tf.constant(np.geomspace(1.0, 8.0, 60))

    def wide(q, data):
        return -0.5 * tf.reduce_sum((q / scales) ** 2)

    q = scales * tf.stack([random.normal(random.key(seed), (60,), tf.float64) for seed in range(16)])
    points = q, -q / scales**2, -0.5 * tf.reduce_sum((q / scales) ** 2, axis=1)
    metric = Metric(tf.ones(60, tf.float64), tf.ones(60, tf.float64))
    taken = []
    for leapfrogs in (1, 4):
        kernel = multinomial(wide, dimensions=60, dtype=tf.float64, max_tree_depth=10, leapfrogs_per_leaf=leapfrogs)
        transition = kernel.transition.options(in_axes=(0, 0, 0, None, None, None, 0, None))
        _, statistics = transition(*points, tf.constant(0.7, tf.float64), metric, 10, random.keys(1, 16), DATA)
        taken.append(leapfrogs * named(statistics)["n_leaves"].mean())
    assert taken[1] < 2 * taken[0]


def test_a_diverging_leaf_ends_the_trajectory():
    def steep(q, data):
        return -1e6 * tf.reduce_sum(q**4)

    q, g, lp = start_at(steep, [1.0, -1.0])
    (end, *_), statistics = single(sampler(steep).transition, (q, g, lp), 1.0)
    found = named(statistics)
    assert (found["diverging"], found["n_leaves"], found["tree_depth"]) == (1, 1, 0)
    np.testing.assert_array_equal(end, q)


def test_a_subtree_that_turns_is_left_at_once():
    # With a step of more than half a period the first doubling inside a tree turns: no later leaf is visited.
    build_tree = sampler(gaussian).build_tree
    q, g, lp = start_at(gaussian, [1.0, 2.0])
    p = tf.constant([0.4, -0.3], tf.float64)
    energy_0 = energy_of(UNIT.inverse, p, lp)
    walk = build_tree.single(
        5, start_of(q, p, g, lp), tf.constant(1.2, tf.float64), UNIT.inverse, energy_0, random.key(0), DATA
    )
    assert bool(walk.stop)
    assert float(walk.tally[1]) < 32


def start_of(q, p, g, lp):
    """A walk that has not begun."""
    nothing = tf.constant(-np.inf, tf.float64)
    tally = tf.zeros((3,), tf.float64)
    place = tf.stack([q, g])
    return Walk(place, momenta_at(p), (place, lp, lp), nothing, tally, stop=tf.constant(False))


def tree_of(depth, keys, log_density=gaussian, step=0.05):
    """The walk behind a tree of 2^depth leaves for each of `keys`."""
    build_tree = sampler(log_density).build_tree
    q, g, lp = start_at(log_density, [0.5, -0.2])
    p = tf.constant([0.3, 1.0], tf.float64)
    energy_0 = energy_of(UNIT.inverse, p, lp)
    batched = build_tree.options(in_axes=(None, None, None, None, None, 0, None))
    return batched(depth, start_of(q, p, g, lp), tf.constant(step, tf.float64), UNIT.inverse, energy_0, keys, DATA)


def leaves_of(count, log_density=gaussian, step=0.05):
    """Positions, momenta and log weights of the leaves of `tree_of`."""
    (q, g, lp), p = start_at(log_density, [0.5, -0.2]), tf.constant([0.3, 1.0], tf.float64)
    energy_0 = energy_of(UNIT.inverse, p, lp)
    positions, momenta, weights = [], [], []
    for _ in range(count):
        p = p + 0.5 * step * g
        q = q + step * p
        lp, g = value_and_gradient(log_density, q, DATA)
        p = p + 0.5 * step * g
        positions.append(q.numpy())
        momenta.append(p.numpy())
        weights.append(float(energy_0 - energy_of(UNIT.inverse, p, lp)))
    return np.array(positions), np.array(momenta), np.array(weights)


def test_a_tree_is_the_sum_of_its_leaves():
    walk = tree_of(3, random.keys(0, 1))
    positions, momenta, weights = leaves_of(8)
    assert not bool(walk.stop[0])
    np.testing.assert_allclose(walk.place[0, 0], positions[-1], rtol=1e-12)
    np.testing.assert_allclose(walk.momenta[0, SUM], np.sum(momenta, axis=0), rtol=1e-12)
    np.testing.assert_allclose(walk.momenta[0, FIRST], momenta[0], rtol=1e-12)
    np.testing.assert_allclose(walk.momenta[0, LAST], momenta[-1], rtol=1e-12)
    np.testing.assert_allclose(walk.log_weight[0], np.logaddexp.reduce(weights), rtol=1e-12)
    np.testing.assert_allclose(walk.tally[0], [np.minimum(1, np.exp(weights)).sum(), 8, 0], rtol=1e-12)


@pytest.mark.slow
def test_a_tree_proposes_its_leaves_in_proportion_to_their_weights():
    def quartic(q, data):
        return -tf.reduce_sum(q**4)

    trees, step = 20_000, 0.66
    proposed = tree_of(2, random.keys(1, trees), quartic, step).proposal[0][:, 0].numpy()
    positions, _, weights = leaves_of(4, quartic, step)
    expected = np.exp(weights) / np.exp(weights).sum()
    assert expected.max() > 1.3 * expected.min()
    distances = np.linalg.norm(proposed[:, np.newaxis] - positions, axis=2)
    assert distances.min(axis=1).max() < 1e-12
    counts = np.bincount(distances.argmin(axis=1), minlength=4)
    chi_squared = np.sum((counts - trees * expected) ** 2 / (trees * expected))
    assert chi_squared < 16.27  # the quantile 0.999 with 3 degrees of freedom; the seed is fixed


@pytest.mark.slow  # chains are compared so in `test_chain.py`
def test_a_batch_of_transitions_equals_them_one_by_one():
    transition = sampler(gaussian, max_tree_depth=5).transition
    rng = np.random.default_rng(5)
    lanes = [start_at(gaussian, point) for point in rng.normal(size=(5, 2))]
    q, g, lp = (tf.stack(column) for column in zip(*lanes, strict=True))
    keys = random.keys(11, 5)
    steps = tf.constant([0.1, 0.2, 0.4, 0.8, 1.1], tf.float64)
    batched = transition.options(in_axes=(0, 0, 0, 0, None, None, 0, None))
    proposals, statistics = batched(q, g, lp, steps, UNIT, 5, keys, DATA)
    for lane in range(5):
        expected = transition.single(*lanes[lane], steps[lane], UNIT, 5, keys[lane], DATA)
        actual = tf.nest.map_structure(lambda array, lane=lane: array[lane], (proposals, statistics))
        tf.nest.map_structure(
            lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12), actual, expected
        )

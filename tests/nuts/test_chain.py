"""Whole chains in one program: warm-up, counts, stretches, and chains that know nothing of each other."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import LaneStatus, random
from pcbatch.nuts.adaptation.adaptation import (
    AHEAD,
    CLOSE,
    GATHER,
    LAST,
    READY,
    START,
    START_AND_SEARCH,
    STEP,
    WINDOW,
    plan_of,
)
from pcbatch.nuts.kernel.algorithm import STATISTICS
from pcbatch.nuts.running.chain import ChainState, fresh_state, make_sampler, padded
from pcbatch.nuts.running.density_programs import gradient_blocks, gradient_rows

CHAINS, CAPACITY = 32, 20
MEAN = np.array([1.0, -20.0, 0.1])
SCALE = np.array([0.2, 10.0, 1.0])
WARM_UP = [STEP] * 20 + [WINDOW] * 29 + [CLOSE] + [WINDOW] * 59 + [CLOSE] + [STEP] * 29 + [LAST]
SHORT = [STEP] * 2 + [WINDOW] * 3 + [CLOSE, STEP, LAST]


def normals(q, data):
    """Independent normals, NaN beyond a wall; no operation mixes chains or rounds by their number."""
    mean, scale, wall = data
    z = (q - mean) / scale
    return -0.5 * tf.reduce_sum(z * z) + tf.where(q[0] > wall, tf.constant(np.nan, q.dtype), 0.0)


def correlated(q, data):
    mean, precision = data
    centred = q - mean
    return -0.5 * tf.reduce_sum(centred * tf.linalg.matvec(precision, centred))


def sampler_of(log_density, **options):
    return make_sampler(log_density, dimensions=3, dtype=tf.float64, capacity=CAPACITY, max_tree_depth=6, **options)


def data_of(mean=MEAN, scale=SCALE, wall=np.inf):
    return tf.constant(mean), tf.constant(scale), tf.constant(wall, tf.float64)


def fresh(chains=CHAINS, inverse_mass=None, **options):
    start = MEAN + SCALE * np.random.default_rng(4).uniform(-2, 2, size=(chains, 3))
    return fresh_state(start, np.ones(3) if inverse_mass is None else inverse_mass, **options)


def go(chain, state, plan, first, count, thin=1, data=None):
    """A stretch: the run, and from it the chains' state, the kept positions, and the statistics by name."""
    keys = random.keys(7, len(np.asarray(state.step_size)))
    numbers = map(tf.constant, (first, count, thin))
    run = chain.run(keys, *state, plan_of(plan), *numbers, tf.constant(0.8, tf.float64), data or data_of())
    *fields, positions, statistics = tf.nest.map_structure(np.asarray, run.value)
    return run, ChainState(*fields), positions, dict(zip(STATISTICS, np.moveaxis(statistics, -1, 0), strict=True))


def assert_same(one, other):
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def assert_near(per_chain, expected):
    """The mean over independent chains is within 4.5 of its own standard errors of the truth."""
    error = per_chain.std(axis=0, ddof=1) / np.sqrt(len(per_chain))
    np.testing.assert_array_less(np.abs(per_chain.mean(axis=0) - expected), 4.5 * error)


@pytest.fixture(scope="module")
def chain():
    return sampler_of(normals).chain


@pytest.fixture(scope="module")
def warm(chain):
    return go(chain, fresh(), WARM_UP, 0, len(WARM_UP), thin=len(WARM_UP))


def test_the_block_of_the_gradients_is_known_wherever_it_stands(warm):
    run, state, _, _ = warm
    needed, computed = gradient_rows(run)
    assert needed == state.leaves.sum() <= computed
    (leaf,) = gradient_blocks(run.program)
    first = (run.program.blocks[leaf], *run.program.blocks[:leaf], *run.program.blocks[leaf + 1 :])
    moved = replace(run.program, blocks=first)
    assert gradient_blocks(moved) == (0,)
    counts = (np.asarray(each) for each in (run.outcome.active, run.outcome.rows))
    active, rows = (np.append(each[leaf], np.delete(each, leaf)) for each in counts)
    other = SimpleNamespace(program=moved, outcome=SimpleNamespace(active=active, rows=rows))
    assert gradient_rows(other) == (needed, computed)
    with pytest.raises(LookupError, match=r"no block of .* computes a gradient"):
        gradient_blocks(replace(run.program, blocks=first[1:]))


def test_warm_up_learns_scales_and_step_size(chain, warm):
    _, state, _, _ = warm
    np.testing.assert_allclose(np.exp(np.log(state.metric.inverse).mean(axis=0)), SCALE**2, rtol=0.25)
    assert (state.phase == READY).all()
    _, after, positions, statistics = go(chain, state, WARM_UP, len(WARM_UP), 5 * CAPACITY, thin=5)
    assert 0.7 < statistics["acceptance_rate"].mean() < 0.95
    np.testing.assert_array_equal(statistics["step_size"], np.repeat(state.step_size[:, np.newaxis], CAPACITY, axis=1))
    assert_same(after.metric, state.metric)
    assert_same(after.trials, state.trials)
    assert_near(positions.mean(axis=1), MEAN)
    assert_near(((positions - MEAN) ** 2).mean(axis=1), SCALE**2)
    z = (positions - MEAN) / SCALE
    np.testing.assert_allclose(statistics["lp"], -0.5 * (z**2).sum(axis=-1), rtol=1e-10)


def test_gradients_are_counted(warm):
    run, state, _, _ = warm
    needed, computed = gradient_rows(run)
    assert needed == state.leaves.sum()
    assert needed <= computed


def test_chains_with_a_step_size_try_none(chain):
    _, state, _, statistics = go(chain, fresh(step_size=0.3), [], 0, 3)
    assert (state.trials == 1).all()  # log density and gradient of the start
    assert (state.step_size == 0.3).all()
    np.testing.assert_array_equal(state.leaves, 1 + statistics["n_leaves"].sum(axis=1))


def test_the_first_step_size_is_searched(chain):
    run, state, _, _ = go(chain, fresh(), [STEP], 0, 0)
    assert (state.phase == READY).all()
    steps = set(np.unique(state.step_size))
    assert steps <= {0.125, 0.25, 0.5, 1.0}  # the leapfrog is stable up to twice the smallest scale
    assert gradient_rows(run)[0] == state.trials.sum() == state.leaves.sum()
    np.testing.assert_allclose(state.averaging.anchor, np.log(AHEAD * state.step_size))


def test_a_flat_density_is_improper(chain):
    run, _, positions, _ = go(chain, fresh(), [STEP], 0, 1, data=data_of(scale=np.full(3, np.inf)))
    assert (run.status == LaneStatus.ASSERTION).all()
    assert "an improper posterior" in run.errors[0].message
    assert np.isnan(positions).all()


def test_a_window_may_gather_while_the_step_size_stays(chain):
    _, state, positions, _ = go(chain, fresh(step_size=0.2), [GATHER] * 12, 0, 12)
    assert (state.step_size == 0.2).all()
    assert (state.window.draws == 12).all()
    gradients = -(positions - MEAN) / SCALE**2
    for row, seen in enumerate((positions, gradients)):
        np.testing.assert_allclose(state.window.mean[:, row], seen[:, :12].mean(axis=1), rtol=1e-9)
        np.testing.assert_allclose(state.window.spread[:, row] / 12, seen[:, :12].var(axis=1), rtol=1e-9)


def test_thinning_keeps_the_last_of_each_group(chain):
    state = fresh(step_size=0.3)
    _, after_all, all_of_them, statistics = go(chain, state, [], 0, 20)
    _, after, kept, statistics_kept = go(chain, state, [], 0, 20, thin=4)
    np.testing.assert_array_equal(kept[:, :5], all_of_them[:, 3::4])
    assert (kept[:, 5:] == 0).all()
    np.testing.assert_array_equal(statistics_kept["energy"][:, :5], statistics["energy"][:, 3::4])
    assert_same(after, after_all)


def test_stretches_continue_each_other_and_compile_nothing(chain):
    _, whole, positions, _ = go(chain, fresh(), SHORT, 0, 12)
    compilations, state, parts = chain.stats().compilations, fresh(), []
    for first, count in ((0, 4), (4, 2), (6, 6)):  # the second ends with a window: its search belongs to it
        _, state, part, _ = go(chain, state, SHORT, first, count)
        parts.append(part[:, :count])
    assert_same(state, whole)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), positions[:, :12])
    assert chain.stats().compilations == compilations == 1


def test_chains_that_meet_nan_reject_alone_and_cannot_start_there(chain):
    state = fresh(step_size=0.15)
    wall = np.sort(state.point.q[:, 0])[-2] - 1e-9  # two chains stand behind it
    run, _, positions, statistics = go(chain, state, [], 0, 10, data=data_of(wall=wall))
    failed = state.point.q[:, 0] > wall
    assert failed.sum() == 2
    assert ((run.status == LaneStatus.ASSERTION) == failed).all()
    assert "not finite at the initial position" in run.errors[0].message
    assert np.isnan(positions[failed]).all()
    met = statistics["diverging"][~failed].any(axis=1)
    assert met.any()
    assert (positions[~failed, :, 0] <= wall).all()
    _, _, free, _ = go(chain, state, [], 0, 10)
    never = np.flatnonzero(~failed)[~met]
    assert len(never) > 1
    np.testing.assert_array_equal(positions[never], free[never])  # as if there were no wall, and no others behind it


@pytest.mark.slow  # and in test_sampling.py
def test_a_chain_alone_is_bit_equal_to_the_chain_among_others(chain):
    _, state, positions, statistics = go(chain, fresh(), SHORT, 0, 20)
    lanes = slice(3, 4)
    start = tf.nest.map_structure(lambda array: array[lanes], fresh())
    keys, start = padded((random.keys(7, CHAINS)[lanes], start))
    *fields, place, rows = tf.nest.map_structure(
        lambda array: np.asarray(array)[:1], chain.run(keys, *start, plan_of(SHORT), *arguments(20)).value
    )
    assert_same(ChainState(*fields), tf.nest.map_structure(lambda array: array[lanes], state))
    np.testing.assert_array_equal(place, positions[lanes])
    np.testing.assert_array_equal(rows, np.stack([statistics[name][lanes] for name in STATISTICS], axis=-1))


@pytest.mark.parametrize(
    "inverse_mass", [np.array([1.0, 4.0]), np.array([[1.0, 0.5], [0.5, 1.0]])], ids=["diag", "dense"]
)
def test_a_fresh_state_has_the_type_of_its_positions(inverse_mass):
    state = fresh_state(np.zeros((5, 2), np.float32), inverse_mass, step_size=0.25)
    floats = [array for array in tf.nest.flatten(state) if array.dtype != np.int32]
    assert {array.dtype for array in floats} == {np.dtype(np.float32)}
    assert {len(array) for array in tf.nest.flatten(state)} == {5}
    np.testing.assert_array_equal(state.metric.inverse[4], inverse_mass)
    assert state.window.mean.shape == (5, 2, 2)  # of positions and gradients
    assert state.window.spread.shape == (5, 2, *inverse_mass.shape)
    assert (state.phase == START).all()
    assert (fresh_state(np.zeros((5, 2)), inverse_mass).phase == START_AND_SEARCH).all()


def test_padding_repeats_the_last_chain():
    five = fresh(5)
    keys, state = padded((random.keys(7, 5), five))
    assert keys.shape == (8, 2)
    assert_same(state.point.q[:5], five.point.q)
    assert_same(state.point.q[5:], np.repeat(five.point.q[4:], 3, axis=0))
    assert_same(padded(fresh(8)), fresh(8))


def arguments(count):
    """`first` and what follows it."""
    return tf.constant(0), tf.constant(count), tf.constant(1), tf.constant(0.8, tf.float64), data_of()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["earliest", "sweep", "busiest", "adaptive"])
def test_chains_are_bit_equal_under_every_schedule(chain, schedule):
    """In lockstep; native code among gradients makes sums in another order."""
    _, state, positions, _ = go(chain.options(form="lockstep"), fresh(), SHORT, 0, 12)
    _, other_state, other_positions, _ = go(chain.options(schedule=schedule), fresh(), SHORT, 0, 12)
    assert_same(other_state, state)
    np.testing.assert_array_equal(other_positions, positions)


def test_a_chain_in_plain_python_is_the_chain_of_the_batch(chain):
    _, state, positions, statistics = go(chain, fresh(), SHORT, 0, 10)
    lane = 5  # alone it rounds as eager TensorFlow does
    start = tf.nest.map_structure(lambda array: tf.constant(array[lane]), fresh())
    plan = tf.nest.map_structure(tf.constant, plan_of(SHORT))
    *fields, place, rows = chain.single(random.keys(7, CHAINS)[lane], *start, plan, *arguments(10))
    alone = ChainState(*fields)
    np.testing.assert_allclose(place, positions[lane], rtol=1e-8)
    np.testing.assert_array_equal(rows[:, STATISTICS.index("n_leaves")], statistics["n_leaves"][lane])
    np.testing.assert_allclose(alone.metric.inverse, state.metric.inverse[lane], rtol=1e-7)
    np.testing.assert_allclose(alone.step_size, state.step_size[lane], rtol=1e-7)


COVARIANCE = np.array([[1.0, 1.6, 0.0], [1.6, 4.0, -0.5], [0.0, -0.5, 1.0]])


def check_correlated(sampler, inverse_mass):
    """Warm up on a correlated normal and compare moments; returns the chains' state."""
    data = (tf.constant(MEAN), tf.constant(np.linalg.inv(COVARIANCE)))
    state = fresh_state(np.random.default_rng(5).multivariate_normal(MEAN, COVARIANCE, size=CHAINS), inverse_mass)
    _, state, _, _ = go(sampler.chain, state, WARM_UP, 0, len(WARM_UP), thin=len(WARM_UP), data=data)
    _, _, positions, _ = go(sampler.chain, state, WARM_UP, len(WARM_UP), 5 * CAPACITY, thin=5, data=data)
    centred = positions - MEAN
    assert_near(centred.mean(axis=1), np.zeros(3))
    assert_near(np.einsum("cri,crj->cij", centred, centred) / CAPACITY, COVARIANCE)
    return state


@pytest.mark.slow
def test_the_slice_kernel_has_the_same_moments():
    check_correlated(sampler_of(correlated, kernel="slice"), np.ones(3))

"""NaN, infinities and zeros in maxima, minima, clipping, places and sorting: TensorFlow's eager values in every mode.

TensorFlow has no order of NaN in sorting, and loses one that comes first in a segment or in a cumulative sum of
exponentials: there ours are stated.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.harness import leaves

NAN, INF = np.nan, np.inf
ROWS = [
    [1.0, -2.0, 3.0, 0.5],
    [NAN, -2.0, 3.0, 0.5],
    [1.0, -2.0, NAN, 0.5],
    [1.0, -2.0, 3.0, NAN],
    [NAN, NAN, NAN, NAN],
    [NAN, INF, 3.0, 0.5],
    [INF, -2.0, 3.0, NAN],
    [-INF, NAN, -INF, -INF],
    [-INF, -INF, -INF, -INF],
    [2.0, 2.0, -1.0, -1.0],
]
SHARED = tf.constant([1.0, NAN, 3.0, 0.5])
MODES = {"xla": {}, "graph": {"jit": False}, "reference": {"backend": "reference"}}


@pcbatch.autobatch
def extremes(x):
    turned, two = x[::-1], tf.stack([x, x[::-1]])
    return (
        (tf.reduce_max(x), tf.reduce_min(x), tf.reduce_max(two, axis=0), tf.reduce_min(two, axis=-1, keepdims=True)),
        (tf.maximum(x, turned), tf.minimum(x, turned), tf.maximum(x, 0.25), tf.minimum(0.25, x)),
        (tf.clip_by_value(x, -1.0, 1.0), tf.clip_by_value(SHARED, x[0], x[1]), tf.norm(x, ord=np.inf)),
        (tf.argmax(x), tf.argmin(x), tf.argmax(two, axis=1, output_type=tf.int32), tf.argmin(two, axis=0)),
        (tf.nn.relu(x), x == tf.reduce_max(x)),
        (tf.reduce_max(SHARED) + x[0], tf.maximum(SHARED, 2.0), tf.argmax(SHARED), tf.reduce_min(SHARED)),
    )


@pcbatch.autobatch
def ordered(x):
    best = tf.math.top_k(x, 2)
    segments = tf.math.unsorted_segment_max(x, [0, 0, 1, 1], 3), tf.math.unsorted_segment_min(x, [0, 0, 1, 1], 3)
    in_order = tf.ensure_shape(tf.math.segment_max(x, [0, 0, 1, 1]), [2])
    sums = tf.math.cumulative_logsumexp(x)
    return tf.sort(x), tf.argsort(x), best.values, best.indices, *segments, in_order, sums


@pcbatch.autobatch
def as_in_python(x):
    return max(x), min(x), np.argmax(x), np.argmin(x), np.sort(x), np.max(x), np.clip(x, -1.0, 1.0), np.maximum(x, 0.0)


@pcbatch.autobatch
def slopes(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        first = tf.reduce_max(x) * 2 + tf.reduce_min(x) + tf.reduce_sum(tf.maximum(x, 0.5) * tf.minimum(x, 1.0))
        y = first + tf.reduce_sum(tf.sort(x) * tf.range(4.0)) + tf.reduce_sum(tf.clip_by_value(x, -1.0, 1.0))
    return tape.gradient(y, x)


@pytest.mark.parametrize("mode", MODES)
def test_extremes_are_tensorflows(mode):
    found = list(leaves(extremes.options(**MODES[mode])(tf.constant(ROWS))))
    for lane, row in enumerate(ROWS):
        for place, expected in enumerate(leaves(extremes.single(tf.constant(row)))):
            np.testing.assert_allclose(found[place][lane], expected, rtol=1e-6, err_msg=f"{row}, result {place}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_extremes_of_other_numbers(dtype):
    @pcbatch.autobatch
    def some(x):
        return tf.reduce_max(x), tf.maximum(x, x[::-1]), tf.argmax(x), tf.math.top_k(x, 2).indices, tf.sort(x)

    rows = tf.cast(tf.constant(ROWS if dtype != "int32" else [[3.0, -2.0, 7.0, 7.0], [0.0] * 4]), dtype)
    found = some(rows)
    for lane, row in enumerate(rows):
        expected = some.single(row)
        count = 3 if dtype != "int32" and bool(tf.reduce_any(tf.math.is_nan(row))) else 5  # the order of NaN is ours
        for ours, theirs in zip(found[:count], expected[:count], strict=True):
            np.testing.assert_array_equal(tf.cast(ours[lane], tf.float64), tf.cast(theirs, tf.float64))


@pytest.mark.parametrize("mode", ["xla", "graph"])
def test_nan_is_the_largest_in_sorting_and_stays_in_segments(mode):
    values, places, best, best_places, most, least, in_order, sums = ordered.options(**MODES[mode])(tf.constant(ROWS))
    for lane, row in enumerate(np.float32(ROWS)):
        lost = np.isnan(row)
        expected = [*np.flatnonzero(lost), *(i for i in np.argsort(row, kind="stable") if not lost[i])]
        np.testing.assert_array_equal(places[lane], expected)
        np.testing.assert_array_equal(values[lane], row[expected])
        down = [*np.flatnonzero(lost), *(i for i in np.argsort(-row, kind="stable") if not lost[i])][:2]
        np.testing.assert_array_equal(best_places[lane], down)
        np.testing.assert_array_equal(best[lane], row[down])
        np.testing.assert_array_equal(in_order[lane], [np.max(row[:2]), np.max(row[2:])])
        np.testing.assert_array_equal(np.isnan(sums[lane]), np.isnan(np.cumsum(np.where(lost, row, 0))))
        for segments in (most, least):
            np.testing.assert_array_equal(np.isnan(segments[lane][:2]), [lost[:2].any(), lost[2:].any()])


@pytest.mark.parametrize("mode", MODES)
def test_builtins_and_numpy_have_their_own_rules(mode):
    found = as_in_python.options(**MODES[mode])(tf.constant(ROWS))
    for lane, row in enumerate(np.float32(ROWS)):
        numbers = [float(x) for x in row]
        expected = (max(numbers), min(numbers), np.argmax(row), np.argmin(row), np.sort(row), np.max(row))
        expected += (np.clip(row, -1, 1), np.maximum(row, 0))
        for ours, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours[lane], wanted, err_msg=str(row))


@pytest.mark.parametrize("mode", ["xla", "graph"])
def test_gradients_are_tensorflows(mode):
    rows = [row for row in ROWS if np.isfinite(row).all()] + [[0.5, 1.0, -1.0, 0.25]]
    found = slopes.options(**MODES[mode])(tf.constant(rows))
    for lane, row in enumerate(rows):
        np.testing.assert_allclose(found[lane], slopes.single(tf.constant(row)), rtol=1e-6, err_msg=str(row))


@pytest.mark.parametrize("mode", MODES)
def test_wide_ints_are_cut_by_no_one(mode):
    """What an int of 32 bits cannot hold fails the lane in `int`; a range counts in the dtype of its bounds."""

    @pcbatch.autobatch
    def counted(wide, unsigned):
        turns = 0
        for _ in range(unsigned):
            turns += 1
            if turns == 3:
                break
        return int(wide), turns, np.float64(1.0)

    wide = tf.constant([5, 2**40, -(2**31), 2**31, 7], tf.int64)
    unsigned = tf.constant([2, 3, 3, 3, 2**32 - 1], tf.uint32)
    run = counted.options(**MODES[mode]).run(wide, unsigned)
    assert [status.name for status in map(pcbatch.LaneStatus, run.status)] == [
        "OK",
        "ARITHMETIC",
        "OK",
        "ARITHMETIC",
        "OK",
    ]
    assert run.value[1][::2].numpy().tolist() == [2, 3, 3]
    assert "32 bits" in run.errors[1].message


def halves_of_ints(x):
    return int(x) // 2


def halves_of_rounded(x):
    return round(x) // 2


def halves_of_floors(x):
    return math.floor(x) // 2


def halves_of_ceilings(x):
    return math.ceil(x) // 2


@pytest.mark.parametrize("function", [halves_of_ints, halves_of_rounded, halves_of_floors, halves_of_ceilings])
def test_single_fails_where_a_lane_does(function):
    """`f.single` makes no ints of an array's numbers that int32 cannot hold."""
    x = np.array([3.5, 3e9, -2147483648.0, -5e15, INF, NAN], np.float32)
    half = pcbatch.autobatch(function)
    run = half.options(backend="reference").run(x)
    assert list(run.status == pcbatch.LaneStatus.OK) == [True, False, True, False, False, False]
    for lane, status in enumerate(run.status):
        if status == pcbatch.LaneStatus.OK:
            assert int(half.single(x[lane])) == int(run.value[lane])
        else:
            with pytest.raises((OverflowError, ValueError)):
                half.single(x[lane])

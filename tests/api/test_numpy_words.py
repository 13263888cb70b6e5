"""What NumPy's words mean at the edges: in a batch, in `f.single` and in NumPy itself."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

FLOATS = np.array([[0.5, -1.5, 2.25], [np.nan, 1.0, 2.0], [np.inf, -np.inf, -0.0]], np.float32)
FLAGS = np.array([[True, False, True], [False, True, False], [False, False, False]])
PLACES = np.array([-2, 3, -5])
TABLES = np.arange(18, dtype=np.int32).reshape(3, 2, 3)


def words(x, flags, place, table):
    return (
        x * flags,
        (x > 0) * x,
        np.multiply(flags, x),
        x.clip(max=1.0),
        np.clip(x, 0.0, None),
        table.reshape(-1),
        np.reshape(table, -1),
        np.transpose(table, (-1, 0)),
        table[place % 2, len(x) - 3],
        table[place % 2, table[0, 0] % 3],
        np.zeros_like(table, dtype=int) + table.astype(float).astype(int),
        np.array([place, table[0, 1]]),
        flags.max() | flags.min(),
        np.sort(flags),
    )


def test_a_batch_and_one_example_give_what_numpy_gives():
    batched = pcbatch.autobatch(words)
    given = batched(FLOATS, FLAGS, PLACES, TABLES)
    for lane, example in enumerate(zip(FLOATS, FLAGS, PLACES, TABLES, strict=True)):
        with np.errstate(invalid="ignore"):
            wanted, single = words(*example), batched.single(*example)
        for place, value in enumerate(wanted):
            for one in (np.asarray(given[place][lane]), np.asarray(single[place])):
                np.testing.assert_array_equal(one, value, err_msg=f"{place} of lane {lane}")
                assert one.dtype.kind == np.asarray(value).dtype.kind, place


@pcbatch.autobatch
def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = np.std(x) + np.median(x) * x.max() + np.sum(np.sort(x) * np.tanh(x))
    return tape.gradient(y, x)


def test_a_tape_sees_numpys_functions_in_one_example_too():
    given = slope(FLOATS[:1])
    np.testing.assert_allclose(slope.single(tf.constant(FLOATS[0])), given[0], rtol=1e-5)


@pcbatch.autobatch
def plus(i):
    return i + np.array([0.5, 1.5])


@pcbatch.autobatch
def below(i):
    return i < np.array([0.5, 1.5])


@pcbatch.autobatch
def added(i):
    return tf.add(i, np.full(2, 0.5) + 1.0)


@pytest.mark.parametrize("function", [plus, below])
def test_an_int_beside_a_constant_array_of_floats_is_a_float(function):
    ints = np.array([0, 1], np.int32)
    found = function(ints)
    np.testing.assert_array_equal(found, [function.__wrapped__(i) for i in ints])
    assert function.single(ints[0]).dtype == found.dtype


def test_a_constant_array_of_floats_beside_an_int_is_not_cut_to_ints():
    with pytest.raises(pcbatch.CompileError, match="PCB401"):
        added(np.array([0, 1], np.int32))

"""Reading rows of arrays so large that XLA would read them with threads: the values of NumPy, without threads."""

import re

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend, private, rules
from pcbatch.runtime.backends.tensorflow.rules import arrays
from pcbatch.runtime.backends.tensorflow.xla_cpu.gathering import gather_by_lane
from pcbatch.runtime.costs.device import CPU

BACKEND = TensorFlowBackend()
LANES, SPLIT = 4, CPU.split_read
SIZE = SPLIT // (4 * LANES)
"""The length of an array of 4-byte elements from which on all lanes' arrays together are split."""


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool", "complex64", "bfloat16", "uint8"])
@pytest.mark.parametrize("jit", [False, True])
def test_every_dtype(dtype, jit):
    """As NumPy, the first element too."""
    array = np.arange(SPLIT).reshape(LANES, -1) % 2
    index = np.array([5, 0, SPLIT // LANES - 1, 5])
    read = tf.function(lambda a, lanes, i: gather_by_lane(a, lanes, [i]), jit_compile=jit)
    found = read(tf.cast(array, dtype), tf.range(LANES), tf.constant(index, tf.int32))
    np.testing.assert_array_equal(tf.cast(found, tf.complex64), array[np.arange(LANES), index])


def test_load():
    """`load` with and without lanes, of elements and of rows, as NumPy."""
    array = np.random.default_rng(0).normal(size=(LANES, SIZE, 2)).astype(np.float32)
    index, inner, lanes = np.array([3, SIZE - 1, 0, 7]), np.array([0, 1, 1, 0]), np.array([2, 0])
    for kept in (None, lanes):
        rows = np.arange(LANES) if kept is None else kept
        given = None if kept is None else tf.constant(kept, tf.int32)
        places = [tf.constant(each[: len(rows)], tf.int32) for each in (index, inner)]
        n = len(rows)
        np.testing.assert_array_equal(BACKEND.load(tf.constant(array), places[:1], given), array[rows, index[:n]])
        np.testing.assert_array_equal(
            BACKEND.load(tf.constant(array), places, given), array[rows, index[:n], inner[:n]]
        )


TABLE = tf.constant(np.random.default_rng(1).normal(size=(SPLIT // 8, 2)), tf.float32)
WEIGHTS = tf.Variable(TABLE)


@pcbatch.autobatch
def reads(a, i):
    """Elements, a window and a row of an array that all lanes share."""
    return a[i] + a[-i - 1], a[i : i + 3], TABLE[i], tf.gather(WEIGHTS, i)


PLACES = tf.constant([[1], [0]])
PAIR, FEW = tf.Variable(TABLE[:2]), tf.Variable(TABLE[:16])


def lookup(**options):
    """A new function: of one that is traced already nothing is converted anew."""

    @pcbatch.autobatch(**options)
    def looked_up(i):
        """Rows and elements of a variable at places of the lane's and at places that all lanes share."""
        own, pairs = tf.stack([i, i + 2]), tf.stack([tf.stack([i, 1]), tf.stack([i + 3, 0])])
        rows = tf.gather(FEW, own), tf.gather(FEW, PLACES), tf.gather(PAIR, PLACES, batch_dims=1)
        return *rows, tf.gather_nd(FEW, pairs), tf.gather_nd(FEW, [[4, 1], [2, 0]])

    return looked_up


@pytest.mark.parametrize("is_passed", [False, True])
@pytest.mark.parametrize("options", [{"form": "native"}, {"form": "lockstep"}, {"jit": False}], ids=str)
def test_a_variable(options, is_passed, monkeypatch):
    """Also where pfor passes reads of handles on, as it does from TensorFlow 2.22 on."""
    if is_passed:
        pfor = private.copy_of_pfor(rules._register)
        monkeypatch.setattr(pfor, "passthrough_stateful_ops", {*pfor.passthrough_stateful_ops, *arrays.READS})
    i, looked_up = np.array([0, 5, 9], np.int32), lookup(**options)
    for found, *wanted in zip(looked_up(i), *map(looked_up.single, i), strict=True):
        np.testing.assert_array_equal(found, np.stack(wanted))


@pytest.mark.parametrize("jit", [False, True])
def test_pieces(jit):
    """As lane by lane."""
    a = tf.constant(np.random.default_rng(2).normal(size=(LANES, SIZE)), tf.float32)
    i = np.array([0, 5, SIZE - 3, 77], np.int32)
    element, window, row, weights = reads.options(jit=jit)(a, i)
    for lane, at in enumerate(i):
        np.testing.assert_array_equal(element[lane], a[lane, at] + a[lane, -at - 1])
        np.testing.assert_array_equal(window[lane], a[lane, at : at + 3])
        np.testing.assert_array_equal(row[lane], TABLE[at])
        np.testing.assert_array_equal(weights[lane], TABLE[at])


def test_no_lanes():
    """Nothing is read for no lanes."""
    assert reads(tf.zeros([0, SPLIT]), tf.zeros(0, tf.int32))[0].shape == (0,)


@pcbatch.autobatch
def hops(a, grid, i):
    """Follows `a` from index to index, in a loop and in a recursion, with reads from a reshaped array."""
    total = 0.0
    while a[i] != 0:
        total += grid[i // 128, i % 128]
        i = a[i]
    if total > 0.0:
        return total + hops(a, -grid, i - 50)
    return total


def hops_of_one_lane(a, grid, i):
    """The same in NumPy."""
    total = np.float32(0.0)
    while a[i] != 0:
        total += grid[i // 128, i % 128]
        i = a[i]
    return total + hops_of_one_lane(a, -grid, i - 50) if total > 0 else total


@pytest.mark.parametrize("jit", [False, True])
def test_loops(jit):
    """Reads whose index depends on what was read, in a loop and in a recursion."""
    chain = np.concatenate([np.arange(1, 100), [0], np.arange(101, SIZE), [0]]).astype(np.int32)
    a = np.broadcast_to(chain, (LANES, SIZE))
    grid = np.random.default_rng(3).uniform(size=(LANES, SIZE // 128, 128)).astype(np.float32)
    starts = np.array([SIZE - 9, 5, 80, 98], np.int32)
    found = hops.options(jit=jit)(a, grid, starts)
    expected = [hops_of_one_lane(*given) for given in zip(a, grid, starts, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def plain(array, lanes, indices):
    """As `gather_by_lane`, left to XLA."""
    return tf.gather_nd(array, tf.stack([lanes, *indices], axis=-1))


def kernels(read):
    """What XLA makes of a loop in which every lane reads one element of its array in every turn."""
    lanes = tf.range(LANES)

    def turn(index, total):
        return (index * 37 + 1) % SIZE, total + 2.0 * read(array, lanes, [index])

    array = tf.zeros([LANES, SIZE])
    loop = tf.function(
        lambda index, total: tf.while_loop(lambda i, _: i[0] != 7, turn, (index, total)), jit_compile=True
    )
    return loop.experimental_get_compiler_ir(lanes, tf.zeros(LANES))(stage="optimized_hlo")


def test_no_threads_and_no_copy():
    """The read is part of one kernel on one thread, which makes nothing as large as the array."""
    threads, made = "outer_dimension_partitions", rf"f32\[{LANES},{SIZE}\]\S* (?:copy|fusion)"
    assert threads in kernels(plain)
    text = kernels(gather_by_lane)
    assert "gather(" in text
    assert threads not in text
    assert not re.search(made, text)

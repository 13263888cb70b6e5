"""Gradients by tables that are looked up in: rows and their numbers where TensorFlow gives these, else sums."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.adjoint import tape as tapes
from tests.adjoint.programs import COUNTS, TABLE, VECTORS
from tests.adjoint.truth import TINY, assert_alike, batched, singly

slow = pytest.mark.slow


@pcbatch.autobatch(jit=False)
def walk(x, n, k):
    """Two lookups, the second of two rows at once; lanes that begin at 5 fail."""
    while n > 0:
        pair = tf.nn.embedding_lookup(TABLE, tf.stack([n, k]) % 7)
        x = tf.tanh(x + tf.gather(TABLE, (k + n) % 7)) * pair[0] + pair[1]
        n = n - 1
    assert k != 5
    return x


@pcbatch.autobatch(jit=False)
def walk_and_sum(x, n, k):
    """What is looked up in is read as a whole, too."""
    while n > 0:
        x = tf.tanh(tf.linalg.matvec(TABLE[:3], x) + tf.gather(TABLE, (k + n) % 7))
        n = n - 1
    return x


@pcbatch.autobatch(jit=False, in_axes={"table": None})
def walk_in(x, n, table):
    while n > 0:
        x = x * tf.gather(table, n % 7)
        n = n - 1
    return x


STARTS = tf.constant([0, 1, 2, 3, 4, 6])


def looked_up(starts=STARTS):
    """The rows that `walk` looks up in the batch, each once; lanes that begin at 5 fail."""
    lanes = [(int(n), int(k)) for n, k in zip(COUNTS, starts, strict=True) if k != 5]
    return sorted({row % 7 for last, k in lanes for n in range(1, last + 1) for row in (n, k, k + n)})


@pytest.mark.parametrize("segments", ["whole", pytest.param("many", marks=slow)])
def test_rows_and_their_numbers(segments, monkeypatch):
    if segments == "many":
        monkeypatch.setattr(tapes, "Sizes", lambda: TINY)
    found = batched(walk.options(name=f"walk_{segments}"), (VECTORS, COUNTS, STARTS), (TABLE,))
    expected = singly(walk, (VECTORS, COUNTS, STARTS), (TABLE,))
    assert isinstance(found[1], tf.IndexedSlices)
    assert isinstance(expected[1], tf.IndexedSlices)
    assert sorted(found[1].indices.numpy()) == sorted(set(expected[1].indices.numpy())) == looked_up()
    assert found[1].values.shape == (len(looked_up()), 3)
    assert_alike(found, expected)


@slow
def test_under_xla():
    found = batched(walk.options(jit=True), (VECTORS, COUNTS, STARTS), (TABLE,))
    assert found[1].values.shape == (len(looked_up()), 3)
    assert_alike(found, singly(walk, (VECTORS, COUNTS, STARTS), (TABLE,)))


@slow
def test_where_both_meet_one_sum_is_made_of_all():
    arguments = VECTORS, COUNTS, STARTS
    found, expected = (how(walk_and_sum, arguments, (TABLE,))[1] for how in (batched, singly))
    assert tf.is_tensor(found)
    assert tf.is_tensor(expected)
    assert_alike([found], [expected])


def test_failed_lanes_look_nothing_up():
    starts = tf.constant([0, 5, 2, 5, 4, 6])
    found = batched(walk, (VECTORS, COUNTS, starts), (TABLE,))[1]
    assert sorted(found.indices.numpy()) == looked_up(starts)
    assert not np.any(batched(walk, (VECTORS, COUNTS, COUNTS * 0 + 5), (TABLE,))[1].values)


@slow
def test_in_and_around_functions_and_by_an_argument_of_all():
    def slope(watched):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            value = tf.reduce_sum(walk_in(VECTORS, COUNTS, watched) ** 2)
        return tape.gradient(value, watched)

    def inside(watched):
        traced = tf.function(lambda table: tf.reduce_sum(walk_in(VECTORS, COUNTS, table) ** 2))
        with tf.GradientTape() as tape:
            tape.watch(watched)
            value = traced(watched)
        return tape.gradient(value, watched)

    table = tf.convert_to_tensor(TABLE)
    found = [slope(table), tf.function(slope)(table), inside(table), slope(TABLE)]
    assert all(isinstance(each, tf.IndexedSlices) for each in found)
    for each in found[1:]:
        assert_alike([each], found[:1])
    assert slope(tf.zeros([7, 3], tf.float64)).values.shape == found[0].values.shape


@slow
def test_a_batch_of_no_lanes():
    found = batched(walk, (VECTORS[:0], COUNTS[:0], STARTS[:0]), (TABLE,))[1]
    assert found.values.shape == (0, 3)

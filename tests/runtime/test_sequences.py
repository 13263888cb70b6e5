"""What `in` and starred expressions call: against Python, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import ops
from pcbatch.runtime.backends.tensorflow.weak import Weak


def weak(number):
    return Weak(tf.constant(number, tf.float64 if isinstance(number, float) else tf.int32))


def value(x):
    return np.asarray(tf.convert_to_tensor(x)).tolist()


ARRAY = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


# -- membership --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [tf.constant, weak, int], ids=["tensor", "weak", "static"])
@pytest.mark.parametrize(
    "sequence", [(1, 4), [7], (), range(1, 9, 3), range(9, 0, -4), range(0), range(-2, 3)], ids=str
)
def test_numbers_in_sequences(wrap, sequence):
    for number in range(-3, 11):
        assert value(ops.contains(wrap(number), sequence)) == (number in sequence)
        assert value(ops.lacks(wrap(number), sequence)) == (number not in sequence)


def test_numbers_in_vectors():
    vector = tf.constant([1, 4, 4])
    for number, array in itertools.product([0, 1, 4], [vector, vector.numpy(), tf.Variable(vector)]):
        assert value(ops.contains(number, array)) == (number in (1, 4))
        assert value(ops.contains(tf.constant(number), array)) == (number in (1, 4))
    assert value(ops.contains(weak(2.5), tf.constant([2.5], tf.float64)))
    assert not value(ops.contains(1, tf.zeros([0], tf.int32)))


def test_sequences_of_lane_values():
    assert value(ops.contains(3, (tf.constant(1), tf.constant(3))))
    assert not value(ops.contains(weak(2), [weak(1), 2.5]))
    assert value(ops.contains(tf.constant(2.0), range(1, 3)))


def test_static_membership_is_pythons():
    assert ops.contains("a", {"a": 1}) is True
    assert ops.lacks("a", "abc") is False


@pytest.mark.parametrize(
    ("x", "sequence", "message"),
    [
        (tf.constant([1]), (1, 2), "not for an array"),
        (tf.constant([1]), tf.constant([1]), "not for an array"),
        (1, ARRAY, "looks into vectors"),
        (tf.constant(1), {1: 2}, "not a dict"),
        (tf.constant(1), (tf.constant([1]),), "not for an array"),
    ],
    ids=["array in tuple", "array in array", "matrix", "dict", "tuple of arrays"],
)
def test_membership_refuses(x, sequence, message):
    with pytest.raises(TypeError, match=message):
        ops.contains(x, sequence)


# -- starred -----------------------------------------------------------------------------------------------------------


def test_starred_targets():
    first, *rest, last = ops.unpacked(tf.constant([1, 2, 3, 4]), (None, ..., None))
    assert (value(first), [value(x) for x in rest], value(last)) == (1, [2, 3], 4)
    assert ops.unpacked((1, 2), (None, None, ...)) == (1, 2)
    (a, b), c = ops.unpacked((ARRAY[0], 5), ((None, None), None))
    assert (value(a), value(b), c) == (1.0, 2.0, 5)
    with pytest.raises(ValueError, match="1 values for at least 2 targets"):
        ops.unpacked((1,), (None, ..., None))


def test_what_is_unpacked_into_a_call():
    assert [value(x) for x in ops.spread(tf.constant([1, 2]))] == [1, 2]
    assert ops.spread((1, 2)) == (1, 2)

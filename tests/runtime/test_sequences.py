"""What loops, `in`, `match` and starred expressions call: against Python, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import ops
from pcbatch.runtime.backends.tensorflow.structures import type_of
from pcbatch.runtime.backends.tensorflow.weak import Weak


def weak(number):
    return Weak(tf.constant(number, tf.float64 if isinstance(number, float) else tf.int32))


def value(x):
    return np.asarray(tf.convert_to_tensor(x)).tolist()


# -- loops -------------------------------------------------------------------------------------------------------------

ARRAY = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("array", [ARRAY, ARRAY.numpy(), tf.Variable(ARRAY)], ids=["tensor", "numpy", "variable"])
def test_rows_of_arrays(array):
    assert ops.shortest(array) == 3
    assert [value(ops.element(array, weak(i))) for i in range(3)] == value(ARRAY)


def test_positions_of_junk_lanes_are_harmless():
    assert value(ops.element(ARRAY, weak(3))) == [5.0, 6.0]
    assert value(ops.element((1, 2), weak(-1))) == 1


def test_an_array_without_rows():
    empty = tf.zeros([0, 2, 3], tf.int32)
    assert ops.shortest(empty, ARRAY) == 0
    assert type_of(ops.element(empty, weak(0))) == type_of(tf.zeros([2, 3], tf.int32))


def test_elements_of_structures():
    pairs = [(1, tf.constant([1.0, 2.0])), (2.5, tf.constant([3.0, 4.0]))]
    number, vector = ops.element(pairs, weak(1))
    assert isinstance(number, Weak)
    assert (value(number), value(vector)) == (2.5, [3.0, 4.0])
    assert type_of(ops.element((1, tf.constant(2, tf.int64)), weak(0))) == type_of(tf.constant(2, tf.int64))


def test_the_shortest_ends_it_unless_it_is_strict():
    assert ops.shortest(ARRAY, (1, 2)) == 2
    assert ops.shortest(ARRAY, (1, 2, 3), strict=True) == 3
    with pytest.raises(ValueError, match="lengths 3, 2"):
        ops.shortest(ARRAY, (1, 2), strict=True)


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        (tf.constant(1), "not over a number"),
        (weak(1), "not over a number"),
        ({"a": 1}, "not over a dict"),
        ("text", "not over the string"),
        ((), "an empty tuple or list"),
        ((1, tf.constant([1.0])), "must be alike"),
        ((True, 1), "must be alike"),
    ],
    ids=["scalar", "weak", "dict", "string", "empty", "shapes", "dtypes"],
)
def test_what_a_loop_cannot_go_over(sequence, message):
    with pytest.raises((TypeError, PieceRefusalError), match=message):
        ops.element(sequence, weak(0))


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


# -- match -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", [True, False])
def test_only_a_bool_is_a_flag(flag):
    for same in (flag, np.bool_(flag), tf.constant(flag)):
        assert value(ops.same_flag(same, flag)) is True
        assert value(ops.same_flag(same, not flag)) is False
    for other in (int(flag), tf.constant(int(flag)), weak(int(flag)), tf.constant([flag]), None):
        assert ops.same_flag(other, flag) is False


def test_parts_of_sequences():
    assert ops.parts((1, 2), 2) == (1, 2)
    for wrong, message in ((ARRAY, "not an array"), (weak(1), "not an array"), ("ab", "not a str"), ((1,), "never")):
        with pytest.raises(TypeError, match=message):
            ops.parts(wrong, 2)


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

"""Operators in plain helpers, and constant arrays of NumPy's there, mean what they mean in the function itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

HALVES = np.array([0.5, 1.5])
HALF = np.float64(0.5)
PAIR = [HALF, 1.5]
LARGE = np.array([1, 2**40])
COMPLEX = np.array([1j, 2.0])
FLAGS = np.array([True, False])


def half_if(flag):
    return flag * 0.5


class Scale:
    def scaled(self, flag, x):
        return flag * x


SCALE = Scale()


class Given(NamedTuple):
    halved: tf.Tensor
    scaled: tf.Tensor
    both: tf.Tensor
    counted: tf.Tensor
    large: tf.Tensor
    flags: tf.Tensor
    floats: tf.Tensor
    ints: tf.Tensor
    square: tf.Tensor


def counted(i):
    return tf.cast(+(i > 0) - -(i > 1), tf.float64) + tf.reverse(PAIR, [0])


def far(i):
    return i + LARGE


def both(i):
    return (i > 0) + (i > 1)


def flagged(i):
    return i * FLAGS


def shifted(x):
    return x + HALVES


def moved(x):
    return x - np.array([1, 2])


def square(x):
    return x @ x


@pcbatch.autobatch(jit=False)
def helped(i, x):
    return Given(
        half_if(i > 1), SCALE.scaled(i > 1, x), both(i), counted(i), far(i), flagged(i), shifted(x), moved(x), square(x)
    )


INTS, VECTORS = np.array([0, 1, 2, 3], np.int32), np.arange(8, dtype=np.float32).reshape(4, 2)


def test_operators_of_helpers_are_those_of_the_function():
    found = helped(INTS, VECTORS)
    for lane in range(4):
        wanted = helped.single(INTS[lane], VECTORS[lane])
        for name, one, many in zip(Given._fields, wanted, found, strict=True):
            one = tf.convert_to_tensor(one)
            assert one.dtype == many.dtype, name
            np.testing.assert_array_equal(one, many[lane], name)
    np.testing.assert_array_equal(found.halved, [0.0, 0.0, 0.5, 0.5])


@pcbatch.autobatch(jit=False)
def inline(i):
    return i + np.array([1, 2**40]), i.astype(np.int8) + np.array([1, 300])


def test_ints_of_two_widths_meet_in_the_wider_one():
    found = inline(INTS)
    for lane in range(4):
        for one, many in zip(inline.single(INTS[lane]), found, strict=True):
            assert one.dtype == many.dtype == tf.int64
            np.testing.assert_array_equal(one, many[lane])


def add_halves(i):
    return i + HALVES


def default(i, by=HALVES):
    return by * i


def compared(i):
    return i == HALVES


def complex_beside_int(i):
    return i + COMPLEX


def by_function(i):
    return tf.add(i, HALVES)


def by_choice(i):
    return tf.where(i > 0, i, HALF)


def by_maximum(i):
    return tf.maximum(i, HALVES)


def in_a_stack(i):
    return tf.stack([tf.stack([i, i]), HALVES])


def beyond(i):
    return tf.maximum(i, LARGE)


@pytest.mark.parametrize(
    "helper",
    [
        add_halves,
        default,
        compared,
        complex_beside_int,
        lambda i: i * HALF,
        lambda i: COMPLEX + i.astype(np.float32),
    ],
)
def test_ints_beside_floats_have_their_dtype(helper):
    @pcbatch.autobatch(jit=False)
    def function(i):
        return helper(i)

    found = function(INTS)
    for lane, many in zip(INTS, found, strict=True):
        one = tf.convert_to_tensor(function.single(lane))
        assert one.dtype == many.dtype
        np.testing.assert_array_equal(one, many)
        np.testing.assert_array_equal(np.asarray(helper(lane)), many)


@pytest.mark.parametrize("helper", [by_function, by_choice, by_maximum, in_a_stack, beyond])
def test_what_would_be_another_number_is_refused(helper):
    @pcbatch.autobatch
    def function(i):
        return helper(i)

    with pytest.raises(pcbatch.CompileError, match="PCB401"):
        function.check(INTS)


def test_elsewhere_tensorflow_converts_as_ever():
    assert (tf.constant(1) + HALVES).dtype == tf.int32
    assert tf.function(lambda i: i + HALVES)(tf.constant(1)).dtype == tf.int32
    assert (tf.constant(True) * tf.constant(0.5)).dtype == tf.bool


def guarded(i):
    try:
        return i + HALVES
    except ValueError:
        return i


def test_a_helper_that_cannot_be_part_of_the_program_is_told_what_is_wrong_with_its_operands():
    @pcbatch.autobatch
    def function(i):
        return guarded(i)

    with pytest.raises(pcbatch.CompileError, match="PCB101: `try`") as caught:
        function.check(INTS)
    assert "takes operands of one dtype, not int32 and float64" in str(caught.value)
    assert "this is in the helper `guarded`" in str(caught.value)


def _by_kind(x, i, y):
    match y:
        case float():
            x = x + 10.0
    return 2.0 * x if isinstance(i, int) else 3.0 * x


def test_helpers_are_told_of_numbers_what_they_are_told_of_one_example():
    """A counter is an int to them, whatever a lane holds for it; they took it for something else, silently."""

    @pcbatch.autobatch(jit=False)
    def function(x, n):
        total = 0.0 * x
        for i in range(n):
            total += _by_kind(x, i, i * 0.5)
        return total

    x, n = tf.constant([1.0, 2.0]), tf.constant([2, 3])
    np.testing.assert_array_equal(function(x, n), [function.single(*each) for each in zip(x, n, strict=True)])


@pcbatch.autobatch
def one_more_without(x):
    return x + True - False, x <= True


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16"])
@pytest.mark.parametrize("backend", ["tensorflow", "reference"])
def test_a_bool_as_it_is_written_stands_beside_a_number_of_any_dtype(backend, dtype):
    x = tf.constant([1, 2], dtype)
    more, is_one = one_more_without.options(backend=backend)(x)
    assert more.dtype == dtype
    assert tf.cast(more, tf.int32).numpy().tolist() == [2, 3]
    assert is_one.numpy().tolist() == [True, False]

"""Powers of integers wrap as NumPy's do, however large the exponent is, in each form and inside helpers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.pairwise import every_second

BASES, EXPONENTS = [0, 1, 2, 3, 5, 7, 10, 3, 2, 11], [64, 65, 64, 100, 70, 127, 66, 63, 0, 120]
MODES = [{}, {"form": "lockstep"}, {"jit": False}, {"backend": "reference"}]


@pcbatch.autobatch
def operator(x, y):
    return x**y


@pcbatch.autobatch
def known(x, y):
    return x**100 + 0 * y, x**3


@pcbatch.autobatch
def of_a_number(x, y):
    return 3**y + 0 * x


@pcbatch.autobatch
def in_a_helper(x, y):
    return (lambda base: tf.pow(base, y))(x)


@pcbatch.autobatch
def in_a_loop(x, y):
    total = 0 * x
    while y > 60:
        total = total * 3 + x**y
        y = y - 3
    return total


def arguments(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    return np.array(BASES, dtype), np.array(EXPONENTS, dtype)


def wrapped(base: int, exponent: int, dtype: type) -> int:
    """By Python's own integers."""
    number = pow(base, exponent, 1 << (8 * np.dtype(dtype).itemsize))
    return int(np.array([number], np.uint64).astype(dtype)[0])


@pytest.mark.parametrize(
    ("dtype", "mode"), every_second([np.int32, np.int64, np.uint32, np.uint64, np.uint8], MODES), ids=str
)
def test_a_power_wraps(dtype: type, mode: dict[str, Any]) -> None:
    found = np.asarray(operator.options(**mode)(*arguments(dtype)))
    assert found.dtype == dtype
    assert found.tolist() == [wrapped(*each, dtype) for each in zip(BASES, EXPONENTS, strict=True)]


@pytest.mark.parametrize(
    ("function", "dtype", "mode"),
    every_second([known, of_a_number, in_a_helper, in_a_loop], [np.int32, np.int64], MODES),
)
def test_each_lane_is_what_it_is_alone(function: Any, dtype: type, mode: dict[str, Any]) -> None:
    given = arguments(dtype)
    values = tf.nest.flatten(function.options(**mode)(*given))
    for lane in range(len(BASES)):
        alone = tf.nest.flatten(function.single(given[0][lane], given[1][lane]))
        assert [np.asarray(value)[lane] for value in values] == [np.asarray(each) for each in alone]


@pytest.mark.parametrize("dtype", [np.int64, np.uint16])
def test_a_power_alone_wraps_too(dtype: type) -> None:
    for base, exponent in zip(BASES, EXPONENTS, strict=True):
        assert int(operator.single(dtype(base), dtype(exponent))) == wrapped(base, exponent, dtype)


def test_the_largest_exponents() -> None:
    most = np.iinfo(np.uint64).max
    bases, exponents = np.array([3, 7, 2, 0, 1], np.uint64), np.array([most, most - 1, most, most, most], np.uint64)
    wanted = [wrapped(int(base), int(exponent), np.uint64) for base, exponent in zip(bases, exponents, strict=True)]
    assert np.asarray(operator(bases, exponents)).tolist() == wanted


def test_a_power_is_exact_beside_a_gradient() -> None:
    """Where a tape records, other rules make the operations."""

    @pcbatch.autobatch
    def scaled(w, x, y):
        while y > 90:
            w = w * tf.cast(x**y % 7, tf.float32)
            y = y - 3
        return w

    x, y = arguments(np.int32)
    w = tf.ones(len(BASES))
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = scaled(w, x, y)
    factors = [scaled.single(np.float32(1.0), *each) for each in zip(x, y, strict=True)]
    np.testing.assert_array_equal(value, factors)
    np.testing.assert_array_equal(tape.gradient(value, w), factors)


@pcbatch.autobatch
def signs(x):
    zeros = (0.0, -0.0)
    one, other = zeros
    while x > 0.0:
        x = x - 1.0
        one, other = other, one
    return np.copysign(1.0, one), np.copysign(1.0, other), np.copysign(1.0, x)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_zeros_keep_their_signs(mode: dict[str, Any]) -> None:
    """TensorFlow takes one of two equal numbers for the other where it runs operations at once."""
    x = np.array([1.0, 2.0, -0.0, 0.0], np.float32)
    one, other, last = (np.asarray(each).tolist() for each in signs.options(**mode)(x))
    assert (one, other, last) == ([-1, 1, 1, 1], [1, -1, -1, -1], [1, 1, -1, 1])


@pytest.mark.parametrize("number", [float, np.float64, np.float32])
def test_a_zero_alone_keeps_its_sign(number: Any) -> None:
    for zero in (0.0, -0.0, 0.0):
        assert signs.single(number(zero))[2] == np.copysign(1.0, zero)

"""Ints of Python's that a dtype does not have, beside arrays of it: compared as they are, refused in arithmetic."""

import operator

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import UnsupportedSyntaxError

MODES = {"xla": {}, "graph": {"jit": False}, "reference": {"backend": "reference"}}
DTYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16")
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@pcbatch.autobatch
def compared(x):
    low = (x < -200, x <= -200, x > -200, x >= -200, x == -200, x != -200)
    high = (x < 300, x <= 300, x > 300, x >= 300, x == 300, x != 300)
    return low, high, (x > -1, x <= 70000, x != 2**40)


def expected(x):
    """As Python's own ints are compared."""
    x = [int(each) for each in x]
    low = tuple(np.array([each(n, -200) for n in x]) for each in COMPARISONS)
    high = tuple(np.array([each(n, 300) for n in x]) for each in COMPARISONS)
    return (
        low,
        high,
        (np.array([n > -1 for n in x]), np.array([n <= 70000 for n in x]), np.array([n != 2**40 for n in x])),
    )


def numbers(dtype):
    bounds = np.iinfo(dtype)
    return np.array([7, 3, 0, bounds.max, bounds.max - 1, bounds.min, bounds.min + 1], dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_int_is_compared_as_it_is(dtype, mode):
    x = numbers(dtype)
    tf.nest.map_structure(np.testing.assert_array_equal, compared.options(**MODES[mode])(x), expected(x))


@pytest.mark.parametrize("wrap", [np.asarray, tf.constant], ids=["numpy", "tensorflow"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_single_has_the_same(dtype, wrap):
    x = numbers(dtype)
    for lane, each in enumerate(x):
        found = compared.single(wrap(each))
        tf.nest.map_structure(lambda a, b, at=lane: np.testing.assert_array_equal(a, b[at]), found, expected(x))


@pcbatch.autobatch
def of_the_lane(x, n):
    k = -3 if n > 0 else 500
    return x < k, x <= k, x > k, x >= k, x == k, x != k


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_so_is_one_that_differs_by_lane(dtype, mode):
    x = numbers(dtype)
    n = np.arange(len(x)) % 2
    wanted = tuple(
        np.array([each(int(number), -3 if k else 500) for number, k in zip(x, n, strict=True)]) for each in COMPARISONS
    )
    found = of_the_lane.options(**MODES[mode])(x, n)
    tf.nest.map_structure(np.testing.assert_array_equal, found, wanted)


def plus(x):
    return x + -2


def times(x):
    k = -2
    return x * k


def beneath(x):
    return 2 - 5 - x


def floored(x):
    return x // -2


def masked(x):
    return x & -4


def added(x):
    x += 300
    return x


ARITHMETIC = [plus, times, beneath, floored, masked, added]


@pytest.mark.parametrize("function", ARITHMETIC, ids=lambda each: each.__name__)
def test_arithmetic_is_refused_as_in_numpy(function):
    x = np.array([7, 3], np.uint8)
    batched = pcbatch.autobatch(function)
    with pytest.raises(UnsupportedSyntaxError, match=r"PCB117: the integer -?\d+ does not fit in uint8") as error:
        batched(x)
    assert error.value.diagnostics[0].span.text
    for wrap in (np.asarray, tf.constant):
        with pytest.raises(OverflowError):
            batched.single(wrap(x[0]))

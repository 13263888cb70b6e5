"""Negative ints of Python's beside tensors without a sign: they take the dtype, and wrap in it, alike in every mode."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

MODES = {"xla": {}, "graph": {"jit": False}, "reference": {"backend": "reference"}}
DTYPES = ("uint8", "uint16", "uint32", "uint64")


@pcbatch.autobatch
def beside(x):
    y = x
    y += -2
    found = (x + -2, x - -2, x * -2, -2 - x, -2 // x, x // -2, x % -2, x & -4, x | -4, x ^ -4, y)
    return found, (x < -2, x <= -2, x > -2, x >= -2, x == -2, x != -2)


def expected(x):
    """The same with the ints as NumPy has them in the dtype."""
    two, four = (np.array(-n).astype(x.dtype) for n in (2, 4))
    y = x + two
    found = (y, x - two, x * two, two - x, two // x, x // two, x % two, x & four, x | four, x ^ four, y)
    return found, (x < two, x <= two, x > two, x >= two, x == two, x != two)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_negative_int_wraps(dtype, mode):
    x = np.array([7, 3, 1, np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype)
    with np.errstate(over="ignore"):
        wanted = expected(x)
    tf.nest.map_structure(np.testing.assert_array_equal, beside.options(**MODES[mode])(x), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_single_has_the_same(dtype):
    for x in np.array([7, 3, np.iinfo(dtype).max], dtype):
        with np.errstate(over="ignore"):
            wanted = expected(np.array(x))
        tf.nest.map_structure(np.testing.assert_array_equal, beside.single(tf.constant(x)), wanted)


class Settings:
    offset = -3


SETTINGS, OFFSET = Settings(), -3


@pcbatch.autobatch
def of_names(x):
    k = -3
    n = 2 - 5
    found = x + k, x - n, k * x, x // k, x & (n - 1), x + SETTINGS.offset, OFFSET - x
    y = x
    for _ in range(2):
        y = y + k
    if y > k:
        k = -1
    return found, (x < k, x == n, x > OFFSET), (y, x + k)


@pcbatch.autobatch
def cast(n):
    k = -2
    x = tf.cast(n, tf.uint64)
    return x + k, x < k, x // (x - x) if n == 5 else x


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_so_does_one_that_has_a_name(dtype, mode):
    x = np.array([7, 3, 0, np.iinfo(dtype).max, np.iinfo(dtype).max - 1], dtype)
    with np.errstate(over="ignore"):
        three, four, one = (np.array(-n).astype(dtype) for n in (3, 4, 1))
        y = x + three + three
        found = x + three, x - three, three * x, x // three, x & four, x + three, three - x
        k = np.where(y > three, one, three)
        wanted = found, (x < k, x == three, x > three), (y, x + k)
    tf.nest.map_structure(np.testing.assert_array_equal, of_names.options(**MODES[mode])(x), wanted)
    for lane, each in enumerate(x):
        single = of_names.single(tf.constant(each))
        tf.nest.map_structure(lambda a, b, at=lane: np.testing.assert_array_equal(a, b[at]), single, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_so_it_does_beside_what_is_cast(mode):
    run = cast.options(**MODES[mode]).run(np.array([1, 7, 5], np.int32))
    assert [*map(int, run.status)] == [0, 0, int(pcbatch.LaneStatus.ARITHMETIC)]
    wanted = np.array([2**64 - 1, 5], np.uint64), np.array([True, True]), np.array([1, 7], np.uint64)
    for found, expected_ in zip(run.value, wanted, strict=True):
        np.testing.assert_array_equal(found[:2], expected_)

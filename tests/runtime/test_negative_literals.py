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

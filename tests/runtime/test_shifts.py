"""Shifts by more than a dtype's width, by XLA and by TensorFlow's own kernels: neither takes them as Python does."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

COUNTS = [0, 1, 5, 7, 8, 31, 32, 63, 64, 100]


@pcbatch.autobatch
def shifts(x, y):
    """Bits that leave the dtype are lost, the sign is shifted in."""
    return x << y, x >> y


@pytest.mark.parametrize("options", [{"form": "native"}, {"form": "lockstep", "jit": False}], ids=["native", "graph"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_shifts_beyond_the_width(dtype, options):
    numbers, bits = [1, 3, 77, 126, -1, -5, -128, 2, -2, 127], 8 * np.dtype(dtype).itemsize
    x, y = (np.array(each, np.int64).astype(dtype) for each in (numbers, COUNTS))
    left, right = shifts.options(**options)(tf.constant(x), tf.constant(y))
    wanted = [(int(a) << int(b)) % 2**bits for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(left, np.array(wanted, np.uint64).astype(dtype))
    np.testing.assert_array_equal(right, [int(a) >> int(b) for a, b in zip(x, y, strict=True)])

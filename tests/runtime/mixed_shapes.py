"""Programs that XLA might abort at, run in a process of their own: see `test_mixed_compiled`."""

import numpy as np
import tensorflow as tf

import pcbatch
from tests.mixed import forced


@pcbatch.autobatch
def unused(pair, other, n):
    x = pair[0]
    while n > 0:
        x = x + 1
        n = n - 1
    return x


@pcbatch.autobatch
def kept(values, n):
    if n == 0:
        return values
    deeper = kept(tuple(v[::-1] for v in values), n - 1)
    return tuple(tf.where(n > 2, v, w[::-1]) for v, w in zip(values, deeper, strict=True))


@pcbatch.autobatch
def never(x, n):
    y = x
    while n > 0:
        if n > 10**6:
            y = x * 2
            assert n < 0, f"{y}"
        n = n - 1
    return x


@pcbatch.autobatch
def only_constants(n):
    total = 0
    for i in range(n):
        total += i if i % 3 else 7
    return total, tf.zeros([0]), 42


DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "bfloat16", "float64", "complex64")


def main():
    """Every program in three lanes, each lane as `f.single`."""
    numbers, n = np.array([[0, 1], [2, 3], [1, 0]]), np.array([0, 1, 4], np.int32)
    given = tuple(tf.cast(numbers, each) for each in DTYPES)
    for function, arguments in (
        (unused, ((n, numbers > 1), tf.zeros([3, 2], tf.complex64), n)),
        (unused, ((n * 1.0, tf.zeros([3, 0])), tf.zeros([3, 0, 5]), n)),
        (kept, (given, n)),
        (never, (tf.zeros([3, 9], tf.float64), n)),
        (only_constants, (n,)),
    ):
        found = function.options(form="lockstep")
        value = found(*arguments)
        assert all(each.startswith("mixed") for each in found.stats().forms), found.stats().forms
        for lane in range(3):
            one = function.single(*tf.nest.map_structure(lambda array, lane=lane: array[lane], arguments))
            for got, wanted in zip(tf.nest.flatten(value), tf.nest.flatten(one), strict=True):
                assert np.array_equal(got[lane], wanted), (function, lane)


if __name__ == "__main__":
    with forced():
        main()

"""`a += v` of an array changes it under all its names, as in NumPy, in `f.single`, too."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def added(x):
    m = np.zeros((2, 2), np.float32)
    a = b = np.ones(2, np.float32)
    row = m[1]
    row += x
    a += x
    m[0] += x
    return m, row, a, b


def test_what_has_another_name_changes_with_it():
    x = np.array([1.5, -2.0], np.float32)
    for backend in ("tensorflow", "reference"):
        given = added.options(backend=backend)(x)
        for lane, v in enumerate(x):
            for one, two, three in zip(given, added.__wrapped__(v), added.single(v), strict=True):
                np.testing.assert_array_equal(one[lane], two)
                np.testing.assert_array_equal(three, two)

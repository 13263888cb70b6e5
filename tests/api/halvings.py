"""A small batched function, made anew for each test that looks at what is compiled of it."""

import numpy as np

import pcbatch

BATCH = np.array([3, 7, 4, 5], np.int32)


def fresh(**options):
    """A batched function that nothing is compiled of yet."""

    @pcbatch.autobatch(jit=False, **options)
    def halvings(n):
        count = 0
        while n > 1:
            n = n // 2
            count += 1
        return count

    return halvings

"""Truth values as loop variables and results."""

import numpy as np

import pcbatch

DTYPES = ("bool", "bool", "int32")


@pcbatch.autobatch
def bool_variables(n):
    done = False
    odd = n % 2 == 1
    count = 0
    while not done:
        count += 1
        done = count * count >= n or (odd and count == 3)
        odd = not odd
    return done, odd, count


def batch(rng, lanes):
    return (rng.integers(0, 20, lanes, dtype=np.int32),)


def twin(n):
    root = max(1, int(np.ceil(np.sqrt(n))))
    count = min(root, 3) if n % 2 else root
    return True, bool(n % 2) != bool(count % 2), count

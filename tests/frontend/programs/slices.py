import numpy as np

import pcbatch

EXAMPLES = [(np.arange(6), np.arange(12).reshape(3, 4), 1), (np.arange(6) * 2, np.ones((3, 4), int), 0)]


def listed(array):
    return array.tolist()


@pcbatch.autobatch
def start(n):
    return n + 1


@pcbatch.autobatch
def slices(xs, m, i):
    xs[i : i + 2] = xs[i + 2 : i + 4]
    p = start(i)
    xs[p : p + 1] += start(2)
    xs[-2:] = 7
    xs[...] *= 2
    m[i, :] = 1
    m[:, i] -= 1
    m[:, :] += i
    m[i, 1:3], b = (8, 9), start(i)
    b = m[i : i + 1, ::-1] + b
    i <<= 1
    return listed(xs), listed(m), i, listed(b)

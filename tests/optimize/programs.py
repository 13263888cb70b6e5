"""Small batched functions, one for what each pass is there to remove."""

import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def fibonacci(n):
    if n <= 1:
        return 1
    left = fibonacci(n - 2)
    right = fibonacci(n - 1)
    return left + right


@pcbatch.autobatch
def kept(n, scale):
    """`scale` is passed on unchanged, `n` is not; `rest` is needed behind both calls."""
    if n == 0:
        return scale
    rest = n * scale
    first = kept(n - 1, scale)
    second = kept(n // 2, scale)
    return first + rest - second


@pcbatch.autobatch
def up(n, step):
    if n > 5:
        return n
    return down(n + step, step) + 1


@pcbatch.autobatch
def down(m, by):
    if m > 3:
        return m
    return up(m + by, by) * 2


@pcbatch.autobatch
def swapped(a, b):
    """A tail call, one of whose arguments is computed from a parameter that the other one overwrites."""
    if b == 0:
        return a
    return swapped(b, a % b)


@pcbatch.autobatch
def traded(n, a, b):
    """Arguments that trade places."""
    if n == 0:
        return a - b
    return traded(n - 1, b, a) + a


@pcbatch.autobatch
def between(n):
    """`rest` is read between the two calls that it lives across."""
    if n <= 0:
        return 1
    rest = n * 3
    first = between(n - 1)
    second = between(n - 1 - (first + rest) % 2)
    return first + second * rest


@pcbatch.autobatch
def helper(x):
    return x * 2 + 1


@pcbatch.autobatch
def outside(x):
    """A call that cannot come back here: nothing has to be saved."""
    y = x + 3
    z = helper(x)
    return y * z


@pcbatch.autobatch
def marks(n):
    """Stores to an array, and a choice that leaves its block."""
    seen = tf.zeros([4], tf.int32)
    for i in range(n):
        previous = seen[i % 4]
        seen[i % 4] = previous + i
    return tf.reduce_sum(seen * tf.constant([1, 10, 100, 1000]))


ENTRIES = {
    "fibonacci": (fibonacci, [(0,), (1,), (5,), (7,)]),
    "kept": (kept, [(0, 3), (3, 2), (5, -1)]),
    "up": (up, [(0, 1), (-4, 2), (7, 1)]),
    "swapped": (swapped, [(12, 18), (35, 21), (7, 0)]),
    "traded": (traded, [(0, 1, 2), (1, 5, 3), (4, 2, 9)]),
    "between": (between, [(0,), (2,), (5,)]),
    "outside": (outside, [(0,), (4,)]),
    "marks": (marks, [(0,), (3,), (9,)]),
}
"""Each entry function with the examples on which its programs are compared."""

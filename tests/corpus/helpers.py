"""Plain functions that branch, loop, use `math` and call batched functions: they are part of the program, too."""

import math

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32", "float32", "int32")


def bell(x):
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def clipped(x, top):
    if x > top:
        return top
    return x


def steps(n):
    """How many steps down to one half `n`, counted by a batched function, and by a helper of this helper."""
    return log2(n) + (1 if is_small(n) else 0)


def is_small(n):
    while n > 10:
        n = n - 10
    return n < 5


@pcbatch.autobatch
def log2(n):
    return 0 if n <= 1 else 1 + log2(n // 2)


def gcd(a, b):
    """Is given numbers without a dtype, counters and literals, here."""
    while b:
        a, b = b, a % b
    return a


def fixed_point(g, x):
    for _ in range(10):
        x = g(x)
    return x


@pcbatch.autobatch
def helpers(x, n):
    total = 0.0
    while x < 3.0:
        total += bell(x)
        x += 1.0
    counts = [steps(n + k) for k in range(2)]
    divisors = 0
    for k in range(n):
        divisors += gcd(12, k)
    return clipped(total, 1.0), sum(counts), fixed_point(lambda v: tf.cos(v) * total, x), divisors


def batch(rng, lanes):
    return rng.uniform(-2.0, 4.0, lanes).astype(np.float32), rng.integers(0, 40, lanes, dtype=np.int32)


def twin(x, n):
    total = 0.0
    while x < 3:
        total += math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        x += 1
    count = sum(
        max(int(n + k).bit_length() - 1, 0) + ((n + k if n + k <= 10 else (n + k - 1) % 10 + 1) < 5) for k in (0, 1)
    )
    v = x
    for _ in range(10):
        v = math.cos(v) * total
    return min(total, 1.0), count, v, sum(math.gcd(12, k) for k in range(n))

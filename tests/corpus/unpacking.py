"""Starred targets and arguments, `**` of a dict, lambdas, comprehensions, walrus in all positions, bit operators."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32", "float32")


def weighted(first, second, *, scale, shift=0.0):
    return first * scale + second + shift


@pcbatch.autobatch
def unpacking(xs, n):
    first, *middle, last = xs
    head, *tail = (n, *middle)
    options = {"scale": first, "shift": last}
    total = weighted(*middle, **options) + weighted(*middle, scale=head, **{"shift": tail[1]})
    (a, b), c = tf.reshape(xs, [2, 2])[0], total
    total = max(*xs, c) + (lambda u, v=a: u * v - b)(total)
    squares = [x * x for x in (first, last) if n is not None]
    pairs = {key: value + 1.0 for key, value in options.items()}
    total += sum(squares) + pairs["scale"] + sum(x * 1.0 for x in (a, b))
    k, half = 0, 0.0
    while (k := k + 1) < 5 and (odd := (k & 1) == 1) | (k > 2):
        total += (half := total / 2.0) if odd else 0.25
        total -= half
    matrix = tf.reshape(xs, [2, 2]) @ tf.eye(2)
    bits = (~k << 3 >> 1) ^ (k | 8) & +k
    return total + matrix[1, 0] ** 2, bits, xs[1:3][0] * -1.0


def batch(rng, lanes):
    return rng.normal(size=(lanes, 4)).astype(np.float32), rng.normal(size=lanes).astype(np.float32)


def twin(xs, n):
    p, q, r, s = (float(x) for x in xs)
    total = q * p + r + s + q * n + r + r
    total = max(p, q, r, s, total) + total * p - q
    total += p * p + s * s + p + 1 + p + q
    k = 0
    while True:
        k += 1
        if k >= 5:
            break
        if k % 2 == 1:
            half = total / 2
            total += half
        elif k > 2:
            total += 0.25
        else:
            break
        total -= half
    return total + r * r, (~k << 3 >> 1) ^ (k | 8) & k, -q

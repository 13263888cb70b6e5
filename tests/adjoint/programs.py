"""Programs with gradients: loops, recursion with a stack, mutual recursion, stores, lookups, layers."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

import pcbatch

_rng = np.random.default_rng(7)
W = tf.Variable(_rng.normal(size=(3, 3)) * 0.4, name="w")
B = tf.Variable(_rng.normal(size=3), name="b")
TABLE = tf.Variable(_rng.normal(size=(7, 3)), name="table")
CELL = keras.layers.Dense(3, activation="tanh", dtype="float64")
CELL.build((None, 3))

VECTORS = tf.constant(_rng.normal(size=(6, 3)))
NUMBERS = tf.constant(_rng.normal(size=6))
MATRICES = tf.constant(_rng.normal(size=(6, 2, 3)))
COUNTS = tf.constant([3, 0, 5, 1, 7, 2])


@pcbatch.autobatch
def loop(x, n):
    while n > 0:
        x = tf.tanh(tf.linalg.matvec(W, x) + B)
        n = n - 1
    return x


@pcbatch.autobatch
def tree(x, n, k):
    if n <= 1:
        return tf.tanh(x * tf.gather(TABLE, k))
    left = tree(x * 0.9, n - 2, (k + 1) % 7)
    right = tree(x + 0.1, n - 1, (k + 3) % 7)
    return tf.tanh(tf.linalg.matvec(W, left) + right + B)


@pcbatch.autobatch
def cells(x, n, k):
    """What a leaf gives depends on no lane's floats: its piece is late, in chunks that have several rows of a lane."""
    if n <= 1:
        return tf.tanh(tf.linalg.matvec(W, tf.gather(TABLE, k)) + B)
    left = cells(x, n - 2, (k + 1) % 7)
    right = cells(x, n - 1, (k + 3) % 7)
    return tf.tanh(tf.linalg.matvec(W, left * x) + right + B)


@pcbatch.autobatch
def even(x, n):
    if n == 0:
        return x
    return odd(tf.sin(x), n - 1) * x


@pcbatch.autobatch
def odd(x, n):
    if n == 0:
        return x * 2.0
    return even(tf.cos(x) + x * 0.1, n - 1) + x


@pcbatch.autobatch
def stores(a, x, n):
    i = 0
    while i < n:
        a[i % 3] = x * a[(i + 1) % 3] + a[i % 3]
        x = tf.sin(x)
        a[1:3] = a[0:2] * x
        i = i + 1
    return a, x


@pcbatch.autobatch
def elements(a, m, n):
    """Of `a` and `m` only elements are read, of `seen` they are stored, too."""
    x, seen = tf.zeros([], tf.float64), tf.zeros([4], tf.float64)
    i = 0
    while i < n:
        x = tf.sin(x + a[i % 3] * m[i % 2, (i + 1) % 3] + a[(i + 1) % 3] * a[i % 3])
        seen[i % 4] = x
        x = x + seen[(i + 1) % 4] * 0.5
        i = i + 1
    return x, seen


@pcbatch.autobatch
def saved(a, n):
    """Elements of an array that lies in a stack."""
    if n <= 0:
        return a[0]
    left = saved(a * 0.9, n - 1)
    right = saved(a + 0.1, n - 3)
    return tf.sin(left * a[n % 3] + right * a[(n + 1) % 3])


@pcbatch.autobatch
def deep(x, n):
    if n <= 0:
        return x
    y = deep(tf.sin(x) + 0.01, n - 1)
    return y * 0.99 + x * 0.01


@pcbatch.autobatch
def layered(x, n):
    """The weights are read by the layer, and the table by a helper."""
    while n > 0:
        x = CELL(x[None])[0] + looked_up(n)
        n = n - 1
    return x


def looked_up(n):
    return tf.nn.embedding_lookup(TABLE, n % 7)


@tf.custom_gradient
def seven(x):
    return 2.0 * x, lambda upstream: 7.0 * upstream


@pcbatch.autobatch
def own_gradient(x, n):
    """A gradient that no derivative of the operations is."""
    while n > 0:
        x = tf.sin(seven(x))
        n = n - 1
    return x


@pcbatch.autobatch
def fails(x, n):
    """1 / x is infinite in the lanes that fail afterwards."""
    y = tf.linalg.matvec(W, tf.stack([1.0 / x, x, x]))
    while n > 0:
        y = y * 0.5
        n = n - 1
    assert x != 0.0
    return y


CASES = {
    "loop": (loop, (VECTORS, COUNTS), (W, B)),
    "tree": (tree, (VECTORS, COUNTS, COUNTS), (W, B, TABLE)),
    "cells": (cells, (VECTORS, COUNTS, COUNTS), (W, B, TABLE)),
    "even": (even, (NUMBERS, COUNTS), ()),
    "stores": (stores, (VECTORS, NUMBERS, COUNTS), ()),
    "elements": (elements, (VECTORS, MATRICES, COUNTS), ()),
    "saved": (saved, (VECTORS, COUNTS), ()),
    "deep": (deep, (NUMBERS, tf.constant([3, 0, 50, 7, 120, 1])), ()),
    "layered": (layered, (VECTORS, COUNTS), (CELL.kernel.value, CELL.bias.value, TABLE)),
    "own_gradient": (own_gradient, (NUMBERS, COUNTS), ()),
}
"""Each with its arguments, and the variables by which it has gradients."""

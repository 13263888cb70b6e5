"""Programs whose way back is printed: lines of this file are in the goldens, so nothing else is here."""

from __future__ import annotations

import tensorflow as tf

import pcbatch

W = tf.Variable([[0.1, 0.2], [0.3, 0.4]])
TABLE = tf.Variable(tf.ones([5, 2]))


@pcbatch.autobatch
def tree(x, n):
    """A late piece, pushes and pops, a product, a lookup."""
    if n <= 1:
        return tf.tanh(tf.linalg.matvec(W, TABLE[n]))
    left = tree(x, n - 1)
    right = tree(x, n - 2)
    return tf.tanh(tf.linalg.matvec(W, left) + right * x)


@pcbatch.autobatch
def stored(a, n):
    """Elements that are read and stored; a sum of all rows."""
    seen = tf.zeros([4])
    i = 0
    while i < n:
        seen[i % 4] = a[i % 3] * W[0, 1]
        i = i + 1
    return seen

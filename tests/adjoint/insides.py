"""Programs whose lines run functions of TensorFlow's: conditionals, loops, calls; and lookups by places of lanes."""

# ruff: noqa: B023 (arms are called before the variable is bound anew)
from __future__ import annotations

import numpy as np
import tensorflow as tf

import pcbatch
from tests.adjoint.programs import TABLE, B, W

ZERO = tf.Variable(0.0, dtype=tf.float64)


@tf.function(autograph=False)
def called(x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x), lambda: x * tf.cos(x) + B)


def at(x, k):
    return x[k % 3]


@pcbatch.autobatch
def conditional(x, n, k):
    while n > 0:
        x = tf.tanh(tf.cond(x[0] > 0.0, lambda: tf.linalg.matvec(W, x), lambda: x * x + B))
        n = n - 1
    return x


@pcbatch.autobatch
def traps(x, n, k):
    """Arms that are infinite, or not at all, for lanes that do not take them."""
    while n > 0:
        x = tf.cond(
            x[0] > 0.0,
            lambda: tf.linalg.matvec(W, tf.sqrt(x[0]) + tf.math.log(x[0]) * x) * 0.1,
            lambda: tf.cond(
                x[1] > 0.0,
                lambda: tf.linalg.matvec(W, tf.math.log(x[1]) * x),
                lambda: x * tf.gather(TABLE, k % 7) * tf.math.sqrt(1.0 - x[0]),
            ),
        )
        n = n - 1
    return tf.tanh(x)


@pcbatch.autobatch
def untaken(x, n, k):
    """An arm that nobody takes, of a variable at which its derivative is infinite."""
    while n > 0:
        x = tf.sin(tf.cond(x[0] > 99.0, lambda: x * tf.sqrt(ZERO), lambda: x * 2.0))
        n = n - 1
    return x


@pcbatch.autobatch
def switched(x, n, k):
    while n > 0:
        x = tf.switch_case(k % 4, [lambda: tf.sin(x), lambda: x * x, lambda: tf.linalg.matvec(W, x)])
        x = tf.case([(x[0] > 0.5, lambda: x * 0.5), (x[1] > 0.0, lambda: x + B)], default=lambda: called(x))
        n = n - 1
    return x


@pcbatch.autobatch
def looped(x, n, k):
    while n > 0:
        pair = tf.scan(lambda a, e: tf.sin(tf.linalg.matvec(W, a) + e), tf.stack([x, x * x]), tf.zeros_like(x))
        x = tf.map_fn(lambda e: tf.cond(e > 0.0, lambda: tf.sin(e), lambda: e * e), pair[-1])
        x = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sin(v) + x), (0, x))[1]
        x = x + tf.foldl(lambda a, e: tf.sin(a * e), x)
        n = n - 1
    return x


@pcbatch.autobatch
def placed(x, n, k):
    while n > 0:
        part = tf.slice(x, [k % 2], [2])
        row = tf.slice(TABLE, [k % 5, 1], [2, 2])[1]
        x = tf.tanh(
            tf.concat([part, x[:1]], 0) * at(x, k) + tf.concat([row, x[:1]], 0) + tf.gather_nd(x, [[0], [k % 3], [1]])
        )
        n = n - 1
    return x


@pcbatch.autobatch
def one_place(x, n, k):
    """At one place alone TensorFlow has no gradient."""
    while n > 0:
        x = tf.sin(x * tf.gather_nd(x, tf.stack([k % 3])))
        n = n - 1
    return x


CASES = {each.__name__: each for each in (conditional, traps, untaken, switched, looped, placed)}
_rng = np.random.default_rng(5)
ARGUMENTS = (
    tf.constant(_rng.normal(size=(6, 3))),
    tf.constant([3, 0, 2, 1, 2, 2]),
    tf.constant([0, 1, 2, 3, 4, 5]),
)

"""An opaque function with its own batched form: two results, an operand that all lanes share, in a loop and a call."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32", "float32")
KNOTS = tf.constant([0.0, 0.5, 1.5, 3.0])


@pcbatch.primitive(batched=lambda knots, x: _place_all(knots, x), shared=("knots",))
def place(knots, x):
    """The interval of `knots` in which x lies, and how far; TensorFlow's own rule for it is set aside."""
    interval = tf.searchsorted(knots, tf.reshape(x, [1]), side="right")[0]
    return interval, {"gap": x - tf.reduce_max(tf.where(knots <= x, knots, 0.0))}


def _place_all(knots, x):
    below = knots <= x[:, None]
    gap = x - tf.reduce_max(tf.where(below, knots, 0.0), axis=1)
    return tf.reduce_sum(tf.cast(below, tf.int32), axis=1), {"gap": gap}


@pcbatch.autobatch
def descend(x, depth):
    if depth <= 0:
        return x
    interval, rest = place(KNOTS, x)
    return descend(x - rest["gap"] * 0.5, depth - 1) + tf.cast(interval, tf.float32)


@pcbatch.autobatch
def own_primitive(x, n):
    count = 0
    for i in range(n):
        interval, rest = place(KNOTS, x * i)
        count += interval
        x = x + rest["gap"]
    return x, count, descend(x, n)


def batch(rng, lanes):
    return rng.uniform(0, 3, lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)


def twin(x, n):
    knots = (0.0, 0.5, 1.5, 3.0)

    def where(x):
        below = [knot for knot in knots if knot <= x]
        return len(below), x - max(below)

    def descended(x, depth):
        if depth <= 0:
            return x
        interval, gap = where(x)
        return descended(x - gap * 0.5, depth - 1) + interval

    count = 0
    for i in range(n):
        interval, gap = where(x * i)
        count += interval
        x += gap
    return x, count, descended(x, n)

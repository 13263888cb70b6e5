"""`with` blocks that assign what they have read, read what they have assigned, and keep older values for later."""

import contextlib

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",) * 4


@pcbatch.autobatch
def slope(x):
    with tf.GradientTape() as tape:
        x = tf.identity(x)
        tape.watch(x)
        with tf.name_scope("square"):
            y = x * x
    return tape.gradient(y, x)


@pcbatch.autobatch
def with_blocks(v, x):
    kept = v
    with tf.name_scope("first"):
        v = v * 2.0
        z = v + 1.0
    with tf.name_scope("second"), contextlib.nullcontext(x) as held:
        x = x + 1.0
        x = x * 10.0
        y = x + 0.5
        z = z * held
    turns = kept
    while turns < 4.0:
        turns = turns + 1.5
    old = turns
    with contextlib.nullcontext((turns, y)) as (turns, y):
        turns = turns * turns
        w = old * turns
        y, old = old, y
    return z, kept * w, old - y, slope(turns)


def batch(rng, lanes):
    return tuple(rng.integers(-8, 9, lanes).astype(np.float32) / 2 for _ in range(2))


def twin(v, x):
    turns = v
    while turns < 4:
        turns += 1.5
    return (2 * v + 1) * x, v * turns**3, (x + 1) * 10 + 0.5 - turns, 2 * turns**2

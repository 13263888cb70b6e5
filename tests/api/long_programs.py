"""Functions whose runs tests stop, save and resume, in other processes too, so they stand in a module."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

import pcbatch

WEIGHTS = np.linspace(0.1, 0.9, 5, dtype=np.float32)
OFFSET = tf.Variable(0.25)
LIMIT = 40
FACTORS = [0.5, 0.75]


class Shift:
    """An object whose attribute only its own method reads."""

    by = 0.0

    def __call__(self, x):
        return x + self.by


SHIFT = Shift()


def bend(x):
    return SHIFT(tf.sin(x * FACTORS[0])) + LIMIT / 100.0


@pcbatch.autobatch
def depth(n, x):
    """A recursion `n` calls deep: stacks grow. Lanes with n of -1 fail at once, those beyond 1000 at `max_depth`."""
    assert n >= 0, f"{n} calls are none"
    if n == 0:
        return x, x > 0.0
    y, positive = depth(n - 1, x * 0.75 + 0.1)
    return y / 3.0 + x, positive == (y > 0.3)


@pcbatch.autobatch(in_axes=(0, None))
def walk(n, scale):
    """A loop, with all that a program can read: an argument for all lanes, captured arrays, a variable, a helper."""
    x, i = 0.0, 0
    while i < n:
        x = bend(x) * scale + WEIGHTS[i % 5] - OFFSET
        i += 1
    return x


class Point(NamedTuple):
    x: float
    y: float


@pcbatch.autobatch(static_argnames=("power",))
def orbit(start, n, power):
    """Structures of a class of this module, and a static argument."""
    x, y = start.x, start.y
    while n > 0:
        x, y = y, x * 0.5 + y**power * 0.25
        n -= 1
    return Point(x, y)


@pcbatch.autobatch
def narrow(x, n):
    """A dtype that NumPy's files do not know, and bools."""
    odd = False
    while n > 0:
        x, n, odd = x * tf.cast(1.25, tf.bfloat16), n - 1, not odd
    return x, odd


BATCHES = {
    "depth": (np.array([3, 40, -1, 0, 300, 17], np.int32), np.linspace(-1, 1, 6, dtype=np.float32)),
    "walk": (np.array([0, 90, 5, 33], np.int32), np.float32(0.5)),
    "orbit": (Point(np.ones(3, np.float32), np.array([0.1, 0.2, 0.3], np.float32)), np.array([9, 0, 60], np.int32), 2),
    "narrow": (tf.constant([0.5, 1.5, 3.0], tf.bfloat16), np.array([1, 4, 30], np.int32)),
}
STATICS = {"orbit": {"power": 2}}

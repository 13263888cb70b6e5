"""Programs whose calls are forked, over trees in arrays: `left` and `right` of each node, -1 at leaves."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import pcbatch

RNG = np.random.default_rng(7)
W = tf.Variable(RNG.normal(size=(3, 6)) * 0.5)
B = tf.Variable(RNG.normal(size=3))
TABLE = tf.Variable(RNG.normal(size=(7, 3)))
NODES = 13


def shaped(leaves: int, rng: np.random.Generator, kind: str = "any") -> tuple[list[int], list[int]]:
    """A tree of so many leaves: its left and right children by node."""
    left, right = [-1] * NODES, [-1] * NODES
    used, waiting = 1, [(0, leaves)]
    while waiting:
        node, count = waiting.pop()
        if count > 1:
            first = {"left": count - 1, "right": 1, "even": count // 2, "any": int(rng.integers(1, count))}[kind]
            left[node], right[node] = used, used + 1
            waiting += [(used, first), (used + 1, count - first)]
            used += 2
    return left, right


_rng = np.random.default_rng(3)
KINDS = [(1, "any"), (7, "left"), (7, "right"), (6, "even"), (2, "any"), (5, "any"), (1, "any"), (7, "any")]
_pairs = [shaped(leaves, _rng, kind) for leaves, kind in KINDS]
LEFT, RIGHT = (tf.constant(np.array(each, np.int32)) for each in zip(*_pairs, strict=True))
WORD = tf.constant(_rng.integers(0, 7, (len(KINDS), NODES)), tf.int32)
VALUE = tf.constant(_rng.normal(size=(len(KINDS), NODES, 3)))
SCALE = tf.constant(_rng.normal(size=len(KINDS)))
START = tf.constant(_rng.normal(size=(len(KINDS), 3)))


def joined(h, g):
    return tf.tanh(tf.linalg.matvec(W, tf.concat([h, g], 0)) + B)


@pcbatch.autobatch(fork=True)
def worded(left, right, word, node):
    """Rows of a table at leaves."""
    if left[node] < 0:
        return tf.gather(TABLE, word[node])
    h = worded(left, right, word, left[node])
    g = worded(left, right, word, right[node])
    return joined(h, g)


@pcbatch.autobatch(fork=True)
def valued(left, right, value, scale, node, x):
    """Floats that lie by example, elements and whole, and one that is handed down, another for each call."""
    if left[node] < 0:
        return value[node] * scale + tf.sin(x)
    y = tf.sin(x) * scale
    h = valued(left, right, value, scale, left[node], y)
    g = valued(left, right, value, scale, right[node], x * 0.5 + value[node])
    return joined(h, g) + x


@pcbatch.autobatch(fork=True)
def looped(left, right, value, node):
    """Calls in a loop, and work between joins and the next fork."""
    if left[node] < 0:
        return value[node]
    total = tf.zeros([3], tf.float64)
    for k in range(2):
        child = left[node] if k == 0 else right[node]
        total += looped(left, right, value, child) * (1.0 + k)
    return tf.sin(total)


@pcbatch.autobatch(fork=True)
def twice(left, right, value, node, x):
    """A group after another, the second of what the first gives."""
    if left[node] < 0:
        return value[node] * x
    h = twice(left, right, value, left[node], x)
    g = twice(left, right, value, right[node], x * 0.5)
    if tf.reduce_sum(h) > 0.0:
        return joined(h, g)
    y = tf.sin(h + g)
    a = twice(left, right, value, left[node], y)
    b = twice(left, right, value, right[node], y * x)
    return a * b + y


@pcbatch.autobatch(fork=True)
def rowed(n, x):
    """A group right behind another, which is given what that gives, and what was there before both."""
    if n <= 0:
        return tf.sin(x) * B[0]
    y = rowed(n - 1, x * 0.5) + rowed(n - 2, x)
    return rowed(n - 2, y) * rowed(n - 3, y * 0.5 + x)


@pcbatch.autobatch(fork=True)
def fragile(left, right, value, node, trap):
    """Fails at a leaf, after a division by zero."""
    if left[node] < 0:
        assert node != trap, "a trap"
        return tf.linalg.matvec(W[:, :3], value[node] / tf.cast(node - trap, tf.float64))
    h = fragile(left, right, value, left[node], trap)
    g = fragile(left, right, value, right[node], trap)
    return joined(h, g)


@pcbatch.autobatch(fork=True)
def pairs(left, right, value, node):
    """Two results, one of them not a float; calls that are not forked around them."""
    if left[node] < 0:
        return value[node], 1
    h, m = pairs(left, right, value, left[node])
    g, n = pairs(left, right, value, right[node])
    return joined(h, g) * tf.cast(m, tf.float64), m + n


@pcbatch.autobatch(fork=True)
def rooted(left, right, value, x):
    """Work before and behind the recursion."""
    h, n = pairs(left, right, value * x[0], 0)
    return h * x / tf.cast(n, tf.float64)


@pcbatch.autobatch(fork=True)
def maybe(left, right, value, node):
    """Calls under conditions."""
    total = value[node]
    if left[node] >= 0:
        total += maybe(left, right, value, left[node])
    if right[node] >= 0:
        total += tf.sin(maybe(left, right, value, right[node]))
    return tf.sin(total)


@pcbatch.autobatch(fork=True)
def armed(left, right, value, scale, node, x):
    """Calls under conditions: in the arms are weights, rows of a table, stores, and what is infinite elsewhere."""
    if left[node] < 0:
        return value[node] * scale + tf.gather(TABLE, node % 7)
    found = tf.zeros([2, 3], tf.float64)
    for k in range(2):
        child = left[node] if k == 0 else right[node]
        if (child + k) % 3 != 1:
            h = armed(left, right, value, scale, child, x * scale * (1 / ((child + k) % 3 - 1)))
            found[k] = joined(h, x) + tf.gather(TABLE, child % 7)
        else:
            found[k] = tf.linalg.matvec(W[:, 3:], x * value[node])
    return tf.sin(found[0]) * found[1] + x


@pcbatch.autobatch(fork=True)
def passed(n, x, y):
    """A call under a condition that is given another `y` than the lane goes on with."""
    if n <= 0:
        return tf.sin(x) * B + y
    z = passed(n - 1, x * 0.5, x)
    if n % 2 == 0:
        z = z * passed(n - 2, x, x * 2.0)
    return z * y


@pcbatch.autobatch(fork=True)
def carried(n, x):
    """What all calls are given is written by none of them, and read behind them: it stays where it is."""
    if n <= 0:
        return tf.sin(x)
    z = carried(n - 1, x)
    if n % 2 == 0:
        z = z * carried(n - 2, x)
    return z * x


@pcbatch.autobatch(fork=True)
def carrying(n, x):
    return carried(n, x * 0.5) + x


NONE = tf.zeros([len(KINDS)], tf.int32)
TRAPS = tf.constant([0, -1, 2, -1, 1, -1, -1, 100], tf.int32)
CASES = {
    "worded": (worded, (LEFT, RIGHT, WORD, NONE), (W, B, TABLE)),
    "valued": (valued, (LEFT, RIGHT, VALUE, SCALE, NONE, START), (W, B)),
    "looped": (looped, (LEFT, RIGHT, VALUE, NONE), ()),
    "rowed": (rowed, (tf.constant([0, 1, 4, 2]), SCALE[:4]), (B,)),
    "twice": (twice, (LEFT, RIGHT, VALUE, NONE, START), (W, B)),
    "fragile": (fragile, (LEFT, RIGHT, VALUE, NONE, TRAPS), (W, B)),
    "maybe": (maybe, (LEFT, RIGHT, VALUE, NONE), ()),
    "armed": (armed, (LEFT, RIGHT, VALUE, SCALE, NONE, START), (W, B, TABLE)),
    "passed": (passed, (tf.range(len(KINDS)), START, VALUE[:, 0]), (B,)),
    "carrying": (carrying, (tf.constant([0, 1, 4, 3]), SCALE[:4]), ()),
    "rooted": (rooted, (LEFT, RIGHT, VALUE, START), (W, B)),
}

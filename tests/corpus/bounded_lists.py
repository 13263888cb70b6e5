"""Bounded lists: a stack of things to do, elements read and stored, loops; lanes that overfill one or find it empty."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "int32", "int32", "float32", "int32", "int32", "float32")
ROOM = 6


@pcbatch.autobatch
def halved(x):
    while x > 1.0:
        x = x / 2.0
    return x


@pcbatch.autobatch
def bounded_lists(n, take):
    todo = pcbatch.bounded([], tf.int32, ROOM)
    todo.append(n)
    seen = 0
    while todo:
        node = todo.pop()
        seen += node
        if node > 1:
            todo.append(node // 2)
            todo.append(node - 2)
    pairs = pcbatch.bounded([2], tf.float32, ROOM)
    for i in range(n % ROOM):
        pairs.append(tf.stack([float(i), 0.5]))
    total = 0.0
    for at, pair in enumerate(pairs):
        total += pair[0] * pair[1] + float(at)
    total += sum(halved(pair[0]) for pair in pairs)
    if len(pairs) > 1:
        pairs[0] = tf.stack([total, 1.0])
        pairs[-1] = pairs[0] + 1.0
        total += pairs[len(pairs) - 1][0]
    while take > 0:
        todo.append(take if pairs.pop()[0] > 1.0 else 7)
        take -= 1
    return seen, todo, pairs, len(pairs), total


def batch(rng, lanes):
    return rng.integers(0, 16, lanes, dtype=np.int32), rng.integers(0, 4, lanes, dtype=np.int32)


def status(n, take):
    todo = [n]
    while todo:
        node = todo.pop()
        if node > 1:
            todo += [node // 2, node - 2]
        if len(todo) > ROOM:
            return "INDEX"
    return "INDEX" if take > n % ROOM else "OK"


def message(n, take):
    return "list"

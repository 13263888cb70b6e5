"""Heaps and sorted lists in loops: each loop over the list is a function of the program, for all calls."""

from __future__ import annotations

import bisect
import heapq

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X = np.array([[3, 1, 2, 0.5], [1, 2, 3, 4], [4, 3, 2, 1]], np.float32)


def pushed(x):
    h = []
    for k in range(4):
        heapq.heappush(h, x[k])
    return h


def popped_and_pushed(x):
    h = [x[0], x[1], x[2]]
    for _ in range(3):
        heapq.heappush(h, heapq.heappop(h) + 1)
    return h[0], h[1], h[2]


def by_key(x):
    h = []
    for k in range(4):
        bisect.insort(h, (x[k], k), key=lambda p: -p[0])
    return [k for _, k in h], h


def by_key_on_the_left(x):
    h = []
    for k in range(4):
        bisect.insort_left(h, (x[k] // 2, k), key=lambda p: p[0])
    return [k for _, k in h]


def in_a_dict(x):
    h, found = [], {}
    for k in range(4):
        heapq.heappush(h, (x[k], k))
        found[k] = h
    return found[0][0][1] + len(found[2]), h


def with_lists(x):
    h, total = [[x[0], 1], [x[1], 2]], 0.0
    while len(h) > 1:
        p = heapq.heappop(h)
        q = heapq.heappop(h)
        p[1] += 10
        heapq.heappush(h, [p[0] + q[0], p[1] + q[1]])
        total += p[0]
    return total, h[0][1]


def replaced(x):
    h, last = [3, 1, 2], 0.0
    heapq.heapify(h)
    for v in x:
        last = heapq.heapreplace(h, heapq.heappushpop(h, v) + 0.5)
    return h[0], len(h), last


def huffman(x):
    """Lists in a heap, whose elements differ by lane."""
    heap = [(count, symbol, [symbol]) for symbol, count in enumerate(x)]
    heapq.heapify(heap)
    lengths = [0] * len(x)
    while len(heap) > 1:
        a, first, low = heapq.heappop(heap)
        b, second, high = heapq.heappop(heap)
        for symbol in low + high:
            lengths[symbol] += 1
        heapq.heappush(heap, (a + b, min(first, second), low + high))
    return lengths


def of_one_length_and_of_another(x):
    h, order = [], []
    heapq.heappush(h, x[0])
    heapq.heappush(h, x[1])
    for k in range(4):
        if x[k] > 1.5:
            heapq.heappush(order, (x[k], k))
    return h[0], order[0][1], len(order)


PROGRAMS = [pushed, popped_and_pushed, by_key, by_key_on_the_left, in_a_dict, with_lists, replaced, huffman]
PROGRAMS += [of_one_length_and_of_another]


@pytest.mark.parametrize("form", ["auto", pytest.param("lockstep", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python_has_it(program, form):
    found = pcbatch.autobatch(program, form=form)(X)
    for lane, row in enumerate(X):
        own = tf.nest.map_structure(lambda each, lane=lane: each[lane].numpy(), found)
        tf.nest.map_structure(np.testing.assert_allclose, own, program([*map(float, row)]))


def test_each_loop_is_there_once():
    text = pcbatch.autobatch(huffman).ir("cfg", X)
    calls = [line.split("call ")[1].split("(")[0] for line in text.splitlines() if "= call " in line]
    assert calls.count("_towards_leaves") == 3
    assert calls.count("_towards_root") == 1
    assert sum(line.startswith("b") for line in text.splitlines()) < 80

"""A heap, written as a class with push and pop over a bounded list: numbers come out in order."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32", "int32")


class Heap:
    def __init__(self):
        self.items = pcbatch.bounded((), tf.float32, 6)
        self.swaps = 0

    def swap(self, i, j):
        self.items[i], self.items[j] = self.items[j], self.items[i]
        self.swaps += 1

    def push(self, x):
        self.items.append(x)
        i = len(self.items) - 1
        while i > 0 and self.items[(i - 1) // 2] > self.items[i]:
            self.swap(i, (i - 1) // 2)
            i = (i - 1) // 2

    def pop(self):
        last = self.items.pop()
        if len(self.items) == 0:
            return last
        top = self.items[0]
        self.items[0] = last
        i = 0
        while 2 * i + 1 < len(self.items):
            j = 2 * i + 1
            if j + 1 < len(self.items) and self.items[j + 1] < self.items[j]:
                j += 1
            if self.items[i] <= self.items[j]:
                break
            self.swap(i, j)
            i = j
        return top


@pcbatch.autobatch
def heap(xs, n):
    found = Heap()
    for x in xs[:4]:
        found.push(x)
    for i in range(n):
        found.push(xs[4 + i])
    ordered = tf.zeros_like(xs)
    k = 0
    while len(found.items) > 0:
        ordered[k] = found.pop()
        k += 1
    found.push(xs[0])
    return ordered, found.items[-1], found.swaps


def batch(rng, lanes):
    return rng.random((lanes, 6)).astype(np.float32), rng.integers(0, 3, lanes, dtype=np.int32)

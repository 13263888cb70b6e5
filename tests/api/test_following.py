"""Functions that several threads compile at once, each with what it reads of the world."""

from __future__ import annotations

import time

import numpy as np

import pcbatch
from pcbatch.threads import once
from tests.threads import in_threads

X = np.array([1.0, 3.0], np.float32)


class Model:
    """Read while it is compiled."""

    def __init__(self):
        self.rate, self.bias = 2.0, 1.0

    def scaled(self, x):
        return x * self.rate + self.bias


MODEL = Model()


def test_threads_that_compile_at_once():

    def work():
        def f(x, n):
            while n > 0:
                x = MODEL.scaled(x) / 2.0
                n = n - 1
            return x

        batched = pcbatch.autobatch(f)
        return [np.asarray(batched(X, np.array([2, 0], np.int32))).tolist() for _ in range(2)]

    expected = [2.0, 3.0]
    for found in in_threads(3, lambda: [work() for _ in range(2)]):
        assert found == [[expected, expected], [expected, expected]]


def test_a_property_that_one_thread_computes_for_all():
    made = []

    class Slow:
        @once
        def value(self):
            made.append(object())
            time.sleep(0.05)
            return made[-1]

    slow = Slow()
    found = in_threads(4, lambda: slow.value)
    assert len(made) == 1
    assert found == made * 4
    assert isinstance(Slow.value, once)

"""How often a function is read until it is known what its methods do: once."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import pcbatch
from pcbatch.reading.functions import Functions

X = np.array([1.0, 2.0, 3.0], np.float32)


class Deck:
    def __init__(self):
        self.total = 0.0
        self.rows = [0.0, 5.0]
        self.old = [1.0]

    def put(self, x):
        self.rows[0] += x

    def renew(self, x):
        self.rows = [x, x]

    def keep(self, x):
        self.old[0] = x * self.rows[1]

    def drawn(self, x):
        self.total += x
        return self.total


def several_methods(x):
    d = Deck()
    old = copy.copy(d.old)
    d.put(x)
    d.keep(x)
    rows = copy.copy(d.rows)
    d.renew(x)
    d.put(x + old[0])
    return d.rows[0] + rows[0] + d.old[0]


def methods_in_other_blocks(x):
    d = Deck()
    rows = copy.copy(d.rows)
    for _ in range(3):
        d.put(x)
        if d.rows[0] > 4.0:
            d.keep(rows[0])
    d.put(2.0)
    return d.rows[0] + d.old[0]


def methods_that_give_a_value(x):
    d, e = Deck(), Deck()
    total = 0.0
    for _ in range(2):
        total += d.drawn(x)
    if total > 3.0:
        total += e.drawn(x) * d.drawn(1.0)
    return total + d.total + e.total


@pytest.mark.parametrize(
    "function",
    [several_methods, methods_in_other_blocks, methods_that_give_a_value],
    ids=lambda function: function.__name__,
)
def test_a_function_is_read_once(function, monkeypatch):
    read = []
    build = Functions._build
    monkeypatch.setattr(Functions, "_build", lambda self, spec: read.append(spec.name) or build(self, spec))
    batched = pcbatch.autobatch(function, jit=False)
    np.testing.assert_allclose(batched(X), [batched.single(x) for x in X], rtol=1e-6)
    assert read == [function.__name__]

"""Dicts and sets of constants at keys that differ by lane: Python's own answer is right, KeyErrors are the lane's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

GRAPH = {0: 2, 1: 0, 2: 4, 3: 1, 4: 3}
COSTS = {10: 1.5, 20: -2.0, 35: 4.0}
GRID = {(0, 0): 1.0, (1, 0): 2.0, (2, 1): 4.0}
PAIRS = {(0, 1), (1, 1), (2, 0)}
ROWS = {3: np.float32([1.0, 2.0]), 5: np.float32([3.0, 4.0])}
ODD = {1, 3, 5, 7}


def walked(x, n):
    node = n % 5
    for _ in range(3):
        node = GRAPH[node]
    return node


def priced(x, n):
    return COSTS[10 if n > 1 else 20] + COSTS.get(n * 5, 0.25)


def on_a_grid(x, n):
    return GRID[(n % 3, 1 if n % 3 == 2 else 0)] * x


def among_pairs(x, n):
    return (n, 1) in PAIRS, (n, 0) not in PAIRS, n in ODD


def rows_by_key(x, n):
    row = ROWS[3 if n > 2 else 5]
    return row[0] - row[1] * x


def counted(x, n):
    counts = {0: 0, 1: 0, 2: 0}
    while n > 0:
        counts[n % 3] += n
        n -= 1
    return counts[0], counts[1], counts[2]


def among_literals(x, n):
    seen, costs = {(0, 1), (3, 1)}, {(1, 0): 2.0, (2, 0): 3.0}
    seen.add((7, 1))
    return (n, 1) in {(1, 1), (2, 1)}, (n, 1) in seen, (n, 0) in costs, n in {1, 3}, (n, 1) == (2, 1)


def missing(x, n):
    return COSTS[n * 10]


PROGRAMS = [among_literals, walked, priced, on_a_grid, among_pairs, rows_by_key, counted, missing]
X, N = np.float32([0.0, 1.0, 2.0, 3.0, 0.5]), np.int32([0, 1, 2, 3, 7])


@pytest.mark.parametrize("options", [{"jit": False}, {"form": "lockstep", "jit": False}, {}], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_entries_are_those_of_python(program, options):
    run = pcbatch.autobatch(program).options(**options).run(X, N)
    parts = [np.asarray(each) for each in tf.nest.flatten(run.value)]
    for lane, (x, n) in enumerate(zip(X.tolist(), N.tolist(), strict=True)):
        try:
            wanted = program(x, n)
        except KeyError:
            assert run.status[lane] == pcbatch.LaneStatus.RAISED
            continue
        assert run.status[lane] == pcbatch.LaneStatus.OK
        for part, value in zip(parts, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(part[lane], value, rtol=1e-6)


def test_an_error_says_the_key():
    run = pcbatch.autobatch(missing).run(X, N)
    assert "KeyError: 0" in str(run.errors[0])

"""Arrays made of lists of tuples, or of lists, of which there are unequally many; and advice where there is no such."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import CompileError

N = np.array([0, 1, 3, 5])


def lists(n):
    rows = [[1, 2], [3, 4]]
    for k in range(n):
        rows.append([k, k + 1])
    a = np.array(rows)
    return a[:, 0].sum(), a.max(), len(a), a.sum(axis=0)


def tuples(n):
    rows = [(0.5, 1)]
    for k in range(n):
        rows.append((k * 0.5, k))
    return np.array(rows).mean(axis=0), np.stack(rows).max()


def grids(n):
    rows = []
    for k in range(n + 1):
        rows.append([[k, 1], [2, k]])
    return np.array(rows).sum(axis=0)


def one_by_one(n):
    points, s = [], 0.0
    for k in range(n + 1):
        points.append((k * 0.5, k * k * 1.0))
    for p in np.array(points):
        s = s * 0.5 + p[0] - p[1]
    return s


def stored(n):
    """As the refusal of lists of unequal lists says."""
    rows = []
    for k in range(n + 1):
        rows.append([k * j for j in range(n)])
    a = np.zeros((6, 6))
    for k, row in enumerate(rows):
        a[k, : len(row)] = row
    return a.sum(axis=0)


def compared_as_lists(n):
    """As the refusal of comparisons with a tuple says."""
    xs = tuple(2 * k for k in range(n))
    return list(xs) == [0, 2, 4], list(xs) != [0]


def countdown(n):
    while n > 0:
        yield n
        n -= 2


def put_into_lists(n):
    """As the refusal of two generators side by side says."""
    xs, ys = [], []
    for x in countdown(n):
        xs.append(x)
    for y in countdown(n + 3):
        ys.append(y)
    return sum(x * y for x, y in zip(xs, ys, strict=False))


PROGRAMS = [lists, tuples, grids, one_by_one, stored, compared_as_lists, put_into_lists]


@pytest.mark.parametrize("form", ["auto", pytest.param("lockstep", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python_has_it(program, form):
    found = pcbatch.autobatch(program, form=form)(N)
    for lane, n in enumerate(N):
        own = tf.nest.map_structure(lambda each, lane=lane: each[lane].numpy(), found)
        tf.nest.map_structure(np.testing.assert_allclose, own, program(int(n)))


def test_a_lane_without_rows_fails():
    @pcbatch.autobatch
    def points(n):
        rows = []
        for k in range(n):
            rows.append((k, 1))
        return np.array(rows).sum()

    run = points.run(N)
    assert [error.lane for error in run.errors] == [0]
    assert run.value.numpy().tolist() == [0, 1, 6, 15]


def unequal(n):
    return np.array([[i * j for j in range(n)] for i in range(3)]).sum()


def with_a_tuple(n):
    xs = tuple(2 * k for k in range(n))
    return xs == (0, 2, 4)


def side_by_side(n):
    return sum(x * y for x, y in zip(countdown(n), countdown(n + 3), strict=False))


@pytest.mark.parametrize(
    ("program", "code", "advice"),
    [(unequal, "PCB130", "a[k] = x"), (with_a_tuple, "PCB130", "list(xs) =="), (side_by_side, "PCB105", "append(x)")],
)
def test_refusals_say_what_to_write(program, code, advice):
    with pytest.raises(CompileError, match=code) as caught:
        pcbatch.autobatch(program)(N)
    assert advice in caught.value.diagnostics[0].help

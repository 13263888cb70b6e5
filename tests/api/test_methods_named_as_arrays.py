"""Methods of the user's that have the names of arrays' methods which give views, `reshape`, `ravel`: they give none."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch
from pcbatch.errors import CompileError

X = np.array([-1.0, 2.0, 3.0], np.float32)
ROWS = np.arange(12.0, dtype=np.float32).reshape(3, 4)


class Shape:
    def __init__(self, v):
        self.v = v
        self.xs = [v, 1.0]

    def reshape(self, k):
        return self.v * k

    def ravel(self):
        return [self.v, 2.0]

    def squeeze(self, k):
        if k > 0.0:
            return [self.v, k]
        return [k, self.v]

    def diagonal(self):
        return self.xs

    def swapaxes(self):
        return self


class World:
    def __init__(self, v):
        self.shape = Shape(v)


def of_a_number(x):
    world = World(x)
    y = world.shape.reshape(2.0)
    world.shape.v = 5.0
    return y + world.shape.v


def of_a_new_list(x):
    world = World(x)
    y = world.shape.ravel()
    y[0] = 9.0
    world.shape.xs[0] = 7.0
    return y[0] + world.shape.v + world.shape.xs[0]


def of_one_that_branches(x):
    world = World(x)
    y = world.shape.squeeze(x)
    y[0] = 4.0
    world.shape.v = 1.0
    return y[0] + y[1] + world.shape.v


def of_an_element(x):
    worlds = [World(x), World(2.0)]
    y = worlds[0].shape.ravel()
    worlds[0].shape.v = 8.0
    return y[0] + worlds[0].shape.v


def of_a_variable(x):
    shape = Shape(x)
    y = shape.ravel()
    y[0] = 9.0
    return y[0] + shape.v


@pytest.mark.parametrize("function", [of_a_number, of_a_new_list, of_one_that_branches, of_an_element, of_a_variable])
def test_what_they_give_is_their_own(function):
    batched = pcbatch.autobatch(function)
    wanted = [function(float(x)) for x in X]
    np.testing.assert_allclose(batched(X), wanted, rtol=1e-6)
    np.testing.assert_allclose([batched.single(x) for x in X], wanted, rtol=1e-6)


def gives_its_list(x):
    world = World(x)
    y = world.shape.diagonal()
    y[0] = 7.0
    return world.shape.xs[0] + y[0]


def changes_its_list(x):
    world = World(x)
    y = world.shape.diagonal()
    world.shape.xs[0] = 7.0
    return y[0]


def gives_itself(x):
    world = World(x)
    y = world.shape.swapaxes()
    y.v = 3.0
    return world.shape.v


@pytest.mark.parametrize("function", [gives_its_list, changes_its_list, gives_itself])
def test_a_part_that_they_give_is_that_part(function):
    np.testing.assert_array_equal(pcbatch.autobatch(function)(X), [function(float(x)) for x in X])


class Held:
    def __init__(self, a):
        self.a = a


def of_an_attribute(a):
    held = Held(a)
    m = held.a.reshape(2, 2)
    m[0, 1] = 9.0
    return held.a[1]


def into_an_attribute(a):
    held = Held(a)
    m = held.a.reshape(2, 2)
    held.a[1] = 9.0
    return m[0, 1]


def of_an_entry(a):
    entries = {"m": a}
    m = entries["m"].ravel()
    m[1] = 9.0
    return entries["m"][1]


def of_an_element_of_a_list(a):
    rows = [a, a + 1.0]
    m = rows[1].ravel()
    m[1] = 9.0
    return rows[1][1]


def of_a_view(a):
    b = a.reshape(2, 2)
    m = b.T.ravel()
    m[1] = 9.0
    return b[1, 0]


def of_one_at_a_lanes_place(a):
    rows = [a, a + 1.0]
    i = 1 if a[0] > 2.0 else 0
    m = rows[i].ravel()
    m[1] = 9.0
    return rows[i][1]


def of_each(a):
    rows, total = [a, a + 1.0], 0.0
    for row in rows:
        m = row.reshape(2, 2)
        m[0, 0] = 9.0
        total += row[0]
    return total


def of_a_part(a):
    b = a[1:3]
    m = b.reshape(1, 2)
    m[0, 1] = 9.0
    return a[1] + a[2]


def of_what_is_copied(a):
    b = a.reshape(2, 2)[:, :1]
    m = b.ravel()
    m[1] = 9.0
    return a[2] + np.reshape(a.reshape(2, 2).T, (4,))[1]


@pytest.mark.parametrize(
    "function",
    [
        of_an_attribute,
        into_an_attribute,
        of_an_entry,
        of_an_element_of_a_list,
        of_a_view,
        of_each,
        of_a_part,
        of_what_is_copied,
    ],
)
def test_views_of_arrays_are_views_where_numpy_has_them(function):
    np.testing.assert_array_equal(pcbatch.autobatch(function)(ROWS), [function(row.copy()) for row in ROWS])


def test_a_view_of_one_of_several_arrays_is_not_stored_into():
    with pytest.raises(CompileError, match=r"PCB205: `m` is changed here, and `rows` may be the same array"):
        pcbatch.autobatch(of_one_at_a_lanes_place).check(ROWS)

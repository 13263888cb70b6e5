"""Objects of two classes whose methods of one name branch: each call runs that of its object."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.array([-1.0, 2.0, 3.0], np.float32)


class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        if self.side < 0.0:
            return 0.0
        return self.side * self.side

    def grow(self, x):
        if x > 0.0:
            self.side += x


class Disk:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        if self.radius < 0.0:
            return 0.5
        return 3.0 * self.radius * self.radius

    def grow(self, x):
        if x > 1.0:
            self.radius += 2.0 * x


class Line:
    def __init__(self, length):
        self.length = length

    def area(self):
        return 0.0 * self.length


class Box(Square):
    pass


def area(shape):
    return shape.area()


def in_one_statement(x):
    return Square(x).area() + Disk(x).area() * Square(x + 1.0).area()


def the_other_way_round(x):
    a, b = Disk(x), Square(x)
    return a.area() - b.area() * a.area()


def beside_one_that_does_not_branch(x):
    return Line(x).area() + Square(x).area() + Line(x).area()


def under_one_name(x):
    shape = Square(x)
    total = shape.area()
    shape = Disk(x)
    return total + shape.area()


def inherited(x):
    total = 0.0
    for shape in [Square(x), Box(x + 1.0)]:
        shape.grow(x)
        total += shape.area()
    return total


def in_a_helper(x):
    return area(Square(x)) + area(Disk(x))


def in_a_loop(x):
    total = 0.0
    for shape in [Disk(x), Square(x)]:
        total += shape.area()
    return total


def in_a_loop_that_changes(x):
    square, disk = Square(x), Disk(x)
    for shape in [square, disk]:
        shape.grow(x)
    return x


def in_a_generator(x):
    return sum(shape.area() for shape in [Square(x), Disk(x)])


def in_a_comprehension(x):
    return max([shape.area() for shape in (Square(x), Disk(x))])


def in_a_nested_loop(x):
    total = 0.0
    for k in range(2):
        for shape in [Square(x), Disk(x)]:
            total += shape.area() * k
    return total


def beside_a_line(x):
    total = 0.0
    for shape in [Line(x), Square(x)]:
        total += shape.area()
    return total


@pytest.mark.parametrize(
    "function",
    [
        in_one_statement,
        the_other_way_round,
        beside_one_that_does_not_branch,
        under_one_name,
        inherited,
        in_a_helper,
        in_a_loop,
        in_a_loop_that_changes,
        in_a_generator,
        in_a_comprehension,
        in_a_nested_loop,
        beside_a_line,
    ],
)
def test_each_call_is_of_the_objects_own_class(function):
    batched = pcbatch.autobatch(function)
    for size in (1, 3):
        np.testing.assert_allclose(batched(X[:size]), [function(float(x)) for x in X[:size]], rtol=1e-6)
        np.testing.assert_allclose([batched.single(x) for x in X], [function(float(x)) for x in X], rtol=1e-6)


class Other(Square):
    pass


def test_a_class_that_gets_the_method_is_compiled_anew(monkeypatch):
    @pcbatch.autobatch
    def area_of(x):
        return Other(x).area()

    def doubled(self):
        if self.side < 0.0:
            return 1.0
        return 2.0 * self.side

    np.testing.assert_allclose(area_of(X), [0.0, 4.0, 9.0])
    monkeypatch.setattr(Other, "area", doubled, raising=False)
    np.testing.assert_allclose(area_of(X), [1.0, 4.0, 6.0])
    monkeypatch.undo()
    np.testing.assert_allclose(area_of(X), [0.0, 4.0, 9.0])

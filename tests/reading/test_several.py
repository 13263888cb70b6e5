"""Variables that hold one of several objects, by lane: Python's own answer is right."""

from __future__ import annotations

import numpy as np
import pytest

import pcbatch

X = np.float32([0.5, 1.5, 2.5])


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.log = [0.0, x]

    def moved(self, by):
        self.x += by
        self.log[0] += 1.0
        return self.x

    @property
    def size(self):
        return abs(self.x) + self.y if self.x > 1.0 else self.y


class Bag:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)


class Scale:
    def __init__(self, rate):
        self.rate = rate

    def of(self, x):
        return self.rate * x


HALF, TRIPLE = Scale(0.5), Scale(3.0)
SCALES = [HALF, TRIPLE, Scale(7.0)]


def square(x):
    return x * x


def cubed(x):
    return x * x * x if x > 1.0 else x


def made_on_one_path(x):
    known = Point(x, 1.0)
    best = known
    if x > 1.0:
        best = Point(x * 10.0, 2.0)
    best.moved(0.5)
    known.y += 4.0
    return best.x + best.y + known.x + 100.0 * best.log[0] + known.log[0]


def with_other_names(x):
    if x > 1.0:
        f = g = Point(x, 1.0)
    else:
        f, g = Point(x, 2.0), Point(x, 3.0)
    f.moved(10.0)
    return f.x + g.x + 100.0 * f.y + 1000.0 * g.y


def parts_of_another(x):
    a, b = Point(x, 1.0), Point(x, 2.0)
    if x > 2.0:
        b = Point(a.x, a.y)
        b.log = a.log
    elif x > 1.0:
        a = b
    b.log[1] = 9.0
    a.moved(1.0)
    return a.x + b.x + a.log[0] + 10.0 * a.log[1] + 100.0 * b.log[0] + b.y


def a_property(x):
    p = Point(x, 1.0) if x > 2.0 else Point(0.0, x)
    q = p if x > 1.0 else Point(5.0, 5.0)
    return q.size + p.size


def truth_and_length(x):
    empty, full = Bag([]), Bag([x, 1.0, 2.0])
    bag = empty if x > 2.0 else full
    return (10.0 if bag else 20.0) + len(bag) + len(bag.items)


def of_the_world(x):
    scale = HALF if x > 1.0 else TRIPLE
    other = scale if x > 2.0 else Scale(x)
    return scale.of(x) + 10.0 * other.rate + other.of(2.0) + SCALES[int(x)].of(1.0)


def functions(x):
    f = square if x > 2.0 else cubed if x > 1.0 else abs
    g = (lambda y: y + x) if x > 2.0 else (lambda y: y - x)
    return f(x) + g(1.0)


def in_a_loop(x):
    best = Point(x, 0.0)
    for i in range(3):
        other = best if x > i else Point(x + i, 1.0)
        other.moved(1.0)
        x += other.x
    return x + best.x


PROGRAMS = [
    made_on_one_path, with_other_names, parts_of_another, a_property, truth_and_length, of_the_world, functions,
    in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_answers_are_pythons(program):
    found = pcbatch.autobatch(program).options(form="lockstep", jit=False)(X)
    np.testing.assert_allclose(found, [program(float(x)) for x in X], rtol=1e-6)


def changed(x):
    scale = HALF if x > 1.0 else Scale(x)
    scale.rate += 1.0
    return scale.rate


@pytest.mark.parametrize(("program", "code"), [(changed, "PCB204")])
def test_what_is_refused(program, code):
    with pytest.raises(pcbatch.CompileError, match=code) as caught:
        pcbatch.autobatch(program).check(X)
    assert all(each.span is not None and each.span.file == __file__ for each in caught.value.diagnostics)
    assert HALF.rate == 0.5

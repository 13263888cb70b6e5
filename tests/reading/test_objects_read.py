"""Objects, arrays and functions under several names, read by the interpreter and judged by Python."""

import numpy as np
import pytest

from tests.programs.judging import judge
from tests.programs.readings import reading

N = np.array([0, 1, 2, 5], np.int32)
X = np.array([0.5, -1.0, 2.0, 3.0], np.float32)
A = np.arange(16, dtype=np.float32).reshape(4, 4)


class Point:
    def __init__(self, x, parts):
        self.x, self.parts = x, parts

    def moved(self, by):
        self.x += by
        self.parts[0] += by
        return self.x

    def itself(self):
        return self


def object_by_a_method(x, a):
    p = Point(x, a)
    q = p.itself()
    q.moved(2.0)
    return p.x, a[0]


def recursion_that_changes_a_list(n, x):
    xs = [x]

    def add(k):
        if k <= 0:
            return 0
        xs[0] = xs[0] + 1.0
        return add(k - 1) + 1

    return add(n), xs[0]


def one_of_several(x, y):
    points = [Point(x + 1.0, [1.0]), Point(2.0 * y, [2.0])]
    best = min(points, key=lambda p: p.x)
    best.x = best.x + 10.0
    a, b = points[0], points[1]
    a.x, b.x = b.x, a.x
    return points[0].x, points[1].x, best.x


def a_dict_in_a_loop(n, x):
    kept = {"k": x}
    other = kept
    while n > 0:
        other["k"] = other["k"] * 2.0
        n -= 1
    return kept["k"]


def a_copy_on_one_path(n, a):
    b = a
    if n > 1:
        b = a.copy()
    b = b + 1.0
    b[0] = 5.0
    return a, b


def windows_that_move(n, a):
    parts = []
    for k in range(3):
        parts.append(a[k : k + 2])
    a[1] = 9.0
    return parts[0], parts[1], parts[2]


def views_of_a_new_array(x, a):
    zeros = np.zeros((4,), np.float32)
    parts = {"p": zeros.reshape(-1), "q": np.ravel(zeros)}
    parts["q"][1] = 1.0
    return parts["p"] + x, zeros + a


def rows_in_a_zip(x, a):
    m = a.reshape(2, 2)
    total = 0.0
    for row, factor in zip(m, [1.0, 2.0], strict=True):
        m[1, 0] = x
        total += row[0] * factor
    return total


def a_view_changed_in_place(x, a):
    part = a[:2]
    part += x
    return a[0] + part[0]


PROGRAMS = {
    object_by_a_method: (X, A),
    recursion_that_changes_a_list: (N, X),
    one_of_several: (X, X[::-1].copy()),
    a_dict_in_a_loop: (N, X),
    a_copy_on_one_path: (N, A),
    windows_that_move: (N, A),
    views_of_a_new_array: (X, A),
    rows_in_a_zip: (X, A),
    a_view_changed_in_place: (X, A),
}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_answers_are_pythons(function):
    outcome = judge(function, PROGRAMS[function], reading("interpreted"))
    assert outcome.kind == "right", outcome.detail

"""Objects, arrays and functions under several names, read by the interpreter and judged by Python."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

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


class Bounded:
    """A descriptor that keeps its value in the object."""

    def __init__(self, name):
        self.name = name

    def __get__(self, thing, cls):
        return min(thing.__dict__[self.name], 1.0)

    def __set__(self, thing, value):
        vars(thing)[self.name] = value


class Kept:
    level = Bounded("level")

    def __init__(self, level):
        self.level, self.sets = level, 0

    @property
    def twice(self):
        return self.half * 4.0

    @twice.setter
    def twice(self, value):
        self.half = value / 4.0
        self.sets += 1

    @functools.cached_property
    def once(self):
        return self.level * 2.0


def attributes_that_classes_look_after(n, x):
    things = [Kept(x), Kept(2.0 * x)]
    one = things[n % 2]
    before = things[0].once
    one.level = 0.25
    things[0].twice = 1.0
    things[1].twice = 2.0
    one.twice = x
    every = vars(things[0])
    every["more"] = x
    one.sets += 1
    return before, things[0].once, [(each.level, each.twice, each.sets) for each in things], every["sets"], len(every)


class Pair:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def iterators(n, x):
    total = 0.0
    pair = Pair([x, 2.0])
    for _ in range(2):
        for i, j in itertools.combinations(range(3), 2):
            total += i * j * x
        total += sum(pair)
    for step in itertools.permutations([1.0, 2.0, 3.0]):
        total = max(total, step[0] - x)
    return total


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


def a_range_that_ends_before_a_list(n, x):
    total = 0.0
    points = [Point(x, [0.0]), Point(2.0, [1.0])]
    for i, value in zip(range(n), [x, 2.0, 5.0, 7.0], strict=False):
        total += (i + 1) * value
    for p, i in zip(points, range(n), strict=False):
        p.moved(i + 1.0)
    return total, points[0].x, points[1].x, sum(a * b for a, b in zip(range(n), (x, 2.0, x), strict=False))


def recursion_that_changes_a_variable_around_it(n, x):
    best = x

    def walk(depth):
        nonlocal best
        if depth <= 0:
            return 0
        best = best * 2.0
        return walk(depth - 1) + 1

    return walk(n), best


def one_object_returned_twice(n, x):
    points = [Point(x, [x]), Point(2.0, [1.0])]
    points[n % 2].x += 1.0
    low = min(points, key=lambda p: p.x)
    return points, points[n % 2], low.parts, (low.parts, {1: x, (1, 2): low.x}[1, 2])


def a_list_that_only_a_tuple_has(n, x):
    pair = ([x], 1.0)
    while n > 0:
        pair[0][0] = pair[0][0] + 1.0
        n -= 1
    return pair[0][0]


def a_list_that_grows_in_a_tuple(x):
    pair = ([x], 1.0)
    for _ in range(3):
        pair[0].append(x)
    return sum(pair[0])


def a_list_that_is_a_default(n, x):
    def add(v, total=[0.0]):  # noqa: B006
        total[0] = total[0] + v
        return total[0]

    found = 0.0
    while n > 0:
        found = add(x)
        n -= 1
    return found


def objects_that_only_a_choice_has(n, x):
    points = [Point(x, [0.0]), Point(2.0 * x, [1.0])]
    point = points[0] if x > 0.0 else points[1]
    points = 0.0
    while n > 0:
        point.moved(1.0)
        n -= 1
    return point.x + point.parts[0] + points


def defaults_of_several_turns(x):
    for k in (1.0, 2.0, 3.0):

        def add(v, u=k):
            return v + u

        if x < k:
            break
    return add(x)


def methods_that_take_turns(n, x):
    point = Point(x, [0.0])
    method = point.itself
    while n > 0:
        method()
        method = point.parts.copy
        n -= 1
    return point.x


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
    one_object_returned_twice: (N, X),
    iterators: (N, X),
    attributes_that_classes_look_after: (N, X),
    recursion_that_changes_a_variable_around_it: (N, X),
    a_range_that_ends_before_a_list: (N, X),
}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_answers_are_pythons(function):
    outcome = judge(function, PROGRAMS[function], reading("reference"))
    assert outcome.kind == "right", outcome.detail


def test_a_variable_of_two_methods_is_refused():
    outcome = judge(methods_that_take_turns, (N, X), reading("reference"))
    assert str(outcome) == "refused PCB301"


def gone_over_twice(n, x):
    pairs = itertools.product(range(2), range(2))
    total = 0.0
    for _ in range(3):
        for i, j in pairs:
            total += x * i * j
    return total


def endless(n, x):
    for k in itertools.count():
        x = x * 2.0
        if k > 3:
            break
    return x


def a_function_that_a_library_calls(n, x):
    parts = [x]

    def put(y):
        parts[0] = 5.0
        return y

    return tf.reduce_sum(tf.map_fn(put, tf.stack([x, x]))) + parts[0]


def a_variable_that_a_library_would_assign(n, x):
    total = x

    def put(y):
        nonlocal total
        total = 5.0
        return y

    return tf.reduce_sum(tf.map_fn(put, tf.stack([x, x]))) + total


REFUSED = {
    gone_over_twice: "PCB119",
    endless: "PCB130",
    a_function_that_a_library_calls: "PCB424",
    a_variable_that_a_library_would_assign: "PCB405",
}


@pytest.mark.parametrize(("function", "codes"), REFUSED.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_what_cannot_be_followed_is_refused(function, codes):
    assert judge(function, (N, X), reading("reference")).detail == codes

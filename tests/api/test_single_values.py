"""What the user's own code computes with in `f.single`: numbers, arrays, views, tapes. Judged by Python and NumPy."""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.single.running import Singly, as_tensor, result
from pcbatch.single.values import Array, Number

X = np.array([1.0, 2.0, 3.0])
VARIABLE = tf.Variable([1.0, 2.0, 3.0], dtype=tf.float64)
LOG: list[object] = []


class Net:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return np.tanh(self.w * x).sum() + math.cos(self.w[0])

    @property
    def norm(self):
        return math.sqrt(np.sum(self.w**2))

    def __add__(self, other):
        return Net(self.w + other.w)


KEPT = Net(np.array([1.0, 2.0, 3.0]))
LEARNT = Net(VARIABLE)


def stores(x):
    a, m = np.zeros(3), np.zeros((2, 3))
    a[0] = x[0]
    a[1:] = x[1:] * 2.0
    m[0] = x
    m[1, ::-1] = x * x
    return a, m, m.T @ x[:2], m.reshape(3, 2)[1]


def functions_of_math(x):
    return math.sqrt(x[0]) * math.exp(-x[1]) + float(x[2]) ** 2, np.float64(x[0]) * 2.0


def methods(x):
    net = Net(x) + Net(x * 0.5)
    return net(x) * net.norm + KEPT(x) + KEPT.norm * x[0] + LEARNT(x)


def taken(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x**3)
    slope = tape.gradient(y, x)
    slope[0] = slope[0] * 2.0
    return slope.sum() + y


def of_variables(x):
    h = VARIABLE * x
    h[1] = 0.0
    return tf.tanh(h).sum() + VARIABLE[0] * x[1]


def indices(x):
    some = x[[0, 2]].sum(), x[x > 1.5].sum(), x[np.array([True, False, True])]
    return tf.reduce_sum(x[tf.newaxis]), x[..., None].shape[1], *some, np.where(x > 1, x, 0.0)[1]


def called_back(x):
    chosen = tf.case([(x[0] > 9.0, lambda: x[0]), (x[0] > 0.0, lambda: x[1])], default=lambda: x[2])
    return tf.map_fn(lambda v: v * x[0], x), [*map(float, x)], sorted(x, reverse=True), chosen


def floats(value):
    """The sum of the floats in a result."""
    wide = [tf.float64 if isinstance(leaf, float) else None for leaf in tf.nest.flatten(value)]
    leaves = [tf.convert_to_tensor(*each) for each in zip(tf.nest.flatten(value), wide, strict=True)]
    return tf.add_n([tf.cast(tf.reduce_sum(leaf), tf.float64) for leaf in leaves if leaf.dtype.is_floating])


@pytest.mark.parametrize(
    "function",
    [stores, functions_of_math, methods, taken, of_variables, indices, called_back],
    ids=lambda f: f.__name__,
)
def test_a_tape_sees_all_that_the_function_does(function):
    batched, x = pcbatch.autobatch(function), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = floats(batched.single(x))
    steps = 1e-4 * np.eye(3)
    differences = [(floats(batched.single(X + e)) - floats(batched.single(X - e))) / 2e-4 for e in steps]
    np.testing.assert_allclose(tape.gradient(y, x), differences, rtol=1e-5, atol=1e-7)


def aliases(m, i):
    row, b = m[i], m
    row += 10.0
    b[0, 1] = 5.0
    turned = m.T
    turned[1] = row[0]
    flat = m.reshape(-1)
    flat[-1] = -1.0
    part = flat[1:3]
    part *= 2.0
    return m, row, turned, flat, part


def swapped(m, i):
    m[i], m[0] = m[0], m[i].copy()
    m[[0, 1]] = m[[1, 0]]
    return m, [*m], np.diagonal(m)


@pytest.mark.parametrize("is_watched", [False, True])
@pytest.mark.parametrize("function", [aliases, swapped], ids=lambda f: f.__name__)
def test_views_are_those_of_numpy(function, is_watched):
    """With tensors, too, which a tape sees: a view reads and stores in the array that it is a view of."""
    m = np.arange(6.0).reshape(2, 3)
    wanted = function(m.copy(), 1)
    run = Singly(function, lambda value: None, lambda *place: None)
    with tf.GradientTape() as tape:
        given = tf.constant(m)
        if is_watched:
            tape.watch(given)
        found = result(run(None, (given, tf.constant(1)), {}), as_tensor)
    for each, one in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_array_equal(each, one)


PAGE = (Path(pcbatch.__file__).parent.parent / "docs" / "numbers.md").read_text()
PYTHON = {"+": "add", "*": "mul", "/": "truediv", "//": "floordiv", "<": "lt", "==": "eq", "&": "and_", "<<": "lshift"}


def as_given(kind):
    """A number of the kind that a table names."""
    if kind in ("int", "float", "bool"):
        return {"int": 3, "float": 3.0, "bool": True}[kind]
    return Number(tf.constant(3, kind).numpy())


def kind_of(value):
    return value.dtype.name if isinstance(value, Number) else type(value).__name__


@pytest.mark.parametrize("symbol", PYTHON)
def test_operators_give_what_the_table_says(symbol):
    """`docs/numbers.md`, but for the pairs that a batch refuses, of which NumPy's promotion is the float's."""
    heading = next(line for line in PAGE.splitlines() if line.startswith("### ") and f"`{symbol}`" in line)
    lines = PAGE.split(heading + "\n")[1].split("\n### ")[0].splitlines()
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    names = rows[0][1:]
    for left, *cells in rows[2:]:
        for right, wanted in zip(names, cells, strict=True):
            if wanted != "-" and not (symbol == "/" and wanted != "float64" and "float" not in left + right):
                found = getattr(operator, PYTHON[symbol])(as_given(left), as_given(right))
                assert kind_of(found) == wanted, f"{left} {symbol} {right}"


def test_ints_wrap_and_floats_promote():
    with np.errstate(over="ignore"):
        assert (Number(np.int32(2**31 - 1)) + 1).value == -(2**31)
    assert (Number(np.uint8(5)) < -2) is False
    assert (Number(np.int32(3)) * 0.5).dtype == tf.float32
    assert (Number(np.int64(3)) * Number(np.float32(0.5))).dtype == tf.float32
    assert (Array(np.arange(3)) / Array(np.arange(1, 4))).dtype == tf.float64
    assert (Array(np.zeros(2, np.float32)) + Array(np.zeros(2))).dtype == tf.float64
    for failing in (lambda n: n // (n - n), lambda n: n % 0, lambda n: 5 % (n - n)):
        with pytest.raises(ZeroDivisionError):
            failing(Number(np.int32(3)))
    with pytest.raises(ValueError, match="negative shift"):
        Number(np.int32(3)) << -1
    with pytest.raises(OverflowError):
        int(Number(np.float32(1e20)))


def noted(n):
    LOG.append(inspect.currentframe().f_back.f_code)
    return n


class Pair(NamedTuple):
    a: object
    b: object

    def total(self):
        return self.a + self.b


@pcbatch.autobatch
def own_code(n, x):
    pair = Pair(n, x[0])
    count = noted(n)
    while count > 0:
        count -= 1
    return pair._replace(b=pair.total() + x[-1]), count


def test_it_is_the_users_code_object_that_runs():
    LOG.clear()
    found, count = own_code.single(np.int32(2), np.float32([1.0, 2.0]))
    assert [own_code.function.__code__] == LOG
    assert type(found) is Pair
    assert (int(found.a), float(found.b), int(count)) == (2, 5.0, 0)


def test_threads_do_not_see_each_other():
    wanted = [float(own_code.single(np.int32(n), np.float32([n, 1.0]))[0].b) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda n: float(own_code.single(np.int32(n), np.float32([n, 1.0]))[0].b), range(8))
        assert [*found] == wanted


class Rate:
    def __init__(self):
        self.rate, self.weights, self.itself = np.float32(2.0), tf.Variable([[1.0, 2.0], [3.0, 4.0]]), self
        self.shifts = [tf.Variable([1.0, 1.0])]

    def of(self, x):
        h = self.weights @ x + self.shifts[0]
        h[0] = self.itself.rate
        return h.sum() * self.rate


RATE = Rate()


def rated(x):
    return RATE.of(x)


def test_captured_objects_are_what_they_are_now():
    """Their variables are arrays, in lists, too; what is assigned to them before the next call counts there."""
    function, x = pcbatch.autobatch(rated), np.float32([1.0, 2.0])
    assert float(function.single(x)) == (2.0 + 12.0) * 2.0
    RATE.rate = np.float32(3.0)
    RATE.weights.assign(RATE.weights * 2.0)
    assert float(function.single(x)) == (3.0 + 23.0) * 3.0


def window(x, i):
    return x[i : i + 2]


def cut(x):
    return x[1:9]


def test_only_slices_of_fixed_length_may_not_leave_the_array():
    function = pcbatch.autobatch(window)
    assert function.single(X, np.int32(1)).shape == (2,)
    with pytest.raises(IndexError, match="leaves the array"):
        function.single(X, np.int32(2))
    assert pcbatch.autobatch(cut).single(X).shape == (2,)


def test_a_traced_function_may_run_it():
    @tf.function
    def traced(x):
        return pcbatch.autobatch(doubled).single(x)

    total, first = traced(tf.constant([1.0, 2.0]))
    assert re.match("float32", total.dtype.name)
    assert (float(total), float(first)) == (5.0, 4.0)


def doubled(v):
    a = v * 2.0
    a[0] = 1.0
    return a.sum(), v[0] + np.sum(v)


@pcbatch.autobatch
def stores_through_rows(m, x, n):
    m[0][1] = x
    m[-1][n % 2] += 2.0
    return m


@pytest.mark.parametrize("watched", [False, True])
def test_a_store_through_a_row_changes_the_array(watched):
    """As in a batch, and as in NumPy."""
    m, x, n = np.zeros((2, 2, 2), np.float32), np.array([3.0, 4.0], np.float32), np.array([0, 1], np.int32)
    wanted = stores_through_rows(m, x, n)
    for lane in [0, 1] * 10:  # Python changes instructions that have run a few times
        given = tf.constant(x[lane]) if watched else x[lane]
        with tf.GradientTape() as tape:
            tape.watch(tf.convert_to_tensor(given))
            found = stores_through_rows.single(m[lane], given, n[lane])
        np.testing.assert_array_equal(found, wanted[lane])


def test_a_number_takes_axes_of_length_one_and_a_tape_follows_it():
    @pcbatch.autobatch
    def spread(x):
        return x[None, None] * 2.0

    @pcbatch.autobatch
    def first(x):
        return x[0]

    assert np.array_equal(spread.single(np.float32(1.5)), np.float32([[3.0]]))
    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = spread.single(x)
    assert found.shape == (1, 1)
    assert tape.gradient(found, x).numpy() == 2.0
    with pytest.raises(IndexError, match="too many indices"):
        first.single(np.float32(1.5))


def of_ufuncs(a, i):
    b = a.copy()
    np.add.at(b, i, 1.0)
    sums = np.add.reduce(a), np.add.accumulate(a), np.add.reduce(i), np.maximum.reduce(i)
    return *sums, np.maximum.accumulate(a), np.multiply.outer(a, a), np.subtract.outer(a, a[:2]), b


def test_methods_of_ufuncs():
    a, i = np.array([1.0, 5.0, 2.0], np.float32), np.array([0, 2], np.int32)
    batched = pcbatch.autobatch(of_ufuncs)
    of_a_batch = batched(a[None], i[None])
    for one, row, theirs in zip(batched.single(a, i), of_a_batch, of_ufuncs(a, i), strict=True):
        np.testing.assert_allclose(one, theirs)
        assert one.dtype == row.dtype
    with tf.GradientTape() as tape:
        watched = tf.constant(a)
        tape.watch(watched)
        total = batched.single(watched, i)[0]
    np.testing.assert_array_equal(tape.gradient(total, watched), np.ones(3))


CLASSES = [int, float, bool, complex, (int, float), numbers.Real, numbers.Integral, np.integer, np.floating, str]
NUMBERS = [np.int32(3), np.int64(3), np.uint8(3), np.float32(3), np.float64(3), np.bool_(True), 3, 3.0, True]


def in_the_batch(function, value):
    return bool(np.asarray(function([value, value]))[0])


@pytest.mark.parametrize("classes", CLASSES, ids=str)
def test_numbers_have_the_classes_that_they_have_in_a_batch(classes):
    def is_one(v):
        return isinstance(v, classes)

    def has_it(v):
        return (type(v + v) is classes or type(v) is classes) and type(v).__name__ == classes.__name__

    for function in map(pcbatch.autobatch, (is_one, has_it)):
        for value in NUMBERS:
            assert bool(function.single(value)) == in_the_batch(function, value), (type(value), function)


@pcbatch.autobatch
def matched(v):
    match v:
        case bool():
            return 0
        case int(n):
            return n + 1
        case float():
            return 2


@pytest.mark.parametrize("value", NUMBERS, ids=lambda each: type(each).__name__)
def test_patterns_of_classes_match_numbers(value):
    assert int(matched.single(value)) == int(matched([value, value])[0])


@pcbatch.autobatch
def of_a_taped_number(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x if isinstance(x, float) and type(x) is float and not isinstance(x, type) else x
    return tape.gradient(y, x)


def test_a_number_that_a_tape_watches_has_a_class():
    assert float(of_a_taped_number.single(np.float32(3.0))) == float(of_a_taped_number([3.0])[0]) == 6.0

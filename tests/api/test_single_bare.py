"""`f.single` on NumPy's own numbers: what it gives is what it gives on proxies, where it runs so at all."""

from __future__ import annotations

import linecache
import math
from enum import IntEnum

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function import examples
from pcbatch.ir.values import fields_of
from tests.harness import NAMES, load
from tests.harness import example as example_of

WEIGHTS = np.array([1.0, 2.0, 3.0])
SCALE = {"rate": 2.0}
slow = pytest.mark.slow


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Bag:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value


@pytest.fixture
def both(monkeypatch):
    """A function's results on proxies and then bare, and whether it has run bare."""

    def run(function, *arguments):
        def single():
            try:
                return function.single(*arguments)
            except Exception as error:
                return type(error).__name__, str(error).splitlines()[0]

        monkeypatch.setattr(examples, "PATIENCE", math.inf)
        wanted = single()
        monkeypatch.setattr(examples, "PATIENCE", -1.0)
        found = single()
        kinds = function.examples._kinds.values()
        return wanted, found, any(each.program is not None and not each.failures for each in kinds)

    return run


def leaves(value):
    """The numbers and arrays in a result."""
    for each in tf.nest.flatten(value):
        fields = fields_of(each)
        if fields is None:
            yield each
        else:
            yield type(each).__name__
            yield from leaves(fields)


def assert_equal(found, wanted):
    ours, theirs = [*leaves(found)], [*leaves(wanted)]
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert type(one) is type(other)
        if isinstance(one, tf.Tensor):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other or one != one


def scalars(x, n):
    total, count = 0.0, 0
    for value in x:
        if value > 1.5:
            total += value
            count += 1
    return total, count, abs(-n), n - 3 < 0, max(x), min(1.0, x[0]), [value * 2 for value in x]


def stores(x, n):
    a = np.zeros_like(x)
    for i in range(3):
        a[i] = x[i] * 2
    row = a[1:]
    row += 1
    a[n % 3], a[0] = a[0], a[n % 3]
    return a, row, a.sum(), a @ x


def with_objects(x, n):
    bags = [Bag(x[0]), Bag(x[1] * 2)]
    pairs = sorted([(3, 1), (1, 2)])
    return min(bags).value, pairs.pop(0), math.floor(x[0]), round(x[1], 1), math.sqrt(n)


def of_tensorflow(x, n):
    return tf.reduce_sum(x) * x, tf.cast(n, x.dtype) * x[0]


def captured(x, n):
    return x * WEIGHTS, WEIGHTS[0] * x[1], x * SCALE["rate"]


def recursive(x, n):
    def gcd(a, b):
        return a if b == 0 else gcd(b, a % b)

    return gcd(n * 12, 18), gcd(18, n)


@pytest.mark.parametrize(
    "function", [scalars, stores, with_objects, of_tensorflow, captured, recursive], ids=lambda f: f.__name__
)
def test_it_runs_bare(function, both):
    wanted, found, is_bare = both(pcbatch.autobatch(function), np.array([2.5, 1.25, 3.75]), np.int32(3))
    assert is_bare
    assert_equal(found, wanted)


def float_beside_int(x, n):
    return n * 0.5, x * n


def flags(x, n):
    return (n < 2) + (n < 5), sum([n < 1, n < 9]), -(x[0] > n)


def sums_of_ints(x, n):
    a = np.zeros(3, np.int32)
    a[n % 3] = n
    return a.sum(), a * 0.5, np.cumsum(a)


def members(x, n):
    return (Level.HIGH if n > 2 else Level.LOW) * n


def of_numbers(x, n):
    return np.sqrt(2.0) * x, np.mean([1.0, 2.0]) * x, np.sum([1, 2]) * n, np.arange(3).sum() * x


def windows(x, n):
    return x[n : n + 2]


def shifts(x, n):
    return 1 << (n - 4), -5 // n, -5 % n


def asks(x, n):
    return (n > 2) is True, isinstance(n, float), x[0] == n


def order(x, n):
    return np.argsort(np.array([2.0, 1.0, 2.0, 1.0] * 20) * x[0])


def large(x, n):
    a = np.zeros(3, np.uint8)
    a[0] = 300
    return a, int(x[0] * 1e12)


def by_zero(x, n):
    return x / (n - n), n // (n - n)


def joined(x, n):
    y = n
    if x[0] > 2:
        y = x[0]
    return y * 0.5, y == n


class Sum:
    def __init__(self):
        self.total = 0.0
        self.__count = 0

    def add(self, value):
        self.total += value
        self.__count += value > 1
        return self.__count * 0.5


class Mean(Sum):
    def add(self, value):
        return super().add(value * 0.5) + self.total


def sums(x, n):
    total, least = 0.0, Mean()
    for k in range(3):
        total += n * 0.5
        least.add(n)
        x[k] += n
        x[(n + k) % 3] -= (x[0] > k) + (n > k)
    return total, x, least.add(n), least.total


def order_of(x, n):
    return np.argsort(x * [1, 0, 1]), np.argsort(x % n)[n - 1]


def half(value):
    return value * 0.5 + (value > 1)


def of_several_types(x, n):
    return half(n), half(x[0]), half(x), half(2), half(n > 2), [half(v) for v in (n, x[1])]


def slices(x, n):
    x[n - 3 : n - 1] = x[n - 2 : n]
    x[n - 2 : n] += n
    m = np.zeros((3, 4), x.dtype)
    m[n - 2 : n, 1] += x[:2]
    m[1, n - 3 : n - 1] = n * 0.5
    return x, m, m[n - 2 : n, n - 3 : n - 1], x[n - 1 : n - 3 : -1], x[n - 2 : n][0], m[n - 2 : n] * n


def cut(x, n):
    x[n - 1 : n + 1] = n * 0.5
    return x


def cut_columns(x, n):
    m = np.zeros((2, 3), x.dtype)
    m[0, n - 1 : n + 1] += n * 0.5
    return m


def contained(x, n):
    return n in (1, 3), 2 * n in [6.0, 8.0], n in {3, 4}, x[0] in (2.5, n), n not in x, (n, x[0]) < (n, n), n == x


def inner_functions(x, n):
    total = 0.0

    def add(value, weight=2):
        nonlocal total
        total += value * 0.5 * weight
        return lambda other: other * 0.5 + total

    return add(n)(n), add(x[0])(n), total, max([n, 2], key=lambda v: v * 0.5)


def after_a_call(x, n):
    def moved():
        nonlocal n
        n -= 1
        return n * 0.5

    x[n - 1] += moved()
    x[n] = moved() + n
    return x, n


def of_letters(x, n):
    größe, é = n * 0.5, "é"; half = n * 0.25 if é == "é" else 0.0  # fmt: skip # noqa: E702
    return größe + half


def counted(x, n):
    k, found = 0, []
    for _ in range(3):
        found.append(k * 0.5)
        k += n
    return found, sum(v > 1 for v in x), sum(x > 1), sum(value * 0.5 for value in (n, n)), any(x > n)


def largest(x, n):
    lists = [[n, 2], [x[0], 3]]
    best = max(lists)
    best[0] = 9
    np.add(x, n, x)
    np.max(x * n, 0, x[:1].reshape(()))
    return lists, best, x


REPAIRED = (
    *(float_beside_int, flags, sums_of_ints, windows, shifts, order_of, sums, of_several_types, slices, contained),
    *(inner_functions, after_a_call, of_letters, counted),
)


@pytest.mark.parametrize("function", REPAIRED, ids=lambda f: f.__name__)
def test_places_where_numpy_differs_are_computed_on_proxies(function, both):
    n = 4 if function is shifts else 1 if function is windows else 3
    wanted, found, is_bare = both(pcbatch.autobatch(function), np.array([2.5, 1.25, 3.75], np.float32), np.int32(n))
    assert_equal(found, wanted)
    assert is_bare


@pytest.mark.parametrize("function", [cut, cut_columns, windows], ids=lambda f: f.__name__)
def test_a_slice_that_is_cut_short_fails(function, both):
    wanted, found, is_bare = both(pcbatch.autobatch(function), np.array([2.5, 1.25, 3.75]), np.int32(3))
    assert not is_bare
    assert found == wanted
    assert found[0] == "IndexError"


@pcbatch.autobatch
def changed(a):
    a[0] = a[1] + 10
    a += 1
    return a


@pcbatch.autobatch
def doubled(a, b):
    a[1] = b[0]
    return a, a


@pcbatch.autobatch
def halved(a, low, high):
    if high - low < 2:
        return a
    a[low], a[high - 1] = a[high - 1], a[low]
    middle = (low + high) // 2
    a = halved(a, low, middle)
    return halved(a, middle, high)


def handed_on(x, n):
    x = changed(x * 2)
    for _ in range(n):
        x = changed(x)
    return changed(halved(x, 0, len(x)))


def read_later(x, n):
    return changed(x), x


def renamed(x, n):
    y = x
    x = changed(x)
    return x, y


def renamed_before(x, n):
    y = x
    y += 1
    return x, changed(y), changed(y)


def viewed(x, n):
    row = x[1:]
    return changed(x), row


def view_handed_on(x, n):
    return changed(x[:2]), x


def reshaped(x, n):
    column = x.reshape((3, 1))
    return changed(column), x


def of_both(x, n):
    y, z = doubled(x, x)
    y[0] = 100
    return y, z


def of_around(x, n):
    return changed(WEIGHTS), WEIGHTS * 1


def of_around_as_it_is(x, n):
    weights = np.asarray(WEIGHTS) if n > 2 else x
    return changed(weights), WEIGHTS * 1


def in_a_loop(x, n):
    y = x * 1
    for _ in range(n):
        y = changed(x)
    return y


def in_a_list(x, n):
    xs = [x, x * 2]
    xs[0] = changed(xs[1])
    return xs


def in_an_object(x, n):
    bag = Bag(x)
    return changed(bag.value), bag.value


def one_of_two(x, n):
    y = x if n > 2 else x * 2
    return changed(y), x


def by_helper(x, n):
    def again(a):
        return changed(a), a

    return again(x), x[0]


def rows_of(x, n):
    m = np.stack([x, x])
    first, second = m
    y = changed(first)
    return y, changed(second), m


@pcbatch.autobatch
def bumped(z):
    z += 1
    return z


def without_axes(x, n):
    z = np.array(x[0])
    return bumped(z), z


HANDED_ON = (
    *(handed_on, read_later, renamed, renamed_before, viewed, view_handed_on, reshaped, of_both, of_around, in_a_loop),
    *(of_around_as_it_is, in_a_list, in_an_object, one_of_two, by_helper, rows_of, without_axes),
)


@pytest.mark.parametrize("function", HANDED_ON, ids=lambda f: f.__name__)
def test_calls_copy_arrays_that_others_have(function, both):
    x, known = np.array([2.5, 1.25, 3.75]), WEIGHTS.copy()
    batched = pcbatch.autobatch(function)
    wanted, found, is_bare = both(batched, x, np.int32(3))
    assert_equal(found, wanted)
    np.testing.assert_array_equal(x, [2.5, 1.25, 3.75])
    np.testing.assert_array_equal(WEIGHTS, known)
    if is_bare:
        assert [each.copies for each in batched.examples._kinds.values()] == [function is not handed_on]
    assert is_bare or function is not handed_on


def test_each_kind_has_its_own_places(both):
    function = pcbatch.autobatch(half)
    for value in (np.int32(3), np.float32(3), np.float64(3), np.int64(3), np.array([1, 2], np.int16)):
        wanted, found, is_bare = both(function, value)
        assert_equal(found, wanted)
        assert is_bare


def test_a_text_that_is_no_longer_the_codes_is_not_run(both, monkeypatch):
    text, name = "def mixed(n):\n    return n * 0.5\n", "<a cell that changes>"
    found = {}
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    exec(compile(text, name, "exec"), found)
    function = pcbatch.autobatch(found["mixed"])
    function.check(np.int32([3]))
    other = text.replace("0.5", "0.7")
    monkeypatch.setitem(linecache.cache, name, (len(other), None, other.splitlines(True), name))
    wanted, found, is_bare = both(function, np.int32(3))
    assert_equal(found, wanted)
    assert float(found) == 1.5
    assert not is_bare


def test_an_error_in_repaired_code_is_at_the_users_line(both):
    @pcbatch.autobatch
    def failing(n):
        half = n * 0.5
        assert half > 2.0, f"too small: {half}"
        return half

    wanted, found, _ = both(failing, np.int32(3))
    assert found == wanted == ("AssertionError", "too small: 1.5")


PROGRAMS = (
    *(scalars, stores, with_objects, of_tensorflow, captured, recursive, float_beside_int, flags, sums_of_ints),
    *(members, of_numbers, windows, shifts, asks, order, large, by_zero, joined),
    *(pytest.param(each, marks=slow) for each in (largest, cut, cut_columns, *REPAIRED[6:])),
)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("counter", [np.int32, np.int64, np.float32])
def test_what_it_gives_is_the_same_bare_or_not(function, dtype, counter, both):
    wanted, found, _ = both(pcbatch.autobatch(function), np.array([2.5, 1.25, 3.75]).astype(dtype), counter(3))
    assert_equal(found, wanted)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[slow] * (n % 3 > 0)) for n, name in enumerate(NAMES)])
def test_the_corpus_gives_the_same(name, both):
    program = load(name)
    arguments = program.arguments(2)
    for lane in range(2):
        wanted, found, _ = both(program.function, *example_of(arguments, lane))
        assert_equal(found, wanted)


def test_most_of_the_corpus_runs_bare(both):
    names = NAMES[::12]
    found = [both(load(name).function, *example_of(load(name).arguments(1), 0))[2] for name in names]
    assert sum(found) > 0.6 * len(names)


def test_what_it_reads_counts_at_each_call(both, monkeypatch):
    @pcbatch.autobatch
    def scaled(n):
        return n * SCALE["rate"]

    monkeypatch.setitem(SCALE, "rate", 2)
    wanted, found, is_bare = both(scaled, np.int32(3))
    assert is_bare
    assert_equal(found, wanted)
    monkeypatch.setitem(SCALE, "rate", 0.5)  # NumPy makes float64 of it, a lane float32
    assert scaled.single(np.int32(3)).dtype == tf.float32


def test_a_tape_is_not_passed_by(both):
    @pcbatch.autobatch
    def cubed(x):
        return x * x * x

    x = tf.constant(2.0)
    assert both(cubed, x)[2]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cubed.single(x)
    assert float(tape.gradient(y, x)) == 12.0


def test_an_error_is_raised_at_the_users_line_and_once(both):
    @pcbatch.autobatch
    def failing(a, n):
        a[0] += 1.0
        assert a[0] < 2.0, f"too much: {a[0]}"
        return a[n]

    given = np.array([1.0, 2.0])
    wanted, found, _ = both(failing, given, np.int32(0))
    assert found == wanted == ("AssertionError", "too much: 2.0")
    np.testing.assert_array_equal(given, [1.0, 2.0])
    assert both(failing, np.array([0.0, 2.0]), np.int32(5))[1][0] == "IndexError"


def test_kinds_that_keep_failing_are_left_to_proxies(both):
    @pcbatch.autobatch
    def inverse(n):
        return 7 // n

    both(inverse, np.int32(2))
    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            inverse.single(np.int32(0))
    (kind,) = inverse.examples._kinds.values()
    assert kind.failures == examples.MOST_FAILURES + 1
    assert int(inverse.single(np.int32(2))) == 3

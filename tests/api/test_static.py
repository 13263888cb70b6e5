"""`static_argnames`: values in the cache key, branches that they decide, and what cannot be one."""

from __future__ import annotations

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError
from pcbatch.commands.module_writer import compiled_module

X = np.array([1.0, 2.0, 3.0], np.float32)


def padded(x, size, *, fill=0.0, how=tf.identity):
    """`size` copies of `how(x)`, the last one replaced."""
    row = tf.fill([size], how(x))
    for i in range(size):
        if i == size - 1:
            row[i] = fill
    return row


def test_static_values_make_programs_of_their_own():
    batched = pcbatch.autobatch(padded, static_argnames=("size", "how"), in_axes={"fill": None}, jit=False)
    np.testing.assert_array_equal(batched(X, 2), [[1, 0], [2, 0], [3, 0]])
    np.testing.assert_array_equal(batched(X, size=1, fill=2.0), [[2.0]] * 3)
    np.testing.assert_array_equal(batched(X, 2, how=tf.square), [[1, 0], [4, 0], [9, 0]])
    assert batched.stats().cache_entries == 3
    batched(X, 2)
    assert batched.stats().cache_entries == 3
    np.testing.assert_array_equal(batched.single(X[1], 2, how=tf.square), [4, 0])
    assert batched.program("cfg", X, 2).entry.parameters == ("x", "fill")


def test_equal_values_of_other_types_are_other_values():
    @pcbatch.autobatch(static_argnames="k", jit=False)
    def times(x, k):
        return x * k

    ints = np.array([1, 2], np.int32)
    assert times(ints, 1).dtype == tf.int32
    assert times(X, 1.0).dtype == tf.float32
    times(X, 1)
    assert times.stats().cache_entries == 3


def test_a_branch_on_a_static_value_has_one_arm():
    @pcbatch.autobatch(static_argnames="mode", jit=False)
    def activated(x, mode):
        if mode == "relu":
            y = tf.nn.relu(x)
        elif mode == "pair":
            y = (x, -x)
        else:
            y = "a string, which no lane can keep"
        return y

    np.testing.assert_array_equal(activated(-X, "relu"), 0 * X)
    np.testing.assert_array_equal(activated(X, mode="pair")[1], -X)
    with pytest.raises(pcbatch.errors.PrimitiveError, match=r"PCB404: .*is no value that a lane can keep"):
        activated(X, "neither")


def test_a_captured_constant_decides_a_branch_too():
    deep = (1, 2)

    @pcbatch.autobatch(jit=False)
    def either(x):
        if len(deep) > 1:
            return x + 1.0
        return (x,)

    np.testing.assert_array_equal(either(X), X + 1)
    deep = ()
    np.testing.assert_array_equal(either(X)[0], X)


def test_messages_of_faults_and_stores_may_read_static_values():
    @pcbatch.autobatch(static_argnames=("limit", "place"), jit=False)
    def limited(x, limit, place):
        row = tf.zeros(3)
        row[place] = x
        assert x < limit, f"{x} is not below {limit}"
        return row

    run = limited.run(X, 2.5, 1)
    assert [fault.message for fault in run.errors] == ["AssertionError: 3.0 is not below 2.5"]
    np.testing.assert_array_equal(run.value[:2], [[0, 1, 0], [0, 2, 0]])


def test_options_may_add_static_names_to_a_recursive_function():
    def power(x, n):
        if n == 0:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    plain = pcbatch.autobatch(power, jit=False)
    power = plain.options(static_argnames="n")
    np.testing.assert_array_equal(plain(X, np.array([3, 3, 3])), X**3)
    np.testing.assert_array_equal(power(X, 3), X**3)
    assert [f.name for f in power.program("cfg", X, 3).functions] == ["power", "power_1", "power_2", "power_3"]


MODULE = """
import pcbatch

@pcbatch.autobatch(static_argnames="n")
def inner(x, n, k=2 + 1):
    return x * n + k

@pcbatch.autobatch
def outer(x):
    return inner(x, 2{rest})
"""


@pytest.mark.parametrize(
    ("entry", "rest", "message"),
    [
        ("inner", "", "PCB517: `inner` has static parameters, n"),
        ("outer", "", None),
        ("outer", ", 3", None),
    ],
)
def test_modules_written_with_static_arguments(tmp_path, entry, rest, message):
    path = tmp_path / "module.py"
    path.write_text(MODULE.format(rest=rest))
    namespace = {"__name__": "module"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    batch = (X, 2) if entry == "inner" else (X,)
    if message is not None:
        with pytest.raises(UsageError, match=message):
            compiled_module(path, namespace[entry], batch)
        return
    written = {"__name__": "written"}
    exec(compiled_module(path, namespace[entry], batch), written)
    np.testing.assert_array_equal(written[entry](X), 2 * X + 3)


def test_what_cannot_be_hashed_is_no_static_argument():
    batched = pcbatch.autobatch(padded, static_argnames=["size", "how"], jit=False)
    with pytest.raises(UsageError, match=r"PCB507: the static argument 'size' is part of the cache key, .*unhashable"):
        batched(X, [2])


def plus(x, w=None):
    if w is None:
        w = 1.0
    return x + w


def test_a_parameter_that_is_none_may_be_replaced():
    batched = pcbatch.autobatch(plus, jit=False)
    np.testing.assert_array_equal(batched(X), X + 1)
    np.testing.assert_array_equal(batched(X, X), 2 * X)


def test_what_is_none_at_first_only():
    @pcbatch.autobatch(jit=False)
    def last(x, n):
        seen = None
        for _ in range(n):
            if seen is None:
                seen = x
            else:
                seen = seen + x
        return seen

    np.testing.assert_array_equal(last(X, 2 * tf.ones(len(X), tf.int32)), 2 * X)


def test_a_branch_without_leaves_to_read():
    """`none or x > 3` with None for `w` reads a structure without leaves, and nothing of a lane."""

    @pcbatch.autobatch(jit=False)
    def either(x, w):
        none = w is None
        if none or x > 3:
            return x
        return x + w

    np.testing.assert_array_equal(either(X, None), X)
    np.testing.assert_array_equal(either(X, X), 2 * X)


PAIR = collections.namedtuple("PAIR", "count half")


def test_known_floats_and_named_tuples_become_values_of_lanes():
    """What is known on the way to a static branch may be read where it no longer is, in its own precision."""

    @pcbatch.autobatch(static_argnames="way", jit=False)
    def summed(x, way):
        step, pair, parts = 0.1, PAIR(2, 0.5), (1, 0.25)
        if (way, step) == (1, 0.1):
            while x < 2:
                x = x + pair.count
            pair = pair._replace(half=x)
        elif pair.half == 0.5 and parts[0] == way:
            return x
        while x > 4:
            x = x - parts[1] - pair.count * step
        return x + step + pair.half

    def plain(x, way):
        while way == 1 and x < 2:
            x += 2
        half = x if way == 1 else 0.5
        while x > 4:
            x -= 0.45
        return x + 0.1 + half

    doubles = np.array([-3.0, 1.5, 9.0])
    for way in (1, 2):
        np.testing.assert_allclose(summed(doubles, way), [plain(x, way) for x in doubles], rtol=1e-14)


@pcbatch.autobatch(jit=False, static_argnames="way")
def applied(x, way):
    return way(x)


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


@pytest.mark.parametrize("way", [lambda y: lambda x: x * y, lambda y: functools.partial(tf.multiply, y)])
def test_a_function_that_is_static_may_have_lanes_values(way):
    """Which function it is, is known; what it reads of the function around it is handed over."""

    @pcbatch.autobatch(jit=False)
    def outer(x, y):
        made = way(y)
        return applied(x, made) - applied(y, made)

    np.testing.assert_array_equal(outer(X, X + 1.0), X * (X + 1.0) - (X + 1.0) ** 2)


@pytest.mark.parametrize("way", [lambda y: Times(y).__call__, lambda y: Times(y)])
def test_an_object_with_the_lanes_values_is_not_static(way):
    @pcbatch.autobatch(jit=False)
    def outer(x, y):
        made = way(y)
        return applied(x, made)

    with pytest.raises(pcbatch.CompileError, match=r"PCB310: the static parameter `way` (.|\n)*applied\(x, made\)"):
        outer(X, X)


def test_a_function_of_known_values_is_static():
    @pcbatch.autobatch(jit=False)
    def outer(x):
        return applied(x, lambda v: v * FACTOR) + applied(x, Times(2.0))

    assert np.asarray(outer(np.ones(2, np.float32))).tolist() == [5.0, 5.0]


FACTOR = 3.0

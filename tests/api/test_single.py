"""`f.single`: the user's function as Python runs it, with nothing of pcbatch between a call and its callee."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import pcbatch


@pcbatch.autobatch
def down(n):
    if n <= 0:
        return 0
    return 1 + down(n - 1)


@pcbatch.autobatch
def even(n):
    return True if n <= 0 else odd(n - 1)


@pcbatch.autobatch
def odd(n):
    return False if n <= 0 else even(n - 1)


@pcbatch.autobatch(static_argnames="function")
def handed(function, n):
    return function(n) if n <= 0 else handed(function, n - 1)


class Counter:
    """Methods, private ones too."""

    __step = 2

    def __counted(self, n):
        return n * self.__step

    @pcbatch.autobatch
    def walk(self, n, k):
        if k <= 0:
            return self.__counted(n)
        return self.walk(n, k - 1)


def inner_functions():
    """Functions that find each other in a closure, one of them later."""

    @pcbatch.autobatch
    def first(n):
        return n if n <= 0 else second(n - 1)

    @pcbatch.autobatch
    def second(n):
        return first(n)

    return first


DEEP = 700
"""Python's limit is 1000 frames, some of which the tests have taken."""


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (down, (DEEP,), DEEP),
        (even, (DEEP,), True),
        (handed, (down, DEEP), 0),
        (Counter().walk, (3, DEEP), 6),
        (inner_functions(), (DEEP // 2,), 0),
    ],
    ids=["itself", "each other", "handed over", "a method", "a closure"],
)
def test_each_call_takes_one_frame(function, arguments, expected):
    assert function.single(*arguments) == expected


@pcbatch.autobatch
def rising(n):
    if n <= 0:
        raise ValueError("below")
    return rising(n - 1)


def test_tracebacks_have_the_functions_name_and_lines_and_nothing_else():
    with pytest.raises(ValueError, match="below") as caught:
        rising.single(2)
    frames = [each for each in traceback.extract_tb(caught.tb) if each.filename == __file__][1:]
    assert [each.name for each in frames] == ["rising"] * 3
    assert [each.line for each in frames] == ["return rising(n - 1)"] * 2 + ['raise ValueError("below")']


def test_a_name_that_is_rebound_means_the_new_function(monkeypatch):
    assert down.single(3) == 3
    monkeypatch.setitem(globals(), "odd", down)
    assert int(even.single(3)) == 2


def test_outside_the_batched_function_is_called():
    """What `single` did is over."""
    down.single(2)
    np.testing.assert_array_equal(down.options(jit=False)([2, 0]), [2, 0])


@pcbatch.autobatch
def matched(x):
    match x > 1:
        case 1:
            found = 10
        case -1 | 0.0:
            found = 20
        case _:
            found = 30
    match x:
        case 2 | 3.0:
            return found + 1
    return found


def test_a_bool_matches_the_number_that_it_is() -> None:
    """As Python has it, and batches: `True == 1`."""
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    assert [matched.single(each) for each in x] == [20, 11, 11, 10]
    np.testing.assert_array_equal(matched.options(backend="reference")(x), [20, 11, 11, 10])


class Mean:
    def __init__(self):
        self.total = 0.0
        self.count = 0

    def add(self, x):
        self.total += x
        self.count += 1

    def mean(self):
        return self.total / self.count

    def twice(self):
        return 2.0 * self.mean()


@pcbatch.autobatch
def mean_of(x):
    mean = Mean()
    mean.add(x)
    mean.add(1.0)
    return mean.twice()


def test_a_method_that_calls_another_one_does_so_on_its_own_object():
    assert [float(mean_of.single(np.float32(x))) for x in (1.0, 3.0, 5.0)] == [2.0, 4.0, 6.0]


@pcbatch.autobatch
def grown(x, least):
    while x < least:
        x = x + least * 0.1
    return x, least


@pcbatch.autobatch
def scaled(x, by):
    return x * by["scale"] + by["shift"]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.float32])
def test_pythons_floats_are_of_the_dtype_of_the_floats_beside_them(dtype):
    x, least = np.array([0.25, 3.0], dtype), np.array([1.7, 0.1], dtype)
    batch = grown(x, least)
    for lane in range(2):
        for one in (grown.single(x[lane], float(least[lane])), grown.single(float(x[lane]), least[lane])):
            for each, wanted in zip(one, batch, strict=True):
                assert each.dtype == wanted.dtype == dtype
                np.testing.assert_allclose(each, wanted[lane], rtol=4 * np.finfo(dtype).eps)
    assert grown.single(0.25, 1.5)[0].dtype == np.float32


def test_so_they_are_beside_arrays_and_in_structures():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    shift = np.array([0.1, 0.3])
    batch = scaled(x, {"scale": np.array([0.7, 0.7]), "shift": shift})
    for lane in range(2):
        one = scaled.single(x[lane], {"scale": 0.7, "shift": shift[lane]})
        np.testing.assert_allclose(one, batch[lane], rtol=1e-15)


def test_of_floats_of_several_dtypes_none_counts():
    @pcbatch.autobatch
    def apart(x, y, z):
        return x, y, z

    given = apart.single(np.float64(1.0), np.float16(1.0), 0.5)
    assert [each.dtype for each in given] == [np.float64, np.float16, np.float32]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.float32])
def test_so_is_a_list_of_them_for_a_batch(dtype):
    x, least = [0.1, 3.0, 0.7], [1.7, 0.1, 1.1]
    for size in (0, 1, 3):
        beside, wanted = np.array(least[:size], dtype), grown(np.array(x[:size], dtype), np.array(least[:size], dtype))
        for found in (grown(x[:size], beside), grown(np.array(x[:size], dtype), least[:size])):
            for each, one in zip(found, wanted, strict=True):
                assert each.dtype == dtype
                np.testing.assert_array_equal(each, one)


def test_a_list_is_of_the_dtype_beside_it_in_structures_and_for_all_lanes():
    x, shift = np.array([0.3, 0.7]), [0.1, 0.2]
    wanted = scaled(x, {"scale": np.array([0.1, 0.3]), "shift": np.array(shift)})
    np.testing.assert_array_equal(scaled(x.tolist(), {"scale": np.array([0.1, 0.3]), "shift": shift}), wanted)
    np.testing.assert_array_equal(scaled(x, {"scale": [0.1, 0.3], "shift": shift}), wanted)
    for_all = scaled.options(in_axes=(0, {"scale": 0, "shift": None}))
    found = for_all(x, {"scale": [0.1, 0.3], "shift": [0.1, 0.2]})
    for lane, scale in enumerate([0.1, 0.3]):
        np.testing.assert_array_equal(found[lane], scaled.single(x[lane], {"scale": scale, "shift": [0.1, 0.2]}))


def test_ints_in_a_list_among_floats_are_floats_and_by_themselves_ints():
    @pcbatch.autobatch
    def both(x, y):
        return x, y

    assert both([1, 0.1], np.ones(2))[0].dtype == np.float64
    assert both([1, 2], np.ones(2))[0].dtype == np.int32
    assert both([np.float32(1.0), 0.1], np.ones(2))[0].dtype == np.float32


def test_a_number_for_all_lanes_is_no_array_beside_a_list():
    shared = scaled([0.25, 0.5], {"scale": [2.0, 4.0], "shift": 0.1})
    assert shared.dtype == np.float32

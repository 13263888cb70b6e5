"""Arrays that batched functions are given and give are values in `f.single`, too, as in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests import storing

TABLE = np.array([1, 2, 3, 4], np.int32)


class Pair(NamedTuple):
    array: Any
    number: int


@dataclass
class Box:
    array: Any


class Holder:
    def __init__(self, array):
        self.array = array

    @pcbatch.autobatch
    def held(self):
        return self.array


def store(a):
    a[0] = 100


@pcbatch.autobatch
def same(a):
    return a


@pcbatch.autobatch
def later(a, n):
    if n <= 0:
        return a
    return later(a, n - 1)


@pcbatch.autobatch
def twice(a):
    b = a * 1
    return b, b, b[0:2]


@pcbatch.autobatch
def listed(a):
    return [a, a[1:]]


@pcbatch.autobatch
def first(arrays):
    return arrays[0]


@pcbatch.autobatch
def paired(a):
    return Pair(a, 1)


@pcbatch.autobatch
def boxed(a):
    return {"box": Box(a), "array": a}


@pcbatch.autobatch
def table(a):
    return TABLE


@pcbatch.autobatch
def in_place(a):
    a += 1
    return a


@pcbatch.autobatch
def by_slice(a):
    a[0:2] = 9
    return a


@pcbatch.autobatch
def of_a_name(a):
    b = a
    b *= 2
    return b[0]


@pcbatch.autobatch
def by_helper(a):
    store(a)
    return a[1]


def callee_adds(a):
    return in_place(a), a


def callee_stores_a_slice(a):
    return by_slice(a), a


def callee_names_it(a):
    return of_a_name(a), a


def callee_hands_it_on(a):
    return by_helper(a), a


def result_is_changed(a):
    b = same(a)
    b[0] = 100
    return a, b


def argument_is_changed(a):
    b = same(a)
    a[0] = 100
    return a, b


def result_is_changed_by_a_helper(a):
    b = same(a)
    store(b)
    return a, b


def result_is_changed_by_a_module(a):
    b = same(a)
    storing.store(b)
    return a, b


def result_of_a_recursion_is_changed(a):
    b = later(a, 2)
    b += 1
    return a, b


def one_of_several_is_changed(a):
    b, c, d = twice(a)
    b[0] = 100
    return a, b, c, d


def part_of_a_list_is_changed(a):
    b = listed(a)
    b[0][1] = 100
    c = first([a, a])
    c[3] = 100
    return a, b[0], b[1], c


def part_of_a_tuple_is_changed(a):
    b, given = paired(a), Pair(a, 2)
    b.array[0] = 100
    c = same(given)
    c.array[1] = 100
    return a, b.array, given.array, c.array


def part_of_an_object_is_changed(a):
    b, given = boxed(a), Box(a)
    b["box"].array[0] = 100
    c = same(given)
    c.array[1] = 100
    return a, b["box"].array, b["array"], given.array, c.array


def list_that_is_given_back_is_changed(a):
    given = [a, a * 2]
    b = same(given)
    b.append(a * 3)
    return len(given), len(b)


def result_of_a_method_is_changed(a):
    holder = Holder(a)
    b = holder.held()
    b[0] = 100
    return a, holder.array, b


def captured_array_is_given_back(a):
    b = table(a)
    b[0] = 100
    return b, table(a)


def view_is_given_back(a):
    b = a[1:]
    c = same(b)
    c[0] = 100
    return a, b, c


PROGRAMS = (
    callee_adds,
    callee_stores_a_slice,
    callee_names_it,
    callee_hands_it_on,
    result_is_changed,
    argument_is_changed,
    result_is_changed_by_a_helper,
    result_is_changed_by_a_module,
    result_of_a_recursion_is_changed,
    one_of_several_is_changed,
    part_of_a_list_is_changed,
    part_of_a_tuple_is_changed,
    part_of_an_object_is_changed,
    list_that_is_given_back_is_changed,
    result_of_a_method_is_changed,
    captured_array_is_given_back,
    view_is_given_back,
)


@pytest.fixture(scope="module")
def batches() -> dict[Any, Any]:
    """The results of a batch for each program, of one compilation."""

    @pcbatch.autobatch
    def every(a):
        return tuple(program(a * 1) for program in PROGRAMS)

    return dict(zip(PROGRAMS, every(np.array([[1, 2, 3, 4]], np.int32)), strict=True))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_single_is_as_a_batch(program, batches):
    a = np.array([1, 2, 3, 4], np.int32)
    found = pcbatch.autobatch(program).single(a)
    for one, lanes in zip(found, batches[program], strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(lanes)[0])
    np.testing.assert_array_equal(a, [1, 2, 3, 4])
    np.testing.assert_array_equal(TABLE, [1, 2, 3, 4])


@dataclass
class Storing:
    number: Any

    def store(self, a):
        a[0] = self.number


def result_is_changed_by_an_argument(storing, a):
    b = same(a)
    storing.store(b)
    return a, b


def test_what_an_argument_changes_is_a_result_of_its_own():
    function, a = pcbatch.autobatch(result_is_changed_by_an_argument), np.array([1, 2], np.int32)
    for found, wanted in zip(function.single(Storing(np.int32(100)), a), ([1, 2], [100, 2]), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)
    lanes = function(Storing(np.array([100], np.int32)), a[None])
    for found, wanted in zip(lanes, ([[1, 2]], [[100, 2]]), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)


def whole(a):
    return a, [a[1:]], {"tensor": tf.identity(a), "box": Box(a)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"form": "native"},
        {"form": "lockstep"},
        {"jit": False},
        {"strategy": "local"},
        {"strategy": "agenda"},
        {"backend": "reference"},
    ],
    ids=str,
)
@pytest.mark.parametrize("output", ["tensors", "numpy"])
def test_results_share_no_memory_with_arguments(options, output):
    function = pcbatch.autobatch(whole, **options, output=output)
    a, lanes = aligned(64), aligned(64, 64)
    for given, call in ((a, function.single), (lanes, function), (lanes, lambda each: function.run(each).value)):
        before = given.copy()
        found = leaves(call(given))
        values = [np.array(each) for each in found]
        given += 1
        for each, value in zip(found, values, strict=True):
            np.testing.assert_array_equal(np.asarray(each), value)
        given -= 1
        for each in found:
            if isinstance(each, np.ndarray):
                each += 1
        np.testing.assert_array_equal(given, before)


def aligned(*shape):
    """An array at a place in memory that TensorFlow could take without a copy."""
    count = 4 * int(np.prod(shape))
    memory = np.zeros(count + 256, np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + count].view(np.int32).reshape(shape)


def leaves(found):
    a, (part,), named = found
    return a, part, named["tensor"], named["box"].array

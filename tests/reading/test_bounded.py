"""Bounded lists do what lists do: as arguments and results, in objects, in helpers and recursion, by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

X, N = np.array([3.0, 1.0, 7.0], np.float32), np.array([0, 1, 2], np.int32)


def listed(x, n, made):
    b = made([], tf.float32, 6)
    b.append(x)
    b.extend([1.0, 2.5])
    b.sort()
    first = b.pop(0)
    b.insert(0, first + 1.0)
    if n > 1:
        b.append(4.0)
    behind = b[1:]
    found = (b.index(2.5), b.count(2.5)) if 2.5 in b else (-1, 0)
    b.reverse()
    return b[0], len(b), sum(b), max(behind), len(behind), found, b == behind


def of_rows(x, n, made):
    b = made([2], tf.float32, 3)
    b.append(np.array([x, 1.0], np.float32))
    b[0][1] += 4.0
    w = b[0].copy()
    w[0] += 1.0
    b.append((x, n))
    for v in b:
        v[1] *= 2.0
    b.reverse()
    last = b.pop()
    last[0] = 0.0
    return b[0], b[-1][1], w, last, len(b)


def filled(b, x, n):
    if n > 0:
        b.append(x)
        filled(b, x + 1.0, n - 1)


def by_recursion(x, n, made):
    b = made([], tf.float32, 4)
    filled(b, x, n)
    return sum(b), len(b), [v * 2.0 for v in b] == [v + v for v in b]


class Heap:
    def __init__(self, made):
        self.todo = made([], tf.float32, 4)
        self.done = made([], tf.float32, 4)

    def move(self):
        while self.todo:
            self.done.append(self.todo.pop() + 1.0)
        self.todo, self.done = self.done, self.todo


def swapped(x, n, made):
    heap = Heap(made)
    for k in range(n + 1):
        heap.todo.append(x * float(k))
        heap.move()
    return sum(heap.todo), len(heap.done)


def in_python(shape: Any, dtype: Any, capacity: int) -> Any:
    """A list of arrays of what goes in."""

    class Values(list):
        def append(self, value: Any) -> None:
            super().append(np.asarray(value, np.float32))

    return Values()


@pytest.mark.parametrize("options", [{}, {"form": "lockstep"}, {"form": "native"}, {"backend": "reference"}], ids=str)
@pytest.mark.parametrize("program", [listed, of_rows, by_recursion, swapped], ids=lambda program: program.__name__)
def test_as_a_list_has_it(program, options):
    def of_lanes(x, n):
        return program(x, n, pcbatch.bounded)

    batched = pcbatch.autobatch(of_lanes, **options)
    found = [np.asarray(each) for each in tf.nest.flatten(batched(X, N))]
    for lane in range(3):
        expected = tf.nest.flatten(program(X[lane], N[lane], in_python))
        single = tf.nest.flatten(batched.single(X[lane], N[lane]))
        for own, other, theirs in zip(found, single, expected, strict=True):
            np.testing.assert_allclose(own[lane], theirs, rtol=1e-6)
            np.testing.assert_allclose(other, theirs, rtol=1e-6)


def test_what_comes_back_goes_in_again():
    @pcbatch.autobatch
    def pairs(n):
        found = []
        for k in range(n):
            found.append((k, 0.5 * k))
        return found

    @pcbatch.autobatch
    def last(found):
        found.append((7, 7.0))
        place, half = found[-2]
        return place + half, len(found)

    values, lengths = last(pairs(np.array([1, 4, 9])))
    np.testing.assert_allclose(values, [0.0, 4.5, 12.0])
    np.testing.assert_array_equal(lengths, [2, 5, 10])


def full(x, n):
    b = pcbatch.bounded([], tf.float32, 2)
    for _ in range(n):
        b.append(x)
    return len(b)


def emptied(x, n):
    b = pcbatch.bounded([], tf.float32, 2)
    b.append(x)
    for _ in range(n):
        b.pop()
    return len(b)


@pytest.mark.parametrize(
    ("program", "message"),
    [(full, "IndexError: append to a bounded list that is full"), (emptied, "IndexError: pop from an empty list")],
)
def test_lanes_that_ask_too_much_fail_alone(program, message):
    run = pcbatch.autobatch(program).run(X, np.array([3, 1, 0]))
    assert [error.lane for error in run.errors] == [0]
    assert run.errors[0].message == message


def meeting(x, n):
    one, other = pcbatch.bounded([], tf.float32, 2), pcbatch.bounded([], tf.float32, 3)
    found = one if x > 0 else other
    found.append(x)
    return found[0]


def of_another_type(x, n):
    b = pcbatch.bounded([], tf.int32, 2)
    b.append(x)
    return b[0]


def without_room(x, n):
    return len(pcbatch.bounded([], tf.int32, 0))


def without_capacity(x, n):
    return len(pcbatch.bounded([], tf.int32))


def of_a_lanes_capacity(x, n):
    return len(pcbatch.bounded([], tf.int32, n))


REFUSED = {
    meeting: "PCB301",
    of_another_type: "PCB307",
    without_room: "PCB554",
    without_capacity: "PCB401",
    of_a_lanes_capacity: "PCB313",
}


@pytest.mark.parametrize(("program", "code"), REFUSED.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_what_cannot_be_is_refused(program, code):
    with pytest.raises(pcbatch.CompileError, match=code) as caught:
        pcbatch.autobatch(program)(X, N)
    assert caught.value.diagnostics[0].span.file == __file__

"""Which loops are written out, turn by turn: those that must be, since that takes long to compile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def first_free(durations, workers):
    free_at = [0.0] * 5
    for duration in durations:
        worker = min(range(workers), key=lambda k: free_at[k])
        free_at[worker] += duration
    return max(free_at)


def test_the_loop_around_a_smallest_by_key_stays_a_loop():
    texts = [first_free.ir("cfg", np.ones((1, turns), np.float32), np.array([3])) for turns in (3, 12)]
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    np.testing.assert_array_equal(first_free(np.ones((2, 12), np.float32), np.array([3, 5])), [4.0, 3.0])


@dataclass
class Body:
    place: float


@pcbatch.autobatch
def chain(masses, turns):
    bodies = [Body(0.0) for _ in range(3)]
    for _ in range(turns):
        forces = []
        for i in range(3):
            forces.append(masses[i] - bodies[i].place)
        for body, force in zip(bodies, forces, strict=True):
            body.place += force / 2.0
    return [body.place for body in bodies]


def test_the_length_of_a_list_that_a_written_out_loop_makes_is_known_when_that_is_written_out():
    masses = np.array([[1.0, 2.0, 4.0], [8.0, 0.0, 2.0]], np.float32)
    found = chain(masses, np.array([1, 2], np.int32))
    np.testing.assert_array_equal(np.transpose(found), masses * np.array([[0.5], [0.75]]))


LEVELS = 6


@pcbatch.autobatch
def trapezoid(f, low, high):
    total = (f(low) + f(high)) / 2.0
    width = high - low
    for k in range(1, LEVELS):
        width = width / 2.0
        total += sum(f(low + (2 * i + 1) * width) for i in range(2 ** (k - 1)))
    return total * width


@pcbatch.autobatch
def area(high):
    return trapezoid(lambda x: x * x, 0.0, high)


def test_a_sum_of_calls_over_a_length_that_changes_is_a_loop():
    width = np.float32(2.0 / 32)
    expected = float(width * (sum((k * width) ** 2 for k in range(1, 32)) + 2.0))
    np.testing.assert_allclose(area(np.array([2.0], np.float32)), [expected], rtol=1e-5)


TABLE = np.array([4, -3, 2, 7], np.int32)


@pcbatch.autobatch
def in_a_loop(b):
    total = 2

    def least(k):
        if k > 8:
            return 4 * total
        return k

    for _ in range(0, TABLE[total] % 4 + 4, 3):
        total = sum([least(each) + each for each in (b, -4)]) % 4
    return total


def test_a_loop_whose_counter_is_known_at_first_has_calls_for_each_of_several_numbers():
    numbers = np.array([1, 2, 13], np.int32)
    np.testing.assert_array_equal(in_a_loop(numbers), [in_a_loop.single(each) for each in numbers])


@pcbatch.autobatch
def several(v, n):
    high = max(a for a in v)
    low = min((a for a in v if a > 5.0), default=-1.0)
    count = sum(1 for a in v if a > 0.0)
    place = max(range(3), key=lambda i: v[i])
    return high - low, count + n, place


def test_builtins_of_generators_give_what_python_gives():
    found = several(np.array([[1.0, 7.0, 6.0], [-1.0, 0.0, 2.0]], np.float32), np.array([10, 20], np.int32))
    np.testing.assert_array_equal(np.transpose(found), [[1.0, 13.0, 1.0], [3.0, 21.0, 2.0]])


def test_all_that_is_wrong_in_one_block_is_told():
    @pcbatch.autobatch
    def wrong(x):
        a = tf.reshape(x, [3])
        b = tf.matmul(x, x)
        c = x + "m"
        return a + b, c

    with pytest.raises(pcbatch.CompileError) as caught:
        wrong(np.zeros(2, np.float32))
    places = [each.span.line for each in caught.value.diagnostics]
    assert [place - places[0] for place in places] == [0, 1, 2]

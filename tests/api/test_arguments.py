"""Arguments: which have a lane axis, which all lanes share, and what fits."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError

STEPS = np.array([0, 1, 3], np.int32)
WEIGHTS = np.array([1.0, 2.0], np.float32)
EACH = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


def value(tensor):
    return np.asarray(tensor).tolist()


@pcbatch.autobatch(jit=False)
def walk(n, weights, times=2):
    """A recursion that hands `weights` and `times` on as they are."""
    if n == 0:
        return tf.reduce_sum(weights) * times
    return walk(n - 1, weights, times) + 1.0


# -- in_axes -------------------------------------------------------------------------------------------------


def test_every_argument_has_a_lane_axis_unless_told_otherwise():
    assert value(walk(STEPS, EACH)) == [6.0, 15.0, 25.0]


@pytest.mark.parametrize("axes", [(0, None, None), {"weights": None, "times": None}, {"weights": None, "n": 0}])
def test_shared_by_position_or_by_name(axes):
    """A parameter that is left out of a dict has a lane axis, a default is one value for all."""
    assert value(walk.options(in_axes=axes)(STEPS, WEIGHTS)) == [6.0, 7.0, 9.0]


def test_all_shared_needs_a_number_of_lanes():
    shared = walk.options(in_axes=None)
    assert value(shared(3, WEIGHTS, lanes=2)) == [9.0, 9.0]
    with pytest.raises(UsageError, match="PCB514: no argument has a batch axis; say how many lanes to run with lanes="):
        shared(3, WEIGHTS)


def test_lanes_may_be_said_where_they_are_known():
    assert value(walk(STEPS, EACH, lanes=3)) == [6.0, 15.0, 25.0]
    with pytest.raises(UsageError, match=r"PCB513: .*n has 3, weights has 3, lanes= has 4"):
        walk(STEPS, EACH, lanes=4)


def test_a_parameter_called_lanes_is_the_users():
    @pcbatch.autobatch(jit=False)
    def half(lanes):
        return lanes / 2.0

    assert value(half(lanes=WEIGHTS)) == [0.5, 1.0]


def test_arguments_by_keyword():
    assert value(walk(weights=EACH, n=STEPS)) == [6.0, 15.0, 25.0]
    assert value(walk(STEPS, EACH, times=np.array([1, 2, 3], np.float32))) == [3.0, 15.0, 36.0]


# -- what stays shared ---------------------------------------------------------------------------------------


@pcbatch.autobatch(jit=False, in_axes={"weights": None})
def ping(n, weights):
    if n == 0:
        return tf.reduce_sum(weights)
    return 1.0 + pong(n - 1, weights)


@pcbatch.autobatch(jit=False)
def pong(m, mass):
    if m == 0:
        return -tf.reduce_sum(mass)
    return 10.0 + ping(m - 1, mass)


@pcbatch.autobatch(jit=False, in_axes={"weights": None})
def grown(n, weights):
    """`weights` is handed on changed, so that each lane has its own."""
    if n == 0:
        return tf.reduce_sum(weights)
    return grown(n - 1, weights * 2.0)


def shared_operands(function, *batch):
    """The parameters that the compiled program holds once, not once for each lane."""
    return function.pipeline(*batch).table.shared


def test_what_a_recursion_hands_on_unchanged_stays_shared():
    function = walk.options(in_axes={"weights": None})
    assert shared_operands(function, STEPS, WEIGHTS) == ("weights", "times")


def test_defaults_are_shared_without_being_asked():
    assert shared_operands(walk, STEPS, EACH) == ("times",)


def test_what_two_functions_hand_to_each_other_stays_shared():
    """Also under two names: `mass` is but a copy of `weights`."""
    assert shared_operands(ping, STEPS, WEIGHTS) == ("weights",)


def test_two_functions_that_hand_a_shared_argument_to_each_other():
    assert value(ping(STEPS, WEIGHTS)) == [3.0, -2.0, 9.0]


def test_what_is_handed_on_changed_is_spread_to_the_lanes():
    assert shared_operands(grown, STEPS, WEIGHTS) == ()
    assert value(grown(STEPS, WEIGHTS)) == [3.0, 6.0, 24.0]


def test_a_shared_argument_that_is_returned_is_spread_to_the_lanes():
    @pcbatch.autobatch(jit=False, in_axes=(0, None))
    def either(n, weights):
        return weights if n > 0 else weights + 1.0

    assert value(either(STEPS, WEIGHTS)) == [[2.0, 3.0], [1.0, 2.0], [1.0, 2.0]]


def test_a_shared_python_number_is_weak():
    """A number given from Python takes the dtype that it meets, as it would inside the function."""
    assert value(walk.options(in_axes=(0, None, None))(STEPS, WEIGHTS, 0.5)) == [1.5, 2.5, 4.5]
    single = walk.options(in_axes=(0, None, None)).single(1, WEIGHTS, 0.5)
    assert value(single) == 2.5
    wide = walk.options(in_axes=(0, None, None))(STEPS, WEIGHTS.astype(np.float64), 3)
    assert wide.dtype == tf.float64


def test_a_python_number_beside_a_batch_is_shared():
    """It can mean nothing else; the dtype is that of what it meets."""
    assert value(walk(STEPS, EACH, 0.5)) == value(walk.options(in_axes=(0, 0, None))(STEPS, EACH, 0.5))
    assert value(walk(STEPS, EACH, times=3)) == value(walk(STEPS, EACH, np.full(3, 3.0, np.float32)))
    assert walk(STEPS, EACH.astype(np.float64), 3).dtype == tf.float64
    assert shared_operands(walk, STEPS, EACH, 0.5) == shared_operands(walk, STEPS, EACH)
    assert value(walk(2, EACH)) == value(walk(np.full(3, 2), EACH))
    assert value(walk(2, 1.5, lanes=2)) == value(walk(np.full(2, 2), np.full(2, 1.5, np.float32)))
    for times in (1, 2.5, 1):  # warm, too, and each kind its own
        assert value(walk(STEPS, EACH, times)) == value(walk(STEPS, EACH, np.full(3, times, np.float32)))


# -- what does not fit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((STEPS, EACH[:2]), {}, "PCB513: the arguments disagree on the number of lanes: n has 3, weights has 2"),
        ((3, 1.0), {}, "PCB511: argument 'n': a scalar has no batch axis"),
        ((np.int32(3), EACH), {}, "PCB511: argument 'n': a scalar has no batch axis"),
        ((STEPS, object()), {}, "PCB511: argument 'weights': not an array"),
        ((STEPS, ["a", "b", "c"]), {}, "PCB511: argument 'weights': a lane has numbers, no text"),
        ((STEPS, [[[1.0]], [[1.0, 2.0], [3.0]], []]), {}, "PCB511: argument 'weights': not an array"),
        ((STEPS,), {}, r"PCB510: missing a required argument: 'weights'; the parameters are \(n, weights, times=2\)"),
        ((STEPS, EACH, 1, 2), {}, "PCB510: too many positional arguments"),
        ((STEPS, EACH), {"power": 2}, "PCB510: got an unexpected keyword argument 'power'"),
    ],
)
def test_arguments_that_do_not_fit(args, kwargs, message):
    with pytest.raises(UsageError, match=message):
        walk(*args, **kwargs)


def test_a_wrong_call_is_a_type_error_too():
    """As Python itself would raise."""
    with pytest.raises(TypeError, match="missing a required argument"):
        walk()


# -- structures and dtypes -----------------------------------------------------------------------------------


class Point(NamedTuple):
    x: tf.Tensor
    y: tf.Tensor


@dataclasses.dataclass
class Particle:
    place: Point
    mass: tf.Tensor


@pcbatch.autobatch(jit=False)
def pushed(particle, force, turns):
    """Takes and gives a dataclass that holds a named tuple; `force` is a tuple, `turns` a dict."""
    left = turns["left"]
    while left > 0:
        fx, fy = force
        place = Point(particle.place.x + fx / particle.mass, particle.place.y + fy / particle.mass)
        particle = Particle(place, particle.mass)
        left -= 1
    return particle, {"left": left}


def test_structures_go_in_and_come_out():
    two = np.array([2.0, 4.0], np.float32)
    particle, turns = pushed(Particle(Point(two, two), two), (two, -two), {"left": np.array([1, 3], np.int32)})
    assert isinstance(particle, Particle)
    assert isinstance(particle.place, Point)
    assert (value(particle.place.x), value(particle.place.y)) == ([3.0, 7.0], [1.0, 1.0])
    assert value(turns["left"]) == [0, 0]
    single, _ = pushed.single(Particle(Point(2.0, 2.0), 2.0), (2.0, -2.0), {"left": 1})
    assert (value(single.place.x), value(single.place.y)) == (3.0, 1.0)


def test_a_lane_number_that_one_leaf_of_a_structure_lacks():
    two = np.ones(2, np.float32)
    with pytest.raises(UsageError, match=r"PCB513: .*force\[0\] has 1, force\[1\] has 2"):
        pushed(Particle(Point(two, two), two), (two[:1], two), {"left": np.array([1, 3], np.int32)})


@pcbatch.autobatch(jit=False)
def root(x):
    guess = x
    while abs(guess * guess - x) > 1e-12 * x:
        guess = 0.5 * (guess + x / guess)
    return guess


def test_float64_stays_float64():
    """No constant on the way makes it shorter: the roots are right to the last digits."""
    batch = np.array([2.0, 3.0, 10.0])
    roots = root(batch)
    assert roots.dtype == tf.float64
    np.testing.assert_allclose(roots, np.sqrt(batch), rtol=1e-14)


# -- weak numbers that recursion gives a dtype ---------------------------------------------------------------


@pcbatch.autobatch(jit=False)
def summed(x, total=0.0, steps=(0, 0)):
    """Defaults are weak: they take the dtype of what they meet at the recursive call, `steps[1]` none."""
    if x <= 0:
        return total, steps[0], steps[1]
    return summed(x - 1, total + x, (steps[0] + x, steps[1] + 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_weak_default_takes_the_dtype_of_a_float(dtype):
    total, count, turns = summed(np.array([3, 0, 2], dtype))
    assert (total.dtype.name, count.dtype.name, turns.dtype.name) == (dtype, dtype, "int32")
    assert [value(each) for each in (total, count, turns)] == [[6.0, 0.0, 3.0], [6.0, 0.0, 3.0], [3, 0, 2]]


@pcbatch.autobatch(jit=False)
def counted(n, total=0):
    return total if n <= 0 else counted(n - 1, total + n)


def test_a_weak_default_takes_the_dtype_of_an_int():
    numbers = np.array([3, 0, 2])
    for function, arguments in (
        (counted, (numbers,)),
        (counted.options(in_axes=(0, None)), (numbers, 0)),
        (counted.options(in_axes=(0, None)), (numbers, 5)),
        (counted.options(backend="reference"), (numbers,)),
    ):
        start = arguments[1] if len(arguments) > 1 else 0
        result = function(*arguments)
        assert result.dtype == tf.int64
        assert value(result) == [6 + start, start, 3 + start]
        assert result[0] == function.single(numbers[0], *arguments[1:])
    assert value(counted.options(in_axes=None)(np.int64(3), lanes=2)) == [6, 6]


def test_a_weak_float_that_meets_ints_is_a_float():
    found = summed(STEPS)
    assert [each.dtype.name for each in found] == ["float32", "int32", "int32"]
    single = [summed.single(x) for x in STEPS]
    assert [value(each) for each in found] == [[value(each[place]) for each in single] for place in range(3)]


# -- few lanes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [False, True])
def test_no_lanes_at_all(jit):
    """The outputs are empty, of the shapes and dtypes that they would have; nothing fails."""

    @pcbatch.autobatch(jit=jit)
    def both(n, xs):
        assert n > 0, "never asked"
        while n > 1:
            n = n // 2
        return n, (xs, tf.cast(n, tf.int64))

    number, (array, wide) = both(STEPS[:0], EACH[:0])
    assert (number.shape, number.dtype) == ((0,), tf.int32)
    assert (array.shape, array.dtype) == ((0, 2), tf.float32)
    assert (wide.shape, wide.dtype) == ((0,), tf.int64)
    run = both.run(STEPS[:0], EACH[:0])
    assert (run.status.shape, run.errors, run.trips) == ((0,), (), 0)


def test_no_lanes_of_a_function_without_batched_arguments():
    assert value(walk.options(in_axes=None)(3, WEIGHTS, lanes=0)) == []


def test_one_lane():
    assert value(walk(STEPS[2:], EACH[2:])) == [25.0]


@pcbatch.autobatch
def of_rows(rows):
    return rows[0]


@pytest.mark.parametrize(
    "rows",
    [[[[1.0, 2.0], [3.0]], [[1.0]]], [np.ones((2, 3)), np.ones((3, 2))], [(1, (2, 3)), ((1, 2), 3)]],
    ids=["lists of lists", "arrays of several shapes", "nested tuples"],
)
def test_examples_of_several_lengths(rows):
    with pytest.raises(UsageError, match=r"PCB511: .*along their first axis|only the first axis of a row"):
        of_rows(rows)


def test_text_among_numbers_is_no_matter_of_length():
    with pytest.raises(UsageError, match="mixed types to Tensor"):
        of_rows([1.0, "a"])

"""What generated code calls: against Python on every kind of value, and the faults that are recorded."""

import math
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.runtime.backends.tensorflow import ops
from pcbatch.runtime.backends.tensorflow.structures import type_of
from pcbatch.runtime.backends.tensorflow.weak import Weak
from tests.runtime.lanes import for_all_lanes


@pytest.fixture(params=["eager", "pfor", "xla"])
def for_each(request):
    """Maps a function of scalars over rows of examples: lane by lane at once, by pfor in a graph, by pfor under XLA.

    Gives the result of each lane and its fault.
    """

    def run(function, *columns):
        columns = [np.asarray(column) for column in columns]

        def one(*values):
            with ops.recording() as recorder:
                result = function(*values)
            flat = [tf.convert_to_tensor(leaf) for leaf in (result if isinstance(result, tuple) else (result,))]
            return [*flat, recorder.site()]

        if request.param == "eager":
            rows = [one(*(tf.constant(value) for value in row)) for row in zip(*columns, strict=True)]
            outputs = [np.stack([np.asarray(value) for value in column]) for column in zip(*rows, strict=True)]
        else:

            def batch(*columns):
                return for_all_lanes(one, columns)

            compiled = tf.function(batch, jit_compile=request.param == "xla", autograph=False)
            outputs = [output.numpy() for output in compiled(*columns)]
        *results, site = outputs
        return results[0] if len(results) == 1 else tuple(results), site

    return run


A = np.array([7, -7, 7, -7, 0, 5, -(2**31), 3], np.int32)
B = np.array([2, 2, -2, -2, 3, 0, -1, 0], np.int32)


@pytest.mark.parametrize("wrap", [lambda x: x, Weak])
def test_integer_division(for_each, wrap):
    def function(a, b):
        a, b = wrap(a), wrap(b)
        return (ops.floordiv(a, b, 1), ops.mod(a, b, 2), *ops.divmod_(a, b, 3))

    (quotient, rest, both_quotient, both_rest), site = for_each(function, A, B)
    fine = B != 0
    np.testing.assert_array_equal(site, np.where(fine, 0, 2))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(quotient[fine], A[fine] // B[fine])
    np.testing.assert_array_equal(rest[fine], A[fine] % B[fine])
    np.testing.assert_array_equal(both_quotient, quotient)
    np.testing.assert_array_equal(both_rest, rest)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32"])
def test_integer_division_of_other_dtypes(for_each, dtype):
    a, b = np.array([7, 9, 100], dtype), np.array([2, 0, 3], dtype)
    quotient, site = for_each(lambda a, b: ops.floordiv(a, b, 4), a, b)
    np.testing.assert_array_equal(site, [0, 5, 0])
    np.testing.assert_array_equal(quotient[[0, 2]], [3, 33])
    assert quotient.dtype == dtype


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_powers_of_two_divide_as_all_numbers(dtype):
    """By a shift and by a mask: the same as by division, for both signs, and the largest divisors."""
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, limits.min + 1, 0, 1, 2, 3, 97, limits.max - 1, limits.max], dtype)
    numbers = np.concatenate([numbers, np.array([-1, -2, -3, -97], dtype)]) if limits.min < 0 else numbers
    for exponent in (0, 1, 3, limits.bits - 2):
        divisor = 2**exponent
        for given in (tf.constant(divisor, dtype), np.array(divisor, dtype)):
            np.testing.assert_array_equal(
                ops.floordiv(tf.constant(numbers), given, 0), numbers // np.array(divisor, dtype)
            )
            np.testing.assert_array_equal(ops.mod(tf.constant(numbers), given, 0), numbers % np.array(divisor, dtype))


def test_float_division_floors_and_never_faults(for_each):
    a, b = np.array([7.5, -7.5, 7.5, -7.5, 1.0]), np.array([2.0, 2.0, -2.0, -2.0, 0.0])
    (quotient, rest), site = for_each(lambda a, b: ops.divmod_(a, b, 0), a, b)
    np.testing.assert_array_equal(quotient[:4], a[:4] // b[:4])
    np.testing.assert_array_equal(rest[:4], a[:4] % b[:4])
    np.testing.assert_array_equal(site, 0)


def test_division_mixes_weak_numbers_and_tensors(for_each):
    def function(a):
        return (ops.floordiv(Weak(a), 2.0, 0), ops.mod(tf.cast(a, tf.int64), 4, 0), ops.floordiv(9, Weak(a), 0))

    (half, rest, nine), _ = for_each(function, np.array([3, 5], np.int32))
    assert (half.dtype, rest.dtype, nine.dtype) == (np.float32, np.int64, np.int32)
    np.testing.assert_array_equal((half, rest, nine), ([1, 2], [3, 1], [3, 1]))


def test_a_vector_with_one_zero_faults(for_each):
    _, site = for_each(lambda v: ops.floordiv(6, v, 8), np.array([[1, 2, 3], [1, 0, 3]], np.int32))
    np.testing.assert_array_equal(site, [0, 9])


def test_static_values_divide_as_in_python():
    assert ops.floordiv(-7, 2, 0) == -4
    assert ops.mod("%d items", 3, 0) == "3 items"
    assert ops.divmod_(7.5, 2, 0) == (3.0, 1.5)
    with ops.recording() as recorder:
        ops.floordiv(1, 0, 5)
    assert recorder.site().numpy() == 6


@pytest.mark.parametrize(("a", "b"), [(tf.constant(7), 2.0), (tf.constant(7), tf.constant(2.0))])
def test_division_of_an_int_by_a_float(a, b):
    with ops.recording():
        result = ops.floordiv(a, b, 0)
    assert (result.dtype, result.numpy()) == (tf.float32, 7 // 2.0)


def test_powers(for_each):
    a, n = np.array([2, -3, 2, 0], np.int32), np.array([10, 3, -1, 0], np.int32)
    power, site = for_each(lambda a, n: ops.power(a, n, 1), a, n)
    np.testing.assert_array_equal(site, [0, 0, 2, 0])
    np.testing.assert_array_equal(power[site == 0], [1024, -27, 1])
    assert ops.power(2, -1, 0) == 0.5


def test_zero_has_no_negative_power(for_each):
    """Of Python's own numbers; a float tensor follows TensorFlow."""
    a, n = np.array([0, 0, 2, 0], np.float32), np.array([-1, 1, -1, 0], np.float32)

    def function(a, n):
        x, y = Weak(tf.cast(a, tf.float64)), Weak(tf.cast(n, tf.float64))
        return ops.power(x, y, 1).value, ops.select(n < 0, lambda: ops.power(x, -1, 2), lambda: 1.0).value, a**n

    (powers, reciprocals, tensors), site = for_each(function, a, n)
    np.testing.assert_array_equal(site, [2, 0, 0, 0])
    np.testing.assert_array_equal(powers[1:], [0, 0.5, 1])
    np.testing.assert_array_equal(reciprocals[1:], [1, 0.5, 1])
    np.testing.assert_array_equal(tensors, [np.inf, 0, 0.5, 1])
    for zero in (0, 0.0):
        with ops.recording() as recorder:
            ops.power(zero, -2, 5)
        assert recorder.site().numpy() == 6


# -- truth and choice --------------------------------------------------------------------------------------------------

N = np.array([-1, 0, 1, 2], np.int32)


def test_faults_count_only_on_the_path_that_is_taken(for_each):
    def function(n):
        return (
            ops.both(n != 0, lambda: ops.floordiv(4, n, 1) > 2),
            ops.either(n == 0, lambda: ops.mod(4, n, 2) == 1),
            ops.select(n > 0, lambda: ops.floordiv(4, n, 3), lambda: n),
        )

    (conjunction, disjunction, chosen), site = for_each(function, N)
    np.testing.assert_array_equal(conjunction, [n != 0 and 4 // n > 2 for n in N])
    np.testing.assert_array_equal(disjunction, [n == 0 or 4 % n == 1 for n in N])
    np.testing.assert_array_equal(chosen, [4 // n if n > 0 else n for n in N])
    np.testing.assert_array_equal(site, 0)


def test_the_first_fault_in_order_of_evaluation_is_kept(for_each):
    def function(n):
        first = ops.select(n > 1, lambda: ops.floordiv(1, n - 2, 4), lambda: 0)
        return ops.both(n >= 0, lambda: ops.floordiv(1, n, 7) + first > 0)

    _, site = for_each(function, N)
    np.testing.assert_array_equal(site, [0, 8, 0, 5])


def test_nested_conditions(for_each):
    def function(n):
        return ops.select(
            n > 0,
            lambda: ops.select(n > 1, lambda: ops.floordiv(1, n - 2, 1), lambda: ops.floordiv(1, n - 1, 2)),
            lambda: ops.floordiv(1, n, 3),
        )

    _, site = for_each(function, N)
    np.testing.assert_array_equal(site, [0, 4, 3, 2])


def test_and_or_give_operands_as_in_python(for_each):
    def function(n):
        w = Weak(n)
        return (ops.both(w, lambda: 7), ops.either(w, lambda: 7), ops.both(n, lambda: 7), ops.negate(w))

    (both, either, tensor, negated), _ = for_each(function, N)
    np.testing.assert_array_equal(both, [int(n) and 7 for n in N])
    np.testing.assert_array_equal(either, [int(n) or 7 for n in N])
    np.testing.assert_array_equal(tensor, both)
    np.testing.assert_array_equal(negated, [not n for n in N])


def test_select_joins_types():
    yes = tf.constant(True)
    joins = [
        (1, 2, "weak int32[]"),
        (1, 2.5, "weak float64[]"),
        (1, tf.constant(2, tf.int64), "int64[]"),
        (tf.constant(2.0, tf.float64), 0.5, "float64[]"),
        (True, tf.constant(False), "bool[]"),
        ((1, tf.zeros([2])), (2.0, tf.ones([2])), "(weak float64[], float32[2])"),
        ({"a": 1}, {"a": 2}, "{a: weak int32[]}"),
    ]
    for a, b, expected in joins:
        assert str(type_of(ops.select(yes, lambda a=a: a, lambda b=b: b))) == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (True, 1),
        (tf.constant(1), 1.5),
        (tf.constant(1), tf.constant(1.0)),
        (0.0, tf.zeros([2])),
        ((1, 2), (1,)),
        ("a", "b"),
        (None, 1),
    ],
)
def test_select_refuses_what_does_not_join(a, b):
    with pytest.raises(TypeError):
        ops.select(tf.constant(True), lambda: a, lambda: b)


def test_static_conditions_are_pythons():
    def unreachable():
        raise AssertionError

    assert ops.both(0, unreachable) == 0
    assert ops.both("a", lambda: None) is None
    assert ops.either((), lambda: "b") == "b"
    assert ops.either(3, unreachable) == 3
    assert ops.select([], unreachable, lambda: "no") == "no"
    assert ops.negate("") is True


def test_truth_of_arrays_is_ambiguous():
    for truth in (ops.to_bool, ops.negate, lambda x: ops.both(x, lambda: x), lambda x: ops.select(x, int, int)):
        with pytest.raises(TypeError, match="ambiguous"):
            truth(tf.constant([True, False]))


# -- indexing ----------------------------------------------------------------------------------------------------------

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS, COLUMNS, DEPTHS = (
    np.array(column, np.int32) for column in ([0, 1, -2, 1, 2], [2, -3, 1, 3, 0], [3, -4, 0, 1, 1])
)

INDICES = {
    "i": lambda i, j, k: i,
    "i, j": lambda i, j, k: (i, j),
    "i, j, k": lambda i, j, k: (i, j, k),
    "..., k": lambda i, j, k: (..., k),
    "i, :, k": lambda i, j, k: (i, slice(None), k),
    "0, j": lambda i, j, k: (0, j),
    "i, None, ..., 1:3": lambda i, j, k: (i, None, ..., slice(1, 3)),
    "-1, ::-1, k": lambda i, j, k: (-1, slice(None, None, -1), k),
    "i, 1, k": lambda i, j, k: (i, 1, k),
}


def element(index):
    """CUBE[index] and whether Python can read it."""
    try:
        return CUBE[index], True
    except IndexError:
        return None, False


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", INDICES)
def test_getitem(for_each, name, shared):
    index = INDICES[name]

    def function(cube, i, j, k):
        return ops.getitem(tf.constant(CUBE) if shared else cube, index(i, Weak(j), tf.cast(k, tf.int64)), 6)

    value, site = for_each(function, np.stack([CUBE] * len(ROWS)), ROWS, COLUMNS, DEPTHS)
    for lane, place in enumerate(zip(ROWS, COLUMNS, DEPTHS, strict=True)):
        expected, fine = element(index(*place))
        assert site[lane] == (0 if fine else 7)
        if fine:
            np.testing.assert_array_equal(value[lane], expected)
        else:
            assert value[lane].shape == value[0].shape


def test_an_empty_axis_has_no_elements(for_each):
    value, site = for_each(lambda i: ops.getitem(tf.zeros([0, 2]), i, 0), ROWS)
    np.testing.assert_array_equal(site, 1)
    assert value.shape == (len(ROWS), 2)


def test_getitem_of_static_values_is_pythons():
    assert ops.getitem((1, 2, 3), -1, 0) == 3
    assert ops.getitem({"a": 5}, "a", 0) == 5
    assert ops.getitem("abc", slice(1, None), 0) == "bc"
    np.testing.assert_array_equal(ops.getitem(CUBE, (1, ..., 0), 0), CUBE[1, ..., 0])
    np.testing.assert_array_equal(ops.getitem(tf.constant(CUBE), (1, slice(0, 2)), 0), CUBE[1, :2])


@pytest.mark.parametrize(
    ("array", "index", "error"),
    [
        (tf.zeros([3]), (0, 0), IndexError),
        (tf.zeros([3]), (..., ...), IndexError),
        (tf.zeros([3]), 1.0, TypeError),
        (tf.zeros([3]), True, TypeError),
        (tf.zeros([3]), tf.constant(1.0), TypeError),
        (tf.zeros([3]), slice(tf.constant(1), None), PieceRefusalError),
        (({}, 2), Weak(tf.constant(1)), TypeError),
        (Weak(tf.constant(1)), 0, TypeError),
    ],
)
def test_getitem_refuses(array, index, error):
    with ops.recording(), pytest.raises(error):
        ops.getitem(array, index, 0)


# -- built-in functions ------------------------------------------------------------------------------------------------

X = np.array([-2.5, -1.5, -0.4, 0.5, 1.5, 2.5, 3.7], np.float32)


def test_conversions(for_each):
    (ints, floats, truth, absolute), _ = for_each(
        lambda x: (ops.to_int(x, 0), ops.to_float(ops.to_int(x, 0)), ops.to_bool(x), ops.absolute(x)), X
    )
    np.testing.assert_array_equal(ints, [int(x) for x in X])
    np.testing.assert_array_equal(floats, [float(int(x)) for x in X])
    np.testing.assert_array_equal(truth, X != 0)
    np.testing.assert_array_equal(absolute, np.abs(X))
    assert (ints.dtype, floats.dtype) == (np.int32, np.float32)


def test_conversions_give_weak_numbers():
    for function, x, expected in [
        (partial(ops.to_int, site=0), tf.constant(2.5, tf.float64), "weak int32[]"),
        (partial(ops.to_int, site=0), tf.constant(True), "weak int32[]"),
        (ops.to_float, tf.constant(2.5, tf.float64), "float64[]"),
        (partial(ops.index, site=0), tf.constant(2, tf.int64), "weak int32[]"),
        (ops.to_bool, Weak(tf.constant(2)), "bool[]"),
        (ops.absolute, Weak(tf.constant(-2)), "weak int32[]"),
        (partial(ops.rounded, site=0), tf.constant(2.5), "weak int32[]"),
        (partial(ops.rounded, site=0), tf.constant(2, tf.int64), "int64[]"),
    ]:
        with ops.recording():
            assert str(type_of(function(x))) == expected


def test_rounding(for_each):
    (whole, tenths, tens), _ = for_each(
        lambda x: (
            ops.rounded(x, site=0),
            ops.rounded(x * 1.1, 1, site=0),
            ops.rounded(ops.to_int(x * 10, 0), -1, site=0),
        ),
        X,
    )
    np.testing.assert_array_equal(whole, [round(float(x)) for x in X])
    np.testing.assert_array_equal(tenths, np.float32([round(float(x * np.float32(1.1)), 1) for x in X]))
    np.testing.assert_array_equal(tens, [round(int(x * np.float32(10)), -1) for x in X])


def test_minimum_and_maximum(for_each):
    def function(x, v):
        return (ops.minimum(x, 1), ops.maximum(0.5, x, Weak(tf.constant(1))), ops.minimum((x, -x)), ops.maximum(v))

    vectors = np.stack([X, -X], axis=1)
    (least, most, pair, element), _ = for_each(function, X, vectors)
    np.testing.assert_array_equal(least, [min(x, 1) for x in X])
    np.testing.assert_array_equal(most, [max(0.5, x, 1) for x in X])
    np.testing.assert_array_equal(pair, [min((x, -x)) for x in X])
    np.testing.assert_array_equal(element, vectors.max(axis=1))


def test_minimum_of_nan_is_pythons(for_each):
    x = np.array([np.nan, 1.0], np.float32)
    (first, second), _ = for_each(lambda x: (ops.minimum(x, 0.5), ops.minimum(0.5, x)), x)
    np.testing.assert_array_equal(first, [min(float(v), 0.5) for v in x])
    np.testing.assert_array_equal(second, [min(0.5, float(v)) for v in x])


def test_extremes_of_a_generator_of_static_values():
    assert (ops.minimum(x for x in (3, 1, 2)), ops.maximum(x for x in (0.5, 1.5))) == (1, 1.5)
    with pytest.raises(ValueError, match="max"):
        ops.maximum(x for x in ())


def test_static_values_are_pythons():
    assert (ops.minimum(3, 1, 2), ops.maximum([1, 5]), ops.absolute(-3), ops.to_int("12", 0), ops.to_float("1.5")) == (
        1,
        5,
        3,
        12,
        1.5,
    )
    assert (
        ops.length((1, 2)),
        ops.length(tf.zeros([4, 2])),
        ops.index(np.int64(3), site=0),
        ops.rounded(2.675, 2, site=0),
    ) == (
        2,
        4,
        3,
        2.67,
    )
    assert math.isnan(ops.minimum(math.nan, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.index(tf.constant(1.0), site=0),
        lambda: ops.index(tf.constant(True), site=0),
        lambda: ops.to_int(tf.zeros([2]), 0),
        lambda: ops.to_float(tf.zeros([1])),
        lambda: ops.rounded(tf.zeros([2]), site=0),
        lambda: ops.rounded(tf.constant(1.0), tf.constant(1), site=0),
        lambda: ops.length(Weak(tf.constant(1))),
        lambda: ops.length(tf.constant(1)),
        lambda: ops.minimum(tf.zeros([2]), 1.0),
        lambda: ops.maximum(tf.zeros([2, 2])),
        lambda: ops.minimum(tf.constant(1)),
        lambda: ops.mod("%d", tf.constant(1), 0),
    ],
)
def test_misuse_is_refused(call):
    with pytest.raises(TypeError):
        call()


def test_checked_operations_need_a_recorder():
    with pytest.raises(RuntimeError, match="recording"):
        ops.floordiv(tf.constant(1), tf.constant(0), 0)

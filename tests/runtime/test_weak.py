"""Weak numbers follow Python with each other and take the dtype of the tensor that they meet."""

import operator

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.structures import type_of
from pcbatch.runtime.backends.tensorflow.weak import Weak, WeakTypeError, commit, unify, weak

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
NUMBERS = [
    (7, 2),
    (-7, 2),
    (7, -2),
    (5, 2.5),
    (2.5, 2),
    (-7.5, 2.0),
    (0, 3),
    (4, 4),
    (3.0, 3),
    (1, 3),
]


def number(x):
    """A Python number as a Weak."""
    return Weak(tf.constant(x, tf.float64 if isinstance(x, float) else tf.int32))


@pytest.fixture(params=["eager", "graph", "xla"])
def values_of(request):
    """Runs a function that gives a list of values: `(NumPy value, type as text)` for each."""

    def run(function):
        types = []

        def tensors():
            values = function()
            types[:] = [str(type_of(value)) for value in values]
            return [tf.convert_to_tensor(value) for value in values]

        if request.param != "eager":
            tensors = tf.function(tensors, jit_compile=request.param == "xla", autograph=False)
        return list(zip([tensor.numpy() for tensor in tensors()], types, strict=True))

    return run


WEAK_TYPES = {bool: "bool[]", int: "weak int32[]", float: "weak float64[]"}


def check_against_python(values_of, symbol, pairs):
    """`symbol` on Weaks, and on a Weak and a number either way round, against Python's own result."""

    def compute():
        return [
            symbol(*operands) for a, b in pairs for operands in ((number(a), number(b)), (number(a), b), (a, number(b)))
        ]

    expected = [symbol(a, b) for a, b in pairs for _ in range(3)]
    for (value, type_), wanted in zip(values_of(compute), expected, strict=True):
        assert type_ == WEAK_TYPES[type(wanted)]
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


@pytest.mark.parametrize("symbol", [s for s in ARITHMETIC if s is not operator.pow])
def test_arithmetic_is_pythons(values_of, symbol):
    check_against_python(values_of, symbol, NUMBERS)


@pytest.mark.parametrize("symbol", COMPARISONS)
def test_comparisons_are_pythons(values_of, symbol):
    check_against_python(values_of, symbol, [*NUMBERS, (16777217, 16777216.0)])


@pytest.mark.parametrize("symbol", BITS)
def test_bits_are_pythons(values_of, symbol):
    check_against_python(
        values_of, symbol, [(12, 10), (-5, 3), (1, 30), (-1, 31) if symbol is operator.rshift else (6, 0)]
    )


def test_powers(values_of):
    check_against_python(values_of, operator.pow, [(7, 2), (-7, 3), (2, 0), (0, 0), (2.5, 2), (2, 2.5), (2.0, -1)])
    (literal, _), (truncated, _), (ones, _) = values_of(
        lambda: [number(4) ** -1, number(4) ** number(-1), number(-1) ** number(-3)]
    )
    assert (literal, truncated, ones) == (0.25, 0, -1)


def test_unary_operators(values_of):
    def compute():
        return [-number(3), +number(3), abs(number(-3)), ~number(5), -number(1.5), abs(number(-1.5))]

    expected = [(-3, int), (3, int), (3, int), (~5, int), (-1.5, float), (1.5, float)]
    assert [(value, type_) for value, type_ in values_of(compute)] == [(v, WEAK_TYPES[kind]) for v, kind in expected]


def test_ints_wrap(values_of):
    big = 2**31 - 1
    (added, _), (shifted, _), (divided, _) = values_of(
        lambda: [number(big) + 1, number(1) << 40, number(-(2**31)) // number(-1)]
    )
    assert (added, shifted, divided) == (-(2**31), 0, -(2**31))


NUMERIC = ["uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("dtype", NUMERIC)
def test_an_int_takes_any_numeric_dtype(values_of, dtype):
    array = np.array([1, 2], dtype)

    def compute():
        t = tf.constant(array)
        return [
            number(3) + t,
            t + number(3),
            t * number(3),
            number(3) - t,
            t == number(2),
            number(3) + array,
            array + number(3),
        ]

    expected = [3 + array, array + 3, array * 3, 3 - array, array == 2, 3 + array, array + 3]
    for (value, type_), wanted in zip(values_of(compute), expected, strict=True):
        assert type_ == f"{wanted.dtype}[2]"
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_a_float_takes_floating_and_complex_dtypes(values_of, dtype):
    array = np.array([1, 2], dtype)

    def compute():
        t = tf.constant(array)
        return [
            number(0.5) + t,
            t + number(0.5),
            number(0.5) / t,
            t / number(0.5),
            np.ones((), dtype)[()] + number(0.5),
        ]

    expected = [array + array.dtype.type(0.5)] * 2 + [0.5 / array, array / array.dtype.type(0.5), array.dtype.type(1.5)]
    for (value, type_), wanted in zip(values_of(compute), expected, strict=True):
        assert type_.startswith(dtype)
        np.testing.assert_allclose(value, wanted, rtol=1e-3)


def test_division_of_ints_by_int_tensors_is_tensorflows(values_of):
    values = values_of(lambda: [number(3) / tf.constant(2), tf.constant(3) / number(2), tf.constant(7) // number(2)])
    assert values == [(1.5, "float64[]"), (1.5, "float64[]"), (3, "int32[]")]


def test_comparisons_with_tensors(values_of):
    x = np.array([1.0, 2.0, 3.0])
    values = values_of(
        lambda: (
            [s(number(2), tf.constant(x)) for s in COMPARISONS] + [s(tf.constant(x), number(2)) for s in COMPARISONS]
        )
    )
    for (value, type_), wanted in zip(
        values, [s(2, x) for s in COMPARISONS] + [s(x, 2) for s in COMPARISONS], strict=True
    ):
        assert type_ == "bool[3]"
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("symbol", [*ARITHMETIC, *COMPARISONS])
def test_what_does_not_fit_is_refused(symbol):
    """A float with an int tensor: in a graph, where pieces are traced."""

    @tf.function(autograph=False)
    def graph(flip):
        t = tf.constant(1)
        return symbol(t, number(0.5)) if flip else symbol(number(0.5), t)

    with pytest.raises(TypeError, match=r"tf\.cast"):
        graph(False)
    with pytest.raises((TypeError, ValueError)):
        graph(True)


@pytest.mark.parametrize("flag", [True, False])
def test_a_bool_beside_a_number_is_an_int(values_of, flag):
    symbols = [*ARITHMETIC, *COMPARISONS] if flag else COMPARISONS
    values = values_of(lambda: [s(number(2), tf.constant(flag)) for s in symbols])
    for (value, _), wanted in zip(values, [s(2, flag) for s in symbols], strict=True):
        np.testing.assert_allclose(value, wanted)


@pytest.mark.parametrize(
    ("value", "dtype", "word"),
    [(0.5, tf.int32, "float"), (number(0.5), tf.int64, "float"), (1, tf.bool, "bool"), (number(1), tf.bool, "bool")],
)
def test_commit_refuses(value, dtype, word):
    with pytest.raises(WeakTypeError, match=word):
        commit(value, dtype)


def test_unify_refuses_two_dtypes():
    with pytest.raises(TypeError, match=r"write tf\.cast\(\.\., tf\.uint64\)"):
        unify(tf.constant(1, tf.uint64), tf.constant(1, tf.int64))


def test_ints_beyond_int32_are_refused():
    with pytest.raises(WeakTypeError, match="beyond int32"):
        weak(2**31)


def test_tensorflow_functions_take_weak_numbers(values_of):
    def compute():
        n, h, x = number(2), number(0.5), tf.constant([1.0, 2.0, 3.0], tf.float64)
        with recording():  # weak numbers are nowhere else
            return [
                tf.exp(h),
                tf.maximum(x, n),
                tf.where(x > 1, x, h),
                tf.stack([n, n]),
                tf.stack([x[0], h]),
                tf.concat([[n], [3]], 0),
                tf.gather(x, n),
                x[n],
                tf.cast(n, tf.float64),
                tf.one_hot(n, 3),
                tf.convert_to_tensor([[n, 1], [2, h]]),
                tf.function(lambda a, b: a * b, autograph=False)(x, tf.cast(n, x.dtype)),
                tf.function(lambda a: a + 1, autograph=False)(n),
            ]

    expected = [
        np.float32(np.exp(0.5)),
        np.array([2.0, 2.0, 3.0]),
        np.array([0.5, 2.0, 3.0]),
        np.array([2, 2], np.int32),
        np.array([1.0, 0.5]),
        np.array([2, 3], np.int32),
        np.float64(3),
        np.float64(3),
        np.float64(2),
        np.array([0, 0, 1], np.float32),
        np.array([[2, 1], [2, 0.5]], np.float32),
        np.array([2.0, 4.0, 6.0]),
        np.int32(3),
    ]
    for (value, _), wanted in zip(values_of(compute), expected, strict=True):
        assert value.dtype == wanted.dtype
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


@pytest.mark.parametrize("use", [bool, int, float, operator.index, range])
def test_python_cannot_have_a_lanes_number(use):
    def body(x):
        use(Weak(x))
        return x

    with pytest.raises(TypeError, match=r"differs from lane to lane|lane"):
        tf.function(body, autograph=False)(tf.constant(1))
    assert isinstance(use(number(1)), (bool, int, float, range))


def test_not_operands():
    assert operator.eq(number(1), None) is False
    assert (number(1) == "a") is False
    with pytest.raises(TypeError):
        number(1) + "a"
    with pytest.raises(TypeError, match="bitwise"):
        number(1.5) & 1
    with pytest.raises(TypeError, match="scalar"):
        Weak(tf.zeros([2]))

"""Operations that are vectorised without pfor: the same results as with it, to the bit, and none has another rule."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import private, rules
from pcbatch.runtime.backends.tensorflow.private import lookup
from pcbatch.runtime.backends.tensorflow.rules import straight
from tests.pairwise import every_second

NAN, INF = float("nan"), float("inf")
X = np.array([[1.5, NAN, -0.0], [INF, -2.25, 0.5], [0.0, 7.0, -INF]], np.float32)
S = np.array([0.5, NAN, -3.0], np.float32)
N = np.array([[7, -3, 2], [0, 5, -8], [4, 4, 1]], np.int32)
K = np.array([2, -3, 5], np.int32)
B = N > 1
OTHER = tf.constant([2.0, -1.0, NAN])
SHORT = tf.constant([1, 2])
WHOLE = tf.constant([[3, 2, 5], [1, 1, 9]])

FLOAT = {
    "Abs": tf.abs, "Acos": tf.acos, "Asin": tf.asin, "Atan": tf.atan, "Cos": tf.cos, "Cosh": tf.cosh,
    "Ceil": tf.math.ceil,
    "Erf": tf.math.erf, "Exp": tf.exp, "Expm1": tf.math.expm1, "Floor": tf.floor, "IsFinite": tf.math.is_finite,
    "IsInf": tf.math.is_inf, "IsNan": tf.math.is_nan, "Log": tf.math.log, "Log1p": tf.math.log1p, "Neg": tf.negative,
    "Reciprocal": tf.math.reciprocal, "Rint": tf.math.rint, "Round": tf.round, "Rsqrt": tf.math.rsqrt,
    "Sigmoid": tf.sigmoid, "Sign": tf.sign, "Sin": tf.sin, "Sqrt": tf.sqrt, "Square": tf.square, "Tan": tf.tan,
    "Tanh": tf.tanh, "StopGradient": tf.stop_gradient, "Identity": tf.identity,
}  # fmt: skip
PAIRS = {
    "AddV2": tf.add, "Sub": tf.subtract, "Mul": tf.multiply, "RealDiv": tf.divide, "DivNoNan": tf.math.divide_no_nan,
    "MulNoNan": tf.math.multiply_no_nan, "Pow": tf.pow, "SquaredDifference": tf.math.squared_difference,
    "Less": tf.less, "LessEqual": tf.less_equal, "Greater": tf.greater, "GreaterEqual": tf.greater_equal,
    "Equal": tf.equal, "NotEqual": tf.not_equal, "Atan2": tf.atan2, "FloorMod": tf.math.floormod,
    "Xlogy": tf.math.xlogy, "Xdivy": tf.math.xdivy,
}  # fmt: skip
WHOLES = {
    "BitwiseAnd": tf.bitwise.bitwise_and, "BitwiseOr": tf.bitwise.bitwise_or, "BitwiseXor": tf.bitwise.bitwise_xor,
    "Mul": tf.multiply, "Equal": tf.equal, "AddV2": tf.add,
}  # fmt: skip
OTHERS = {
    "cast": lambda x, s, n, k, b: tf.cast(x, tf.int32) + tf.cast(b, tf.int32),
    "select": lambda x, s, n, k, b: tf.where(b, x, s),
    "select, one shape for all": lambda x, s, n, k, b: tf.where(tf.constant([True, False, True]), x, s),
    "select, a matrix": lambda x, s, n, k, b: tf.where(b, WHOLE, n),
    "not": lambda x, s, n, k, b: ~b & (x < s) | (k > 0),
    "squeeze": lambda x, s, n, k, b: tf.squeeze(x[None, :, None], [0]),
    "expanded": lambda x, s, n, k, b: tf.expand_dims(x, -1) * tf.expand_dims(tf.expand_dims(s, 0), 0),
    "reshape": lambda x, s, n, k, b: tf.reshape(x, [-1, 1]) + tf.reshape(s, []),
    "slice": lambda x, s, n, k, b: x[1:],
    "slice, backwards": lambda x, s, n, k, b: x[::-1][:2],
    "slice, one": lambda x, s, n, k, b: x[-1] + tf.cast(n[0], tf.float32),
    "slice, dots": lambda x, s, n, k, b: (x[:, None] * x)[..., 1:, None],
    "slice, new": lambda x, s, n, k, b: x[None, ..., None][0],
    "slice of what is the same": lambda x, s, n, k, b: WHOLE[1:] * n,
    "sum": lambda x, s, n, k, b: tf.reduce_sum(n),
    "sum of no axes": lambda x, s, n, k, b: tf.reduce_sum(n, axis=[]),
    "sum, axis kept": lambda x, s, n, k, b: tf.reduce_sum(WHOLE * n, axis=-1, keepdims=True),
    "product": lambda x, s, n, k, b: tf.reduce_prod(WHOLE * n, axis=0),
    "mean": lambda x, s, n, k, b: tf.reduce_mean(x[:, None] * x, axis=[0, -1]),
    "all and any": lambda x, s, n, k, b: tf.reduce_all(b) | tf.reduce_any(b[:2]),
    "nothing of a lane": lambda x, s, n, k, b: tf.reduce_sum(OTHER[:2]) * OTHER,
    "ranks": lambda x, s, n, k, b: (s + OTHER) * x + tf.cast(WHOLE, tf.float32),
    "a check": lambda x, s, n, k, b: n // 3 + k % 5,
    "shift": lambda x, s, n, k, b: tf.bitwise.left_shift(n, 2) + tf.bitwise.right_shift(n, 1) + tf.bitwise.invert(n),
}
GROUPS = {
    "of one": [lambda x, s, n, k, b, f=f: f(x) for f in FLOAT.values()],
    "of vectors": [lambda x, s, n, k, b, f=f: f(x, x[::-1]) for f in PAIRS.values()],
    "of vectors and numbers": [lambda x, s, n, k, b, f=f: f(x, s) for f in PAIRS.values()],
    "of numbers and what is the same": [lambda x, s, n, k, b, f=f: f(s, OTHER) for f in PAIRS.values()],
    "of whole numbers": [lambda x, s, n, k, b, f=f: f(k, WHOLE) for f in WHOLES.values()],
    "others": list(OTHERS.values()),
}
"""Operations to a program: each program is compiled with pfor and without."""


def run(function, jit):
    @pcbatch.autobatch(jit=jit)
    def program(x, s, n, k, b):
        return function(x, s, n, k, b)

    return program(X, S, N, K, B)


@pytest.mark.parametrize(("group", "jit"), every_second(GROUPS, [True, False]))
def test_they_give_what_pfor_gives(group, jit, monkeypatch):
    def every(x, s, n, k, b):
        return tuple(function(x, s, n, k, b) for function in GROUPS[group])

    used = []
    ours = straight.converted

    def noted(operation, inputs):
        found = ours(operation, inputs)
        used.append((operation.type, found is not None))
        return found

    monkeypatch.setattr(straight, "converted", noted)
    found = run(every, jit)
    assert {is_straight for _, is_straight in used} == {True}, used
    monkeypatch.setattr(straight, "converted", lambda operation, inputs: None)
    wanted = run(every, jit)
    for place, (new, old) in enumerate(zip(found, wanted, strict=True)):
        assert (new.dtype, new.shape) == (old.dtype, old.shape), place
        np.testing.assert_array_equal(bits(new), bits(old), err_msg=str(place))


def bits(array):
    return array.numpy().view(np.uint8)


def test_no_operation_has_two_rules():
    """A rule of ours says that pfor's is not right; what is converted straight does not ask for either.

    Powers are made by the rule there, too.
    """
    assert not straight.OPERATIONS & rules.RULES.keys()
    assert straight.OPERATIONS & rules.CORRECTIONS.keys() == {"Pow"}


def test_pfor_has_a_rule_for_all():
    known = lookup.find(lookup.PFOR)._pfor_converter_registry
    assert straight.OPERATIONS - {"Const"} <= known.keys()


def test_a_piece_without_other_operations_needs_no_pfor(monkeypatch):
    monkeypatch.setattr(private, "Conversion", None)
    np.testing.assert_array_equal(
        run(lambda x, s, n, k, b: tf.where(b, n * k, n)[1:], True), np.where(B, N * K[:, None], N)[:, 1:]
    )


def test_what_would_be_one_for_all_lanes_is_one_for_each():
    """An `==` of arrays of different shapes is False in TensorFlow: one False, however many lanes there are."""

    @pcbatch.autobatch(jit=False)
    def program(n, k):
        return tf.reduce_any(n == k)

    @pcbatch.autobatch(jit=False)
    def captured(n):
        return n == SHORT

    assert not program.single(N[0], K[:2])
    np.testing.assert_array_equal(program(N, np.stack([K[:2]] * 3)), [False] * len(N))
    np.testing.assert_array_equal(captured(N), [False] * len(N))


@pytest.mark.parametrize("lanes", [0, 1])
def test_few_lanes(lanes):
    @pcbatch.autobatch
    def program(x, s):
        return tf.reshape(x, [3, 1]) * s + tf.reduce_sum(x[1:])

    assert program(X[2 : 2 + lanes], S[2 : 2 + lanes]).shape == (lanes, 3, 1)


def test_an_unknown_number_of_lanes():
    """In a caller's graph that takes any number."""

    @pcbatch.autobatch
    def program(x, s):
        return tf.reshape(x, [3, 1]) * s + tf.reduce_sum(x[1:]) + tf.squeeze(x[None], 0)

    outer = tf.function(program, input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None])], autograph=False)
    for lanes in (2, 3):
        np.testing.assert_array_equal(outer(X[:lanes], S[:lanes]), program(X[:lanes], S[:lanes]))

"""What one example has not used leaves no trace in its gradients, though for other lanes it is computed beside.

Zero times infinity is NaN: the derivatives of what is not used are infinite here, or its values are.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow import shared_operand_gradients
from tests.adjoint.truth import assert_alike, batched, one_by_one, singly

slow = pytest.mark.slow
W = tf.Variable(np.random.default_rng(2).normal(size=(3, 3)))
V = tf.Variable([0.0, 1.0, 4.0], dtype=tf.float64)
FLAG = tf.constant(False)


@pcbatch.autobatch
def choices(x, y, n):
    """Arms of plain operators are computed for all lanes."""
    a = 1.0 / y if y != 0.0 else y
    if y > 0.0:
        a = a + y**0.5
    b = x * y if abs(y) < 1e300 else x
    return a + (y and 1.0 / y) + (b if n > 1 else (x / (x - x) if n > 4 else b * b))


@pcbatch.autobatch
def shared_arms(x, y, n):
    """What lanes share, in an arm and in a choice that is shared itself."""
    a = V[0] / x if x > 0.0 else x * V[1]
    b = V[0] ** 0.5 if FLAG else V[0] * 2.0
    return a * b + V[2] * x


@pcbatch.autobatch
def last_turns(x, y, n):
    """A loop computes for the next turn what is lost where none comes."""
    total, t, u = x * 0.0, x, x
    v = tf.stack([x, y, x])
    while n > 0:
        total = total + t + u + tf.reduce_sum(v)
        u = tf.math.log(y)
        t = tf.math.log(abs(t) - 1.0)
        v = tf.linalg.matvec(W, tf.sqrt(tf.abs(v)) * V)
        n = n - 3
    return total + y * x


@pcbatch.autobatch
def elements(x, y, n):
    """Elements that are taken of an array, and stored in one."""
    a = tf.stack([x, y, x * x])
    for i in range(n):
        s = a[i % 3]
        t = a[(i + 1) % 3]
        a[i % 3] = s / t if t != 0.0 else s + t
    return tf.reduce_sum(a)


@pcbatch.autobatch
def several(x, y, n):
    """One value on two ways, neither of which some lanes take; and one of both results of a call."""
    r = x / y
    a = r if n > 2 else x
    b = r * r if n > 3 else y
    p, q = pair(x, y)
    if n > 1:
        return a * b + p
    return a * b + q


@pcbatch.autobatch
def pair(x, y):
    return tf.sqrt(x), tf.math.log(y)


@pcbatch.autobatch
def users_own(x, y, n):
    """`tf.where` is TensorFlow's: there NaN is what `single` has, too."""
    return tf.where(x > 0.0, tf.math.log(x), x)


PROGRAMS = {each.__name__: each for each in (choices, shared_arms, last_turns, elements, several, users_own)}
ARGUMENTS = (
    tf.constant([0.0, -1.0, 2.0, 4.0, 1.0, 0.0], tf.float64),
    tf.constant([0.0, np.inf, 2.0, 1.0, 0.0, 4.0], tf.float64),
    tf.constant([0, 1, 2, 3, 4, 5]),
)
TURNS = (
    tf.constant([0.0, -1.0, 2.0, 1.0, 4.0, 3.0], tf.float64),
    tf.constant([0.0, 0.0, 2.0, 1.0, 3.0, 4.0], tf.float64),
    ARGUMENTS[2],
)
FINITE = (ARGUMENTS[0], tf.constant([0.0, 3.0, 2.0, 1.0, 0.0, 4.0], tf.float64), ARGUMENTS[2])


def arguments(name):
    return {"choices": ARGUMENTS, "last_turns": TURNS}.get(name, FINITE)


def alike(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is not None and ours is not None:
            ours, theirs = map(tf.convert_to_tensor, (ours, theirs))
            assert np.array_equal(np.isnan(ours), np.isnan(theirs))
            found = [tf.where(tf.math.is_finite(each), each, 0.0) for each in (ours, theirs)]
            assert_alike(found[:1], found[1:])
        else:
            assert_alike([ours], [theirs])


@pytest.mark.parametrize(
    ("name", "jit"),
    [
        pytest.param(name, jit, marks=() if jit == (name == "several") and name != "users_own" else slow)
        for name in PROGRAMS
        for jit in (False, True)
    ],
)
def test_like_one_example_after_another(name, jit):
    function = PROGRAMS[name]
    found = batched(function.options(jit=jit), arguments(name), (W, V))
    alike(found, singly(function, arguments(name), (W, V)))


@pytest.mark.parametrize("name", [*PROGRAMS])
def test_the_reference(name):
    function = PROGRAMS[name]
    alike(one_by_one(function, arguments(name), (W, V)), singly(function, arguments(name), (W, V)))


@slow
@pytest.mark.parametrize("name", ["shared_arms", "last_turns"])
def test_each_example_apart(name):
    function = PROGRAMS[name]
    found = pcbatch.per_example_gradients(function.options(jit=False), V)(*arguments(name))
    for lane, example in enumerate(zip(*arguments(name), strict=True)):
        with tf.GradientTape() as tape:
            result = function.single(*example)
        alike([found[lane]], [tape.gradient(result, V)])


@pytest.mark.parametrize(("name", "part"), [("choices", "set_gates"), ("last_turns", "kept_to")])
def test_without_gates_there_would_be_traces(monkeypatch, name, part):
    put = {"set_gates": lambda self, ends: None, "kept_to": lambda self, tensor, gradient: gradient}
    monkeypatch.setattr(shared_operand_gradients.Connected, part, put[part])
    found = batched(PROGRAMS[name].options(jit=False, name=f"{name}_without"), arguments(name), (W, V))
    assert any(bool(tf.reduce_any(tf.math.is_nan(each))) for each in found if each is not None)

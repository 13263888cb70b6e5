"""Gradients of lines that run functions of TensorFlow's: conditionals and loops are written out."""

# ruff: noqa: B023 (arms are called before the variable is bound anew)
from __future__ import annotations

import pytest
import tensorflow as tf

import pcbatch
from pcbatch import GradientError
from pcbatch.runtime.backends.tensorflow import function_inlining
from tests.adjoint.insides import ARGUMENTS, CASES, ZERO, one_place
from tests.adjoint.programs import TABLE, B, W, seven
from tests.adjoint.truth import assert_alike, assert_like_differences, batched, singly

slow = pytest.mark.slow
VARIABLES = (W, B, TABLE, ZERO)


@pytest.mark.parametrize(
    ("name", "jit"),
    [
        pytest.param(name, jit, marks=() if (name, jit) in (("traps", False), ("looped", False)) else slow)
        for name in CASES
        for jit in (False, True)
    ],
)
def test_like_one_example_after_another(name, jit):
    function = CASES[name]
    found = batched(function.options(jit=jit), ARGUMENTS, VARIABLES)
    assert_alike(found, singly(function, ARGUMENTS, VARIABLES))


@slow
def test_what_tensorflow_has_no_gradient_of():
    with pytest.raises(Exception, match="ScatterNd"):
        singly(one_place, ARGUMENTS)
    assert_like_differences(one_place, ARGUMENTS)


@slow
@pytest.mark.parametrize("name", ["conditional", "traps", "switched", "looped", "placed"])
def test_like_differences(name):
    assert_like_differences(CASES[name].options(jit=False), ARGUMENTS)


@slow
def test_each_example_apart():
    function = CASES["traps"]
    found = pcbatch.per_example_gradients(function.options(jit=False), [W, TABLE])(*ARGUMENTS)
    for lane, example in enumerate(zip(*ARGUMENTS, strict=True)):
        with tf.GradientTape() as tape:
            y = function.single(*example)
        assert_alike([each[lane] for each in found], tape.gradient(y, [W, TABLE], unconnected_gradients="zero"))


# -- what cannot be written out ----------------------------------------------------------------------------------------


@pcbatch.autobatch
def by_its_own(x, n, k):
    while n > 0:
        x = tf.cond(x[0] > 0.0, lambda: seven(x), lambda: x)
        n = n - 1
    return x


def test_what_is_refused_at_its_line():
    with pytest.raises(GradientError, match=r"PCB603(.|\n)*test_insides.py(.|\n)*x = tf.(.|\n)*Python's `if`"):
        batched(by_its_own, ARGUMENTS)


@slow
def test_without_gates_untaken_arms_would_leave_traces(monkeypatch):
    """Zero times infinity: see `traps`."""
    monkeypatch.setattr(function_inlining.Expansion, "_gate", lambda self, value, *_: value)
    found = batched(CASES["traps"].options(jit=False, name="without_gates"), ARGUMENTS)
    assert not bool(tf.reduce_all(tf.math.is_finite(found[0])))

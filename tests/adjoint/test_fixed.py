"""`max_tape`: gradients inside a caller's function with `jit_compile=True`, where the record has a fixed size."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.errors import UsageError
from tests.adjoint import programs
from tests.adjoint.programs import CASES
from tests.adjoint.truth import assert_alike, batched, floats, loss

slow = pytest.mark.slow


def inside(function, arguments, variables):
    """The value of `loss` and its gradients, all inside one program of XLA's."""

    @tf.function(jit_compile=True)
    def step(*given):
        sources = [*floats(given), *variables]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            value = loss(function.run(*given))
        return value, tape.gradient(value, sources)

    return step(*arguments)


@pytest.mark.parametrize("name", ["deep", *(pytest.param(n, marks=slow) for n in CASES if n != "deep")])
def test_like_outside(name):
    function, arguments, variables = CASES[name]
    found = inside(function.options(max_tape=200, max_depth=128, name=f"{name}_fixed"), arguments, variables)[1]
    assert_alike(found, batched(function.options(jit=False, name=f"{name}_outside"), arguments, variables))


def test_beyond_it_gradients_are_nan_and_values_are_right():
    function, arguments, variables = CASES["loop"]
    turns = int(sum(arguments[1]))
    expected = batched(function.options(jit=False, name="loop_outside"), arguments, variables)
    for rows in (turns, turns - len(arguments[1]) - 1):
        value, found = inside(function.options(max_tape=rows, name=f"loop_of_{rows}"), arguments, variables)
        if rows == turns:
            assert_alike(found, expected)
            whole = value
        else:
            assert all(np.all(np.isnan(each)) for each in found)
            np.testing.assert_allclose(value, whole)


@slow
def test_where_the_number_of_lanes_is_not_known():
    function, arguments, variables = CASES["loop"]
    signature = [tf.TensorSpec([None, *each.shape[1:]], each.dtype) for each in arguments]

    def slopes(function, *given):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(function(*given) ** 2)
        return tape.gradient(value, variables)

    fixed, outside = function.options(max_tape=64, name="loop_of_some"), function.options(jit=False, name="loop_of_all")
    inside = tf.function(lambda *given: slopes(fixed, *given), jit_compile=True, input_signature=signature)
    for lanes in (6, 2):
        given = [each[:lanes] for each in arguments]
        assert_alike(inside(*given), slopes(outside, *given))


@pytest.mark.parametrize("given", [0, -1, 2.0, True, "many"])
def test_what_it_may_be(given):
    with pytest.raises(UsageError, match="PCB504: max_tape must be None or an int from 1"):
        programs.loop.options(max_tape=given)

"""What programs are made of so that TensorFlow makes XLA's text of them soon: the same numbers, as XLA has them."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import branches, private, raw_ops
from pcbatch.runtime.backends.tensorflow.rules import family
from pcbatch.runtime.backends.tensorflow.xla_cpu import lane_arrays

NUMBERS = [0.0, -0.0, 1.0, -2.5, 6e4, np.inf, -np.inf, np.nan, -np.nan, 6e-8]
DTYPES = [tf.float16, tf.bfloat16, tf.float32, tf.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("kind", family.INSTEAD)
def test_what_stands_for_an_operation_gives_what_it_gives(kind, dtype):
    ends = [float(dtype.max), float(dtype.min), float(np.finfo(np.float16).tiny)]
    numbers = tf.concat([tf.constant(NUMBERS, dtype), tf.constant(ends, dtype)], 0)
    plain = getattr(tf.raw_ops, kind)(x=numbers)
    for jit in (True, False):
        function = tf.function(family.INSTEAD[kind], jit_compile=jit, autograph=False)
        assert function(numbers).numpy().tolist() == plain.numpy().tolist()


def test_nothing_of_them_goes_through_mlir():
    def both(x):
        return family.is_nan(x) | family.is_finite(x)

    traced = tf.function(both, jit_compile=True, autograph=False).get_concrete_function(tf.TensorSpec([3]))
    assert not {"IsNan", "IsFinite"} & {each.type for each in traced.graph.get_operations()}


@pytest.mark.parametrize("place", [-7, -1, 0, 2, 3, 2**31 - 1])
def test_an_element_at_a_place_that_is_known(place):
    """The nearest beyond an end, as at a place that is not known."""
    array = np.arange(6.0, dtype=np.float32).reshape(3, 2)

    def known(array):
        with raw_ops.reusing():
            return branches.element(array, [raw_ops.constant(place)]), branches.element(array, [raw_ops.constant(0)])

    found, first = tf.function(known, jit_compile=True, autograph=False)(array)
    assert found.numpy().tolist() == array[min(max(place, 0), 2)].tolist()
    assert first.numpy().tolist() == [0.0, 1.0]


def test_a_body_captures_each_tensor_once():
    outer = private.new_graph("outer")
    with outer.as_default():
        x, y = (tf.compat.v1.placeholder(tf.float32, [2, None]) for _ in range(2))
        small, large = tf.constant([1, 2]), tf.constant(np.zeros(raw_ops.LARGEST + 1, np.int32))
    with raw_ops.reusing():
        body = private.new_body("body", raw_ops.constant_like)
        with body.as_default():
            standing = [private.capture(body, each) for each in (x, y, x, small, small, large)]
            private.operation(body, "AddV2", [x, y], [tf.float32], {"T": raw_ops.type_attribute(tf.float32)})
    assert standing[0] is standing[2] is not standing[1]
    assert standing[3] is standing[4]
    assert standing[3].op.type == "Const"
    assert [outside for outside, _ in private.captures(body)] == [x, y, large]
    assert body.inputs == [standing[0], standing[1], standing[5]]
    assert [each.shape.as_list() for each in body.inputs] == [[2, None], [2, None], [raw_ops.LARGEST + 1]]


def test_constants_of_equal_numbers_and_other_dtypes_are_apart():
    wanted = [(1,), (True, tf.bool), ((1, 0),), (1, tf.float32), (1,)]
    with raw_ops.reusing(), private.new_body("body", raw_ops.constant_like).as_default():
        found = [raw_ops.constant(*each) for each in wanted]
    assert [each.dtype for each in found] == [tf.int32, tf.bool, tf.int32, tf.float32, tf.int32]
    assert [tf.get_static_value(each).tolist() for each in found] == [1, True, [1, 0], 1.0, 1]
    assert found[0] is found[4]


def test_a_conditional_in_a_body_of_a_body():
    """What an inner one captures goes through the outer one, once."""

    def program(x, n):
        with raw_ops.reusing():

            def turn(state):
                (total, count) = state
                (total,) = branches.conditional(count > 1, lambda: [total * x + x], [total])
                return [total, count - 1]

            return branches.loop(lambda state: state[1] > 0, turn, [x, n])[0]

    for jit in (True, False):
        found = tf.function(program, jit_compile=jit, autograph=False)(tf.constant(3.0), tf.constant(3))
        assert float(found) == (3.0 * 3.0 + 3.0) * 3.0 + 3.0


@pytest.mark.parametrize("jit", [None, True])
def test_native_functions_are_tried_inside_of_a_graph_too(jit):
    lane_arrays._heeded.cache_clear()
    found = []
    tf.function(lambda: found.append(lane_arrays.are_made()), jit_compile=jit, autograph=False).get_concrete_function()
    assert found == [lane_arrays.are_made()] == [True]
